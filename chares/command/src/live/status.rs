//! A line now and then about a run that has no terminal: where it is, how much of the PEs' time is used, what is slow.

use runtime::monitor::wire::{NodeSnapshot, PeSnapshot, Phase, RunInfo};
use std::collections::BTreeMap;
use std::time::Duration;
use tui::Progress;

/// How often.
pub(crate) const EVERY: Duration = Duration::from_secs(10);
/// A node that is idle for less than this part of the time, by so much less than any other, is the one that these wait for.
const BUSY: f64 = 0.2;

/// What is known of a run, and was when the last line was written.
#[derive(Debug, Default)]
pub(crate) struct Status {
    progress: Progress,
    latest: BTreeMap<u16, Used>,
    told: BTreeMap<u16, Used>,
    told_at: Duration,
}

/// What the PEs of a node have done with their time.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    computing_ns: u64,
    idle_ns: u64,
    all_ns: u64,
}

impl Used {
    fn since(self, before: Self) -> Self {
        Self {
            computing_ns: self.computing_ns.saturating_sub(before.computing_ns),
            idle_ns: self.idle_ns.saturating_sub(before.idle_ns),
            all_ns: self.all_ns.saturating_sub(before.all_ns),
        }
    }

    /// The part of all its time that this is, 0 to 1.
    fn part(self, ns: u64) -> f64 {
        (ns as f64 / self.all_ns.max(1) as f64).min(1.0)
    }
}

impl Status {
    pub(crate) fn hears(&mut self, snapshot: &NodeSnapshot) {
        let sum = |of: fn(&PeSnapshot) -> u64| snapshot.pes.iter().map(of).fold(0, u64::saturating_add);
        let used = Used {
            computing_ns: sum(|pe| pe.compute_ns.saturating_add(pe.init_ns)),
            idle_ns: sum(|pe| pe.idle_ns),
            all_ns: snapshot.uptime_ns.saturating_mul(snapshot.pes.len() as u64),
        };
        self.latest.insert(snapshot.node, used);
    }

    pub(crate) fn enters(&mut self, phase: Phase, now: Duration) {
        self.progress.take(phase, now);
    }

    /// The line for this moment, if one is due.
    pub(crate) fn due(&mut self, now: Duration, run: &RunInfo) -> Option<String> {
        if now < self.told_at + EVERY {
            return None;
        }
        self.told_at = now;
        let mut parts = vec![format!("{}: {}", clock(now), self.place())];
        parts.extend(self.progress.remaining(now).map(|left| left.to_string()));
        let before = |node| self.told.get(node).copied().unwrap_or_default();
        let used = self.latest.iter().map(|(node, now)| (*node, now.since(before(node))));
        let used: Vec<_> = used.filter(|(_, used)| used.all_ns > 0).collect();
        parts.extend(computing(&used));
        self.told = self.latest.clone();
        let name = |node| run.nodes.iter().find(|info| info.node == node).map(|info| &info.name);
        let slow = run.slowdowns.iter().rfind(|slow| slow.until_s.is_none());
        let slow = slow.and_then(|slow| Some(slow.sentence(name(slow.node)?)));
        parts.extend(slow.or_else(|| {
            let (node, [idle, others]) = least_idle(&used)?;
            Some(format!("{} is idle {idle:.0} % of it, each other node at least {others:.0} %", name(node)?))
        }));
        Some(parts.join(", "))
    }

    /// Where the run is, with what the application says of it: an error, an energy.
    fn place(&self) -> String {
        let Phase { name, done, total, detail, .. } = self.progress.phase();
        let name = if name.is_empty() { "starting" } else { name };
        let count = match (done, total) {
            (0, 0) => String::new(),
            // Nobody knows yet how many there will be.
            (done, 0) => format!(" {done}"),
            (done, total) => format!(" {done} of {total}"),
        };
        let detail = if detail.is_empty() { String::new() } else { format!(", {detail}") };
        format!("{name}{count}{detail}")
    }
}

/// What part of the time of these PEs went into entry methods.
fn computing(used: &[(u16, Used)]) -> Option<String> {
    let add = |a: Used, b: &(u16, Used)| Used {
        computing_ns: a.computing_ns.saturating_add(b.1.computing_ns),
        idle_ns: a.idle_ns.saturating_add(b.1.idle_ns),
        all_ns: a.all_ns.saturating_add(b.1.all_ns),
    };
    let all = used.iter().fold(Used::default(), add);
    (all.all_ns > 0).then(|| format!("PEs compute {:.0} % of the time", 100.0 * all.part(all.computing_ns)))
}

