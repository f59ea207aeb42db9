//! What the launcher says of a run in which nodes die, freeze or end, whoever reports it and in whatever order.

use crate::class::Class;
use crate::failure::{Failure, Interruption, Kind, Sign};
use crate::ids::NodeId;
use crate::proto::lost_node::{EXPLANATION, Report, Verdict};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use crate::proto::standstill::LOOK_PERIOD;
use std::collections::BTreeSet;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
/// As for links: silence is taken for death after 3.75 s.
const SILENCE: Duration = Duration::from_millis(3750);
const LIMIT: Duration = Duration::from_secs(60);
/// When what is prepared happens.
const TROUBLE: Duration = Duration::from_secs(10);
/// A LAN as bad as any on which runs are promised to go on.
const LAN: Network = Network {
    delay_min: MS,
    delay_max: Duration::from_millis(30),
    lost_per_mille: 20,
    retransmission: Duration::from_millis(90),
};

#[derive(Clone)]
enum Said {
    Alive,
    Report(Report),
    End,
}

/// A process with links to all others: the launcher, which also attends the nodes' processes, or a node.
struct Process {
    me: NodeId,
    heard: Vec<Duration>,
    lost: Vec<NodeId>,
    next: Duration,
    /// The launcher's.
    verdict: Option<Verdict>,
    /// What those who attend the nodes' processes will say, and when the driver will be done.
    to_come: Vec<(Duration, Option<Report>)>,
    /// Links between nodes that the launcher was told are lost.
    lost_links: BTreeSet<[NodeId; 2]>,
    has_left: bool,
}

impl Process {
    fn new(n: u16, count: u16) -> Self {
        let names = (0..count).map(|n| format!("n{n}")).collect();
        Self {
            me: NodeId(n),
            heard: vec![Duration::ZERO; usize::from(count)],
            lost: Vec::new(),
            next: u32::from(n) * MS,
            verdict: (n == 0).then(|| Verdict::new(names, Duration::ZERO)),
            to_come: Vec::new(),
            lost_links: BTreeSet::new(),
            has_left: false,
        }
    }

    fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let (me, count) = (self.me, u16::try_from(self.heard.len()).unwrap());
        (0..count).map(NodeId).filter(move |other| *other != me)
    }

    fn report(&mut self, report: Report, out: &mut Outbox<Said>) {
        match &mut self.verdict {
            Some(verdict) => {
                if let Report::LinkLost { by, peer, .. } = &report
                    && *by != NodeId::LAUNCHER
                {
                    self.lost_links.insert([*by.min(peer), *by.max(peer)]);
                }
                verdict.hear(out.now(), report);
            }
            None => out.send(NodeId::LAUNCHER, Class::Control, Said::Report(report)),
        }
    }

    /// Whether nothing more can change what the launcher says.
    fn has_spoken(&self, now: Duration) -> bool {
        let due = self.verdict.as_ref().and_then(Verdict::due);
        due.is_some_and(|at| at <= now)
    }
}

impl Machine for Process {
    type Message = Said;

    fn receive(&mut self, from: NodeId, said: Said, out: &mut Outbox<Said>) {
        self.heard[from.as_usize()] = out.now();
        // A link that was lost stays so.
        if self.lost.contains(&from) {
            return;
        }
        if self.has_left || self.has_spoken(out.now()) {
            return;
        }
        match said {
            Said::Alive => {}
            Said::Report(report) => self.report(report, out),
            // The last that is heard of it.
            Said::End => self.has_left = true,
        }
    }

