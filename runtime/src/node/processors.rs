//! Who uses the processors of the host, and whether a quota of CPU time stops this process.

use super::control_groups::Hierarchy;
use super::memory::figure;
use crate::monitor::wire::{PeSnapshot, Processors};
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long an answer about the host is believed: it is made of as many lines as the host has cores.
const FRESH_NS: u64 = 1_000_000_000;
/// The unit in which the system counts how long cores were busy.
const TICK_NS: u64 = 10_000_000;
/// Most time stopped by a quota for which waiting PEs are looked for later.
const STOPPED_MAX_NS: u64 = 1_000_000_000;

/// Where the system tells of each core.
const CLOCKS: &str = "/sys/devices/system/cpu";
/// Cores whose clocks are read: of more the first ones.
const CLOCKED_MAX: usize = 64;

/// The use of the host's processors, read once a second.
#[derive(Debug)]
pub(super) struct HostProcessors {
    cores: Vec<usize>,
    last: Mutex<Option<(Processors, u32)>>,
}

impl HostProcessors {
    /// Of the cores that the calling thread may use.
    pub(super) fn allowed() -> Self {
        Self { cores: allowed_cores(), last: Mutex::default() }
    }

    /// As it was at most a second before `now_ns`, with the clock of the cores in MHz.
    pub(super) fn now(&self, now_ns: u64) -> (Processors, u32) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some(last) if now_ns < last.0.uptime_ns.saturating_add(FRESH_NS) => last,
            _ => {
                let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
                let own =
                    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
                let processors = Processors {
                    uptime_ns: now_ns,
                    busy_ns: busy_ns(&stat, &self.cores),
                    own_ns: u64::try_from(own.as_nanos()).unwrap_or(u64::MAX),
                };
                *last.insert((processors, clock_mhz(Path::new(CLOCKS), &self.cores)))
            }
        }
    }
}

/// The clock of the fastest of the cores that this process may use, MHz; 0 where the system does not tell.
pub(crate) fn clock_now_mhz() -> u32 {
    clock_mhz(Path::new(CLOCKS), &allowed_cores())
}

/// The same of these cores, by the files below that folder.
fn clock_mhz(folder: &Path, cores: &[usize]) -> u32 {
    let of_core = |core: &usize| {
        let khz = fs::read_to_string(folder.join(format!("cpu{core}/cpufreq/scaling_cur_freq"))).ok()?;
        khz.trim().parse::<u32>().ok()
    };
    // Where the first core has none the others have none either.
    let clocks = cores.iter().take(CLOCKED_MAX).map_while(of_core);
    clocks.max().map_or(0, |khz| khz / 1000)
}

/// How long these cores were busy, by the text of `/proc/stat`; time that a virtual machine's host took counts, too.
fn busy_ns(stat: &str, cores: &[usize]) -> u64 {
    let of_core = |line: &str| {
        let (core, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        cores.contains(&core.parse().ok()?).then_some(())?;
        let times: Vec<u64> = times.split_whitespace().filter_map(|time| time.parse().ok()).collect();
        // User, nice, system, idle, waiting for input, interrupts, soft interrupts, stolen; what follows is in user and nice.
        let all = times.iter().take(8).fold(0_u64, |sum, time| sum.saturating_add(*time));
        let idle = times.get(3)?.saturating_add(*times.get(4)?);
        Some(all.saturating_sub(idle))
    };
    let ticks = stat.lines().filter_map(of_core).fold(0_u64, u64::saturating_add);
    ticks.saturating_mul(TICK_NS)
}

/// Cores that this process may use, in order.
pub(crate) fn allowed_cores() -> Vec<usize> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0));
    let is_in = |core: &usize| set.as_ref().is_ok_and(|set| set.is_set(*core).unwrap_or(false));
    (0..nix::sched::CpuSet::count()).filter(is_in).collect()
}

/// Says which of the time that PEs waited for a core they were stopped by a quota of their control groups.
#[derive(Debug, Default)]
pub(super) struct Quota {
    /// Files that say how long a group was stopped, the word before that, and its unit in nanoseconds.
    files: Vec<(PathBuf, &'static str, u64)>,
    stopped_ns: u64,
    /// Time stopped for which no wait of a PE has been found yet.
    due_ns: u64,
    /// Waits of each PE until now, and what of them was by a quota.
    pes: Vec<(u64, u64)>,
}

impl Quota {
    /// Of the groups that this process is in.
    pub(super) fn of_this_process() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let versions = [
            (Hierarchy::UNIFIED, "throttled_usec", 1000),
            (Hierarchy::of("cpu", "/sys/fs/cgroup/cpu"), "throttled_time", 1),
        ];
        let files = versions.into_iter().flat_map(|(hierarchy, word, unit_ns)| {
            hierarchy.groups(&own).into_iter().map(move |group| (group.join("cpu.stat"), word, unit_ns))
        });
        let mut quota = Self { files: files.collect(), ..Self::default() };
        quota.files.retain(|file| stopped_ns(file).is_some());
        quota.stopped_ns = quota.read();
        quota
    }