/// The node that others wait for, if one stands out: per cent of the time that it is idle, and that the next one is.
fn least_idle(used: &[(u16, Used)]) -> Option<(u16, [f64; 2])> {
    let mut idle: Vec<_> = used.iter().map(|(node, used)| (*node, used.part(used.idle_ns))).collect();
    idle.sort_by(|one, other| one.1.total_cmp(&other.1));
    match idle.as_slice() {
        [(node, least), (_, next), ..] if *least < BUSY && next - least > BUSY => {
            Some((*node, [100.0 * least, 100.0 * next]))
        }
        _ => None,
    }
}

/// A time as hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let s = time.as_secs();
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::monitor::wire::{NodeInfo, Slowdown};

    fn snapshot(node: u16, uptime_s: u64, compute_s: u64) -> NodeSnapshot {
        let [compute_ns, idle_ns] = [compute_s, uptime_s - compute_s].map(|s| s * 1_000_000_000);
        let pe = PeSnapshot { compute_ns, idle_ns, ..PeSnapshot::default() };
        NodeSnapshot { node, uptime_ns: uptime_s * 1_000_000_000, pes: vec![pe], ..NodeSnapshot::default() }
    }

    fn run(names: &[&str]) -> RunInfo {
        let info =
            |(node, name): (u16, &&str)| NodeInfo { node, name: (*name).into(), ..NodeInfo::default() };
        RunInfo { nodes: (1..).zip(names).map(info).collect(), ..RunInfo::default() }
    }

    fn phase(name: &str, done: u64, total: u64, detail: &str) -> Phase {
        Phase { name: name.into(), done, total, detail: detail.into(), ..Phase::default() }
    }

    #[test]
    fn a_line_says_where_the_run_is_and_what_it_makes_of_its_pes() {
        let mut status = Status::default();
        let mut run = run(&["fast", "slow"]);
        let at = Duration::from_secs;
        assert_eq!(status.due(at(9), &run), None);
        assert_eq!(status.due(at(10), &run).as_deref(), Some("00:00:10: starting"));
        status.enters(phase("sweep", 4, 9, "error 1e-3"), at(10));
        status.hears(&snapshot(1, 20, 11));
        status.hears(&snapshot(2, 20, 9));
        let line = status.due(at(20), &run);
        assert_eq!(line.as_deref(), Some("00:00:20: sweep 4 of 9, error 1e-3, PEs compute 50 % of the time"));
        let energy = "-3.540 eV, 2.1e-2 eV/A";
        status.enters(phase("evaluation", 7, 0, energy), at(20));
        assert_eq!(status.place(), "evaluation 7, -3.540 eV, 2.1e-2 eV/A");
        status.enters(phase("evaluation", 0, 0, energy), at(20));
        assert_eq!(status.place(), "evaluation, -3.540 eV, 2.1e-2 eV/A");
        status.hears(&snapshot(1, 30, 21));
        status.hears(&snapshot(2, 30, 19));
        let slow =
            Slowdown { node: 2, since_s: 25.0, delivered: 0.5, is_of_speed: true, ..Slowdown::default() };
        run.slowdowns = vec![slow];
        let line = status.due(at(30), &run).unwrap();
        let end = "PEs compute 100 % of the time, slow delivers 0.50 of its measured speed since 00:25: it waits for its cores";
        assert!(line.ends_with(end), "{line}");
        assert_eq!(status.due(at(31), &run), None);
    }

    /// As jacobi, statics, fem and pic do, whose drivers tell of each step.
    #[test]
    fn what_is_left_is_known_of_phases_that_the_driver_tells_step_by_step() {
        let mut status = Status::default();
        let at = Duration::from_secs;
        (0..=20).for_each(|step| status.enters(phase("sweep", step, 60, ""), at(step)));
        let line = status.due(at(20), &RunInfo::default());
        assert_eq!(line.as_deref(), Some("00:00:20: sweep 20 of 60, about 40s left"));
        status.enters(phase("checking", 0, 9, ""), at(21));
        let line = status.due(at(30), &RunInfo::default());
        assert_eq!(line.as_deref(), Some("00:00:30: checking 0 of 9"), "of the next nothing is known");
    }

    #[test]
    fn the_node_that_others_wait_for_is_named_if_one_stands_out() {
        let run = run(&["a", "b", "c"]);
        let line = |computed: [u64; 3]| {
            let mut status = Status::default();
            (1..).zip(computed).for_each(|(node, computed)| status.hears(&snapshot(node, 100, computed)));
            status.due(Duration::from_secs(100), &run).unwrap_or_default()
        };
        let said = "PEs compute 50 % of the time, b is idle 2 % of it, each other node at least 70 %";
        assert!(line([22, 98, 30]).ends_with(said), "{}", line([22, 98, 30]));
        for computed in [[98, 97, 30], [90, 95, 92], [10, 60, 15], [0, 0, 0]] {
            assert!(line(computed).ends_with(" % of the time"), "{}", line(computed));
        }
    }
}