    fn wake(&mut self, out: &mut Outbox<Said>) {
        let now = out.now();
        if self.has_left || self.has_spoken(now) {
            return;
        }
        if let Some(verdict) = &mut self.verdict {
            verdict.look(now);
        }
        let (due, to_come) = std::mem::take(&mut self.to_come).into_iter().partition(|(at, _)| *at <= now);
        self.to_come = to_come;
        for (_, report) in due {
            if let Some(report) = report {
                self.report(report, out);
            } else if self.verdict.as_mut().is_some_and(Verdict::finish) {
                self.others().for_each(|node| out.send(node, Class::Control, Said::End));
            }
        }
        if self.next > now {
            return;
        }
        self.next = now + LOOK_PERIOD;
        // The launcher comes last: who is cut off from all accuses the others before it gives up itself.
        for other in self.others().collect::<Vec<_>>().into_iter().rev() {
            out.send(other, Class::Control, Said::Alive);
            if now.saturating_sub(self.heard[other.as_usize()]) >= SILENCE && !self.lost.contains(&other) {
                self.lost.push(other);
                if other == NodeId::LAUNCHER {
                    // A node whose launcher is gone ends itself.
                    self.has_left = true;
                    return;
                }
                self.report(Report::LinkLost { by: self.me, peer: other, reason: "silent".into() }, out);
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let first = self.to_come.iter().map(|(at, _)| *at).min();
        (!self.has_left).then(|| first.map_or(self.next, |at| at.min(self.next)))
    }
}

/// A run of two to ten nodes, and one of them.
struct Run {
    sim: Simulation<Process>,
    random: Random,
    victim: NodeId,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let count = 3 + random.node(9).0;
        let victim = NodeId(1 + random.node(count - 1).0);
        let sim = Simulation::new(seed, LAN, (0..count).map(|n| Process::new(n, count)));
        Self { sim, random, victim }
    }

    /// The launcher will be told this at that time; without a report, that the driver is done.
    fn comes(&mut self, at: Duration, report: Option<Report>) {
        self.sim.act(NodeId::LAUNCHER, |launcher, _| launcher.to_come.push((at, report)));
    }

    /// The victim's process dies at `at`; whoever attends it says so between `soonest` and `latest` after that.
    fn dies(&mut self, at: Duration, soonest: Duration, latest: Duration) {
        self.sim.kill(self.victim, at);
        let told = at + self.random.between(soonest, latest);
        let report = Report::Exited { node: self.victim, reason: "was killed by signal 9".into() };
        self.comes(told, Some(report));
    }

    /// What the launcher says once it has made up its mind, or after a minute.
    fn verdict(&mut self) -> Option<Failure> {
        let ended = self.sim.run(LIMIT, |sim| sim.machine(NodeId::LAUNCHER).has_spoken(sim.now()));
        assert_ne!(ended, Ended::Idle);
        self.sim.machine(NodeId::LAUNCHER).verdict.as_ref().unwrap().failure().cloned()
    }

    fn lost(&self, sign: Sign) -> Kind {
        Kind::NodeLost { node: format!("n{}", self.victim.0), sign }
    }
}

#[test]
fn a_process_that_dies_is_named_by_its_exit_before_anybody_misses_it() {
    for seed in 0..300 {
        let mut run = Run::new(seed);
        run.dies(TROUBLE, Duration::ZERO, 2 * SILENCE / 3);
        let failure = run.verdict().unwrap();
        assert_eq!(failure.kind, run.lost(Sign::Exit), "seed {seed}: {failure}");
        assert_eq!(failure.sentence, format!("node \"n{}\" was killed by signal 9", run.victim.0));
    }
}

/// Its host is gone: the exit is told late or never, and all who have links to it report them, the launcher too.
#[test]
fn whoever_misses_a_dead_or_frozen_node_first_it_is_the_one_that_is_named() {
    let mut signs = [0; 3];
    for seed in 0..300 {
        let mut run = Run::new(seed);
        match seed % 3 {
            0 => run.dies(TROUBLE, SILENCE - 500 * MS, SILENCE + 500 * MS),
            1 => run.sim.kill(run.victim, TROUBLE),
            _ => run.sim.freeze(run.victim, TROUBLE, Duration::from_secs(4 + seed % 20)),
        }
        let failure = run.verdict().unwrap();
        let all = [Sign::Exit, Sign::SilentToLauncher, Sign::SilentToNode];
        let sign = all.iter().position(|sign| failure.kind == run.lost(*sign));
        signs[sign.unwrap_or_else(|| panic!("seed {seed}: {failure:?}"))] += 1;
    }
    assert!(signs[..2].iter().all(|count| *count > 5), "both ways of noticing it came about: {signs:?}");
}

/// It comes back just when the others give it up, and accuses those of whom it has heard nothing meanwhile. Where only
/// one link was lost either end may be right.
#[test]
fn a_node_that_accuses_all_others_is_the_one_that_is_named() {
    let (mut lost, mut to_nodes) = (0, 0);
    for seed in 0..1000 {
        let mut run = Run::new(seed);
        let length = run.random.between(SILENCE - 300 * MS, SILENCE + 300 * MS);
        run.sim.freeze(run.victim, TROUBLE, length);
        let Some(failure) = run.verdict() else { continue };
        lost += 1;
        let links = run.sim.machine(NodeId::LAUNCHER).lost_links.len();
        to_nodes += u32::from(links > 1 && failure.kind == run.lost(Sign::SilentToNode));
        let victim = format!("node \"n{}\"", run.victim.0);
        assert!(failure.sentence.starts_with(&victim) || links == 1, "seed {seed}: {failure}");
    }
    assert!(lost > 500 && to_nodes > 50, "{lost} were lost, {to_nodes} to several nodes only");
}

/// A chare's failure takes its process with it: the sentence is under way while others notice the loss.
#[test]
fn what_a_node_said_before_it_died_explains_its_death() {
    for seed in 0..300 {
        let mut run = Run::new(seed);
        let fault = Report::Fault { by: run.victim, sentence: "Cell: Break failed".into() };
        // Its last word and the end of its process race each other to the launcher.
        run.dies(TROUBLE + MS, Duration::ZERO, 200 * MS);
        let said = TROUBLE + run.random.between(Duration::ZERO, 250 * MS);
        run.comes(said, Some(fault));
        let failure = run.verdict().unwrap();
        let expected = format!("node \"n{}\": Cell: Break failed", run.victim.0);
        assert_eq!((failure.kind, failure.sentence), (Kind::Failed, expected), "seed {seed}");
    }
}

#[test]
fn a_node_that_dies_after_its_farewell_is_missed_by_nobody() {
    for seed in 0..300 {
        let mut run = Run::new(seed);
        run.comes(TROUBLE, None);
        let later = TROUBLE + run.random.between(MS, 5000 * MS);
        run.dies(later, Duration::ZERO, 100 * MS);
        assert_eq!(run.verdict(), None, "seed {seed}");
    }
}

/// The driver may give up because of the loss itself: it is done after the first report, and not before the best.
#[test]
fn a_driver_that_is_done_after_a_loss_does_not_hide_it() {
    for seed in 0..300 {
        let mut run = Run::new(seed);
        run.dies(TROUBLE, MS, 100 * MS);
        run.comes(TROUBLE + 100 * MS, None);
        assert_eq!(run.verdict().map(|failure| failure.kind), Some(run.lost(Sign::Exit)), "seed {seed}");
    }
}

#[test]
fn a_launcher_that_stood_still_takes_the_blame_itself() {
    for seed in 0..300 {
        let mut run = Run::new(seed);
        run.sim.freeze(NodeId::LAUNCHER, TROUBLE, Duration::from_secs(5 + seed % 20));
        assert_eq!(run.verdict().map(|failure| failure.kind), Some(Kind::Standstill), "seed {seed}");
    }
}

#[test]
fn hiccups_of_three_seconds_cost_nobody() {
    for seed in 0..300 {
        let mut run = Run::new(seed);
        run.sim.freeze(NodeId::LAUNCHER, TROUBLE / 2, 2900 * MS);
        run.sim.freeze(run.victim, 2 * TROUBLE, 2900 * MS);
        assert_eq!(run.verdict(), None, "seed {seed}");
    }
}

/// The reports of one trouble, by any nodes and in any order within the time for explanations.
#[test]
fn the_order_of_the_reports_of_one_trouble_does_not_matter() {
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let link_lost = |by| Report::LinkLost { by: NodeId(by), peer: NodeId(1), reason: "silent".into() };
        let mut reports: Vec<Report> = (2..6).map(link_lost).filter(|_| random.below(2) == 0).collect();
        let mut expected = Sign::SilentToNode;
        if reports.is_empty() || random.below(2) == 0 {
            reports.push(link_lost(0));
            expected = Sign::SilentToLauncher;
        }
        if random.below(2) == 0 {
            reports.push(Report::Exited { node: NodeId(1), reason: "is gone".into() });
            expected = Sign::Exit;
        }
        let mut expected = Kind::NodeLost { node: "n1".into(), sign: expected };
        if random.below(3) == 0 {
            reports.push(Report::Fault { by: NodeId(1), sentence: "it failed".into() });
            expected = Kind::Failed;
        }
        if random.below(3) == 0 {
            reports.push(Report::Ended(Failure::interrupted(Interruption::Interrupt)));
            expected = Kind::Interrupted(Interruption::Interrupt);
        }
        let names = (0..6).map(|n| format!("n{n}")).collect();
        let mut verdict = Verdict::new(names, TROUBLE - EXPLANATION);
        assert_eq!((verdict.due(), verdict.failure()), (None, None));
        let mut first = None;
        while !reports.is_empty() {
            let at = usize::try_from(random.below(reports.len() as u64)).unwrap();
            let now = TROUBLE - 30 * MS * u32::try_from(reports.len()).unwrap();
            verdict.hear(now, reports.swap_remove(at));
            let first = *first.get_or_insert(now);
            assert!(verdict.due().is_some_and(|due| due <= first + EXPLANATION), "seed {seed}");
        }
        assert!(!verdict.finish(), "seed {seed}");
        assert_eq!(verdict.failure().map(|failure| failure.kind.clone()), Some(expected), "seed {seed}");
    }
}
