//! What part of a PE's time its thread was on a core, by the system's own count of it. The count is read only when
//! somebody takes a snapshot, so that it costs the PE nothing: 5 to 10 µs of another thread, ten times a second.

use std::collections::VecDeque;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::monitor::wire::PeState;

/// How many states a PE can be in.
pub(super) const STATES: usize = 6;
/// What is missing for a second is no wait that goes on.
const LOOKS: usize = 10;
/// States in which the thread does not sleep on purpose, those with something to do first.
const AWAKE: [PeState; 4] = [PeState::Compute, PeState::Init, PeState::Overhead, PeState::Idle];

/// What the system has counted for a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// On a core.
    cpu_ns: u64,
    /// Ready to run and not on a core: others ran there, or a quota was used up.
    waited_ns: u64,
}

impl Counted {
    /// For a thread of this process; `None` if there is none, or the system does not tell.
    pub(super) fn of(thread: i32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
        let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
        let (cpu_ns, waited_ns, turns): (u64, u64, u64) =
            (numbers.next()??, numbers.next()??, numbers.next()??);
        // A system that does not count says that the thread never had a core.
        (turns > 0).then(|| Self { cpu_ns: cpu_ns.max(clock_ns(thread)), waited_ns })
    }
}

/// The clock of a thread of this process, which counts what the thread has used up to this moment, while the text above was
/// counted at the last tick, up to 10 ms ago. 0 where the system gives no such clock.
fn clock_ns(thread: i32) -> u64 {
    // The number that Linux gives the clock of a thread: the number of the thread inverted, then "of a thread" and "its time
    // on a core".
    let clock = ClockId::from_raw((!thread) << 3 | 0b100 | 0b010);
    let used = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    u64::try_from(used.as_nanos()).unwrap_or(u64::MAX)
}

/// Divides the time of a PE by whether its thread was on a core.
///
/// A thread also waits for a core after a message has woken it, and then counts as asleep. The system does not say in which
/// state a thread waited; but while it is awake it waits for no longer than it is off its core, and the rest was after sleep.
/// Of what it waits while awake, what it waits in the idle state harms nobody.
///
/// An awake thread can be off its core without waiting for one: its process is stopped, as `cpulimit` does to slow one down, it
/// reads a disk, or the machine is a virtual one and has no core just now. It does not compute then, so that counts as a wait too.
/// A wait that is not over looks the same, as the system counts waits when they are over; so what is missing counts once it has
/// been missing for [`LOOKS`] looks.
#[derive(Debug, Default)]
pub(super) struct OnCore {
    /// Times by state as they were at the last look.
    seen_ns: [u64; STATES],
    /// What of them it waited for a core.
    waited_ns: [u64; STATES],
    /// How long it was on its core at the last look, and ever off it while awake.
    cpu_ns: u64,
    off_ns: u64,
    /// What has been found a state for, or was idle, of its waits while awake and of those after sleep.
    divided_awake_ns: u64,
    divided_asleep_ns: u64,
    /// What was missing at the last looks: off its core while awake, and not in what the system counts as waits.
    missing_ns: VecDeque<u64>,
}

impl OnCore {
    /// The times by state without those in which it waited for a core with something to do, and these together. None of them
    /// ever falls, and they add up to `times_ns`.
    pub(super) fn divide(
        &mut self,
        times_ns: [u64; STATES],
        counted: Option<Counted>,
    ) -> ([u64; STATES], u64) {
        let spent: [u64; STATES] = std::array::from_fn(|i| times_ns[i].saturating_sub(self.seen_ns[i]));
        self.seen_ns = std::array::from_fn(|i| times_ns[i].max(self.seen_ns[i]));
        if let Some(counted) = counted {
            let awake_ns = AWAKE.iter().map(|state| times_ns[*state as usize]).sum::<u64>();
            self.off_ns = self.off_ns.max(awake_ns.saturating_sub(counted.cpu_ns));
            let while_awake_ns = self.off_ns.min(counted.waited_ns);
            let missing_ns = self.missing_for_long(self.off_ns - while_awake_ns);
            let on_core_ns = counted.cpu_ns.saturating_sub(self.cpu_ns);
            self.cpu_ns = self.cpu_ns.max(counted.cpu_ns);
            self.divide_awake(while_awake_ns + missing_ns, spent, on_core_ns);
            self.divide_asleep(counted.waited_ns - while_awake_ns, spent);
        }
        let waited_ns = self.waited_ns;
        (std::array::from_fn(|i| self.seen_ns[i] - waited_ns[i]), waited_ns.iter().sum())
    }

    /// What has been missing ever since so many looks ago; less than that if there were not as many.
    fn missing_for_long(&mut self, missing_ns: u64) -> u64 {
        self.missing_ns.push_back(missing_ns);
        if self.missing_ns.len() <= LOOKS {
            return 0;
        }
        let least_ns = self.missing_ns.iter().copied().min().unwrap_or_default();
        self.missing_ns.pop_front();
        least_ns
    }

    /// In proportion to the time in each state, but for what it was on its core since the last look; what is more than that
    /// is put off until the next one.
    fn divide_awake(&mut self, total_ns: u64, spent: [u64; STATES], on_core_ns: u64) {
        let all_ns: u64 = AWAKE.iter().map(|state| spent[*state as usize]).sum();
        let off_ns = all_ns.saturating_sub(on_core_ns);
        let due_ns = total_ns.saturating_sub(self.divided_awake_ns).min(off_ns);
        self.divided_awake_ns += due_ns;
        for state in AWAKE.into_iter().filter(|state| *state != PeState::Idle) {
            let part = due_ns as f64 * spent[state as usize] as f64 / all_ns.max(1) as f64;
            self.waited_ns[state as usize] += (part as u64).min(spent[state as usize]);
        }
    }