    /// That of the group that was stopped longest.
    fn read(&self) -> u64 {
        self.files.iter().filter_map(stopped_ns).max().unwrap_or(0)
    }

    /// Moves what was by a quota of the waits of these PEs, which are always the same.
    pub(super) fn divide(&mut self, pes: &mut [PeSnapshot]) {
        let stopped_ns = self.read();
        self.divide_by(stopped_ns, pes);
    }

    fn divide_by(&mut self, stopped_ns: u64, pes: &mut [PeSnapshot]) {
        let more_ns = stopped_ns.saturating_sub(self.stopped_ns);
        self.stopped_ns = self.stopped_ns.max(stopped_ns);
        self.due_ns = self.due_ns.saturating_add(more_ns);
        self.pes.resize(pes.len(), (0, 0));
        let waits =
            self.pes.iter().zip(&*pes).map(|((before, _), pe)| pe.core_wait_ns.saturating_sub(*before));
        let waited_ns: u64 = waits.sum();
        let part = if waited_ns > 0 { (self.due_ns as f64 / waited_ns as f64).min(1.0) } else { 0.0 };
        self.due_ns = self.due_ns.saturating_sub(waited_ns).min(STOPPED_MAX_NS);
        for ((before, by_quota), pe) in self.pes.iter_mut().zip(pes) {
            *by_quota += (pe.core_wait_ns.saturating_sub(*before) as f64 * part) as u64;
            *before = pe.core_wait_ns.max(*before);
            pe.quota_ns = *by_quota;
            pe.core_wait_ns = pe.core_wait_ns.saturating_sub(*by_quota);
        }
    }
}

fn stopped_ns((file, word, unit_ns): &(PathBuf, &'static str, u64)) -> Option<u64> {
    Some(figure(&fs::read_to_string(file).ok()?, word)?.saturating_mul(*unit_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 5 0 2 70 10 1 1 1 4 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 5\n";

    #[test]
    fn cores_are_busy_when_they_are_not_idle_and_only_the_own_count() {
        assert_eq!(busy_ns(STAT, &[0]), 10 * TICK_NS);
        assert_eq!(busy_ns(STAT, &[0, 1, 7]), 16 * TICK_NS);
        assert_eq!(busy_ns("", &[0]), 0);
    }

    #[test]
    fn the_clock_is_that_of_the_fastest_core_that_may_be_used() {
        let folder = tempfile::tempdir().unwrap();
        for (core, khz) in [(0, "1200000\n"), (1, "3800123\n"), (2, "9900000\n"), (3, "fast\n")] {
            let of_core = folder.path().join(format!("cpu{core}/cpufreq"));
            fs::create_dir_all(&of_core).unwrap();
            fs::write(of_core.join("scaling_cur_freq"), khz).unwrap();
        }
        let clock = |cores: &[usize]| clock_mhz(folder.path(), cores);
        assert_eq!(
            (clock(&[0, 1]), clock(&[0]), clock(&[3]), clock(&[]), clock(&[9])),
            (3800, 1200, 0, 0, 0)
        );
    }

    #[test]
    fn waits_are_by_a_quota_as_far_as_the_group_was_stopped() {
        let mut quota = Quota::default();
        let mut divided = |stopped_ns, waits: [u64; 2]| {
            let mut pes = waits.map(|core_wait_ns| PeSnapshot { core_wait_ns, ..PeSnapshot::default() });
            quota.divide_by(stopped_ns, &mut pes);
            pes.map(|pe| (pe.core_wait_ns, pe.quota_ns))
        };
        assert_eq!(divided(0, [100, 0]), [(100, 0), (0, 0)]);
        assert_eq!(divided(50, [300, 0]), [(250, 50), (0, 0)]);
        // It is counted before the PEs have been on a core again.
        assert_eq!(divided(450, [300, 0]), [(250, 50), (0, 0)]);
        assert_eq!(divided(450, [500, 200]), [(250, 250), (0, 200)]);
        assert_eq!(divided(450, [600, 200]), [(350, 250), (0, 200)]);
    }
}
