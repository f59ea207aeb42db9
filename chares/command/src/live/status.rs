//! A line now and then about a run that has no terminal: where it is, how much of the PEs' time is used, what is slow.

use runtime::monitor::wire::{NodeSnapshot, PeSnapshot, Phase, RunInfo};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// What is known of a run, and was when the last line was written.
#[derive(Debug, Default)]
pub(crate) struct Status {
    phase: Phase,
    latest: BTreeMap<u16, Used>,
    told: BTreeMap<u16, Used>,
    told_at: Duration,
}

/// What the PEs of a node have done with their time.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    computing_ns: u64,
    all_ns: u64,
}

impl Status {
    pub(crate) fn hears(&mut self, snapshot: &NodeSnapshot) {
        let computing = |pe: &PeSnapshot| pe.compute_ns.saturating_add(pe.init_ns);
        let all_ns = snapshot.uptime_ns.saturating_mul(snapshot.pes.len() as u64);
        let computing_ns = snapshot.pes.iter().map(computing).fold(0, u64::saturating_add);
        self.latest.insert(snapshot.node, Used { computing_ns, all_ns });
    }

    pub(crate) fn enters(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// The line for this moment, if one is due: `left_s` is how long the run will take, if that is known.
    pub(crate) fn due(&mut self, now: Duration, run: &RunInfo, left_s: Option<f64>) -> Option<String> {
        if now < self.told_at + EVERY {
            return None;
        }
        self.told_at = now;
        let mut parts = vec![format!("{}: {}", clock(now.as_secs_f64()), self.place())];
        parts.extend(left_s.map(|left| format!("{} left", clock(left))));
        parts.extend(self.computing());
        self.told = self.latest.clone();
        let slow = run.slowdowns.iter().rfind(|slow| slow.until_s.is_none());
        let node = slow.and_then(|slow| Some((slow, run.nodes.iter().find(|info| info.node == slow.node)?)));
        parts.extend(node.map(|(slow, info)| slow.sentence(&info.name)));
        Some(parts.join(", "))
    }

    /// Where the run is, with what the application says of it: an error, an energy.
    fn place(&self) -> String {
        let Phase { name, done, total, detail, .. } = &self.phase;
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

    /// What part of the PEs' time since the last line went into entry methods.
    fn computing(&self) -> Option<String> {
        let since = |(node, now): (&u16, &Used)| {
            let before = self.told.get(node).copied().unwrap_or_default();
            Used {
                computing_ns: now.computing_ns.saturating_sub(before.computing_ns),
                all_ns: now.all_ns.saturating_sub(before.all_ns),
            }
        };
        let add = |a: Used, b: Used| Used {
            computing_ns: a.computing_ns.saturating_add(b.computing_ns),
            all_ns: a.all_ns.saturating_add(b.all_ns),
        };
        let all = self.latest.iter().map(since).fold(Used::default(), add);
        let percent = (all.all_ns > 0).then(|| 100.0 * all.computing_ns as f64 / all.all_ns as f64)?;
        Some(format!("PEs compute {percent:.0} % of the time"))
    }
}

/// Seconds as hours, minutes and seconds.
fn clock(seconds: f64) -> String {
    let s = seconds.max(0.0) as u64;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::monitor::wire::{NodeInfo, Slowdown};

    fn snapshot(node: u16, uptime_s: u64, compute_s: u64) -> NodeSnapshot {
        let pe = PeSnapshot { compute_ns: compute_s * 1_000_000_000, ..PeSnapshot::default() };
        NodeSnapshot { node, uptime_ns: uptime_s * 1_000_000_000, pes: vec![pe], ..NodeSnapshot::default() }
    }

    #[test]
    fn a_line_says_where_the_run_is_and_what_it_makes_of_its_pes() {
        let mut status = Status::default();
        let mut run = RunInfo::default();
        let at = Duration::from_secs;
        assert_eq!(status.due(at(9), &run, None), None);
        assert_eq!(status.due(at(10), &run, None).as_deref(), Some("00:00:10: starting"));
        let phase = Phase {
            name: "sweep".into(),
            done: 4,
            total: 9,
            detail: "error 1e-3".into(),
            ..Phase::default()
        };
        status.enters(phase);
        status.hears(&snapshot(1, 20, 15));
        status.hears(&snapshot(2, 20, 5));
        let line = status.due(at(20), &run, Some(61.5));
        let words = "00:00:20: sweep 4 of 9, error 1e-3, 00:01:01 left, PEs compute 50 % of the time";
        assert_eq!(line.as_deref(), Some(words));
        let phase = |done| Phase {
            name: "evaluation".into(),
            done,
            detail: "-3.540 eV, 2.1e-2 eV/A".into(),
            ..Phase::default()
        };
        status.enters(phase(7));
        assert_eq!(status.place(), "evaluation 7, -3.540 eV, 2.1e-2 eV/A");
        status.enters(phase(0));
        assert_eq!(status.place(), "evaluation, -3.540 eV, 2.1e-2 eV/A");
        status.hears(&snapshot(1, 30, 25));
        status.hears(&snapshot(2, 30, 15));
        let slow =
            Slowdown { node: 2, since_s: 25.0, delivered: 0.5, is_of_speed: true, ..Slowdown::default() };
        run.slowdowns = vec![slow];
        run.nodes = vec![NodeInfo { node: 2, name: "slow".into(), ..NodeInfo::default() }];
        let line = status.due(at(30), &run, None).unwrap();
        let end = "PEs compute 100 % of the time, slow delivers 0.50 of its measured speed since 00:25: it waits for its cores";
        assert!(line.ends_with(end), "{line}");
        assert_eq!(status.due(at(31), &run, None), None);
    }
}