    fn divide_asleep(&mut self, total_ns: u64, spent: [u64; STATES]) {
        let asleep = PeState::Asleep as usize;
        let due_ns = total_ns.saturating_sub(self.divided_asleep_ns).min(spent[asleep]);
        self.divided_asleep_ns += due_ns;
        self.waited_ns[asleep] += due_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// What a PE is shown to have done after looks every 100 ms, each time with so many milliseconds more in these states, on
    /// a core, and waiting for one.
    fn shown(looks: u64, spent_ms: &[(PeState, u64)], cpu_ms: u64, waited_ms: u64) -> ([u64; STATES], u64) {
        let (mut on_core, mut times, mut last) = (OnCore::default(), [0; STATES], ([0; STATES], 0));
        for look in 1..=looks {
            spent_ms.iter().for_each(|(state, ms)| times[*state as usize] += ms * MS);
            // The system counts a wait when it is over.
            let counted = Counted { cpu_ns: look * cpu_ms * MS, waited_ns: (look - 1) * waited_ms * MS };
            let next = on_core.divide(times, Some(counted));
            assert!(next.1 >= last.1 && next.0.iter().zip(last.0).all(|(now, then)| *now >= then));
            assert_eq!(next.0.iter().sum::<u64>() + next.1, times.iter().sum::<u64>());
            last = next;
        }
        (last.0.map(|ns| ns / MS), last.1 / MS)
    }

    fn of(shown: ([u64; STATES], u64), state: PeState) -> u64 {
        shown.0[state as usize]
    }

    #[test]
    fn a_pe_that_computes_all_the_time_on_a_tenth_of_a_core_waits_for_it_most_of_the_time() {
        let found = shown(101, &[(PeState::Compute, 100)], 10, 90);
        assert_eq!((of(found, PeState::Compute), found.1), (1100, 9000));
    }

    #[test]
    fn waits_after_sleep_are_waits_for_a_core_and_the_rest_of_sleep_is_not() {
        let found = shown(101, &[(PeState::Compute, 10), (PeState::Asleep, 90)], 10, 30);
        assert_eq!((of(found, PeState::Compute), of(found, PeState::Asleep), found.1), (1010, 6090, 3000));
    }

    #[test]
    fn who_looks_for_messages_and_has_to_wait_for_that_waits_for_messages() {
        let found = shown(101, &[(PeState::Idle, 100)], 50, 50);
        assert_eq!((of(found, PeState::Idle), found.1), (10_100, 0));
        let half = shown(101, &[(PeState::Idle, 50), (PeState::Overhead, 50)], 50, 50);
        assert_eq!((of(half, PeState::Overhead), half.1), (2550, 2500));
    }

    #[test]
    fn a_wait_that_is_known_late_is_not_taken_from_what_was_computed_on_a_core_since() {
        let (mut on_core, mut times) = (OnCore::default(), [0; STATES]);
        times[PeState::Init as usize] = 100 * MS;
        on_core.divide(times, Some(Counted { cpu_ns: 10 * MS, waited_ns: 0 }));
        times[PeState::Compute as usize] = 5 * MS;
        let now = Counted { cpu_ns: 13 * MS, waited_ns: 92 * MS };
        let found = on_core.divide(times, Some(now));
        assert_eq!((found.0[PeState::Compute as usize], found.1), (3 * MS, 2 * MS));
    }

    #[test]
    fn a_process_that_is_stopped_most_of_the_time_does_not_compute_then() {
        let found = shown(111, &[(PeState::Compute, 100)], 10, 0);
        assert_eq!((of(found, PeState::Compute), found.1), (2010, 9090), "but for the first second");
    }

    #[test]
    fn a_long_wait_that_is_not_over_is_counted_once() {
        let (mut on_core, mut times) = (OnCore::default(), [0; STATES]);
        // Half a second without a core, of which the system knows only afterwards, again and again.
        for look in 1..=1000_u64 {
            let (rounds, in_round) = (look / 10, look % 10);
            times[PeState::Compute as usize] += 100 * MS;
            let cpu_ns = (rounds * 5 + in_round.min(5)) * 100 * MS;
            let waited_ns = rounds * 500 * MS;
            let (shown, waited) = on_core.divide(times, Some(Counted { cpu_ns, waited_ns }));
            assert!(waited <= waited_ns, "{look}");
            assert_eq!(shown[PeState::Compute as usize] + waited, look * 100 * MS);
        }
    }

    #[test]
    fn sleep_for_the_own_share_is_no_wait() {
        let found = shown(101, &[(PeState::Compute, 50), (PeState::Throttled, 50)], 50, 0);
        assert_eq!((of(found, PeState::Throttled), found.1), (5050, 0));
    }

    #[test]
    fn nothing_is_divided_where_the_system_does_not_count() {
        let mut on_core = OnCore::default();
        assert_eq!(on_core.divide([5; STATES], None), ([5; STATES], 0));
        assert_eq!(Counted::of(0), None);
    }

    #[test]
    fn the_system_counts_for_this_thread() {
        let here = nix::unistd::gettid().as_raw();
        let Some(before) = Counted::of(here) else { return };
        let mut sum = 0.0_f64;
        // Much shorter than a tick.
        while Counted::of(here).is_some_and(|now| now.cpu_ns < before.cpu_ns + MS / 10) {
            (0..1000).for_each(|n| sum += f64::from(n).sqrt());
        }
        assert!(clock_ns(here) >= before.cpu_ns);
        assert!(std::hint::black_box(sum) > 0.0);
    }
}
