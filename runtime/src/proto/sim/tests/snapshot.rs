//! Snapshots of nodes whose PEs, and the driver, send each other money and say things to all, over links that delay and
//! reorder; and runs that go on from what was saved.

mod launcher;
mod node;
mod pe;

use crate::ids::{NodeId, PeId};
use crate::proto::sim::{Ended, Network, Random, Simulation};
use crate::topology::Topology;
use launcher::{Checkpoint, Launcher};
use node::Node;
use pe::{Habits, State};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Work takes a second or two. Who waits for its end, or for something that never comes, is not done so soon.
const LIMIT: Duration = Duration::from_secs(1000);
/// A snapshot is over after so long, whatever happens meanwhile.
const LONGEST: Duration = Duration::from_secs(60);
const PURSE: u64 = 1000;

/// What a careless programmer could have got wrong. Each is found by the same test that finds nothing otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A node passes things on in the colour that its PEs have by then.
    ForwardsInOwnColour,
    /// The launcher does not count a second time.
    ClosesAtFirstEqualCount,
    /// A frame is counted as received before it is passed on.
    CountsBeforeForwarding,
    /// It is counted as received when it has been passed on, and is not in the inboxes of the node yet.
    CountsBeforeDelivery,
    /// What is passed on is counted when it has left, and may have been counted as received by then.
    CountsSentLater,
    /// What the driver sends is not counted.
    DriverIsNotCounted,
    /// What was on its way is not saved.
    LogsNothing,
    /// What was sent after the cut of its sender is dealt with before that of its receiver.
    SetsNothingAside,
    /// What is set aside is saved.
    SavesAside,
    /// What is set aside is dealt with in the wrong order.
    ReversesAside,
    /// A PE is cut when something new comes, and not when it is told.
    CutsAtFirstNew,
    /// Whether something is late is found out when it is put into the inbox, and not when it is taken from there.
    ClassifiesTooSoon,
    /// What PEs of a node send each other has no colour.
    NeighboursSeeNoColour,
    /// The order to close is obeyed before what lies in the inbox is taken.
    CloseOvertakes,
    /// The driver is cut when it is told, like PEs, which it may have told more since they were told that.
    CutsDriverLikeOthers,
    /// What a PE was told behind the order to be cut, and has in its queue when it obeys that, is saved.
    SavesOrdersBehindCut,
    /// A snapshot begins when the one before is closing.
    BeginsBeforeOver,
    /// What was on its way is restored before what had come.
    RestoresLateFirst,
}

const MISTAKES: [Mistake; 18] = [
    Mistake::ForwardsInOwnColour,
    Mistake::ClosesAtFirstEqualCount,
    Mistake::CountsBeforeForwarding,
    Mistake::CountsBeforeDelivery,
    Mistake::CountsSentLater,
    Mistake::DriverIsNotCounted,
    Mistake::LogsNothing,
    Mistake::SetsNothingAside,
    Mistake::SavesAside,
    Mistake::ReversesAside,
    Mistake::CutsAtFirstNew,
    Mistake::ClassifiesTooSoon,
    Mistake::NeighboursSeeNoColour,
    Mistake::CloseOvertakes,
    Mistake::CutsDriverLikeOthers,
    Mistake::SavesOrdersBehindCut,
    Mistake::BeginsBeforeOver,
    Mistake::RestoresLateFirst,
];

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Of all that was dealt with, and when.
    trace: u64,
    snapshots: u64,
    /// Those of them that were over before the work was.
    in_time: u64,
    were_aside: u64,
    were_late: u64,
}

impl Seen {
    fn and(self, other: Self) -> Self {
        Self {
            trace: self.trace ^ other.trace.rotate_left(1),
            snapshots: self.snapshots + other.snapshots,
            in_time: self.in_time + other.in_time,
            were_aside: self.were_aside + other.were_aside,
            were_late: self.were_late + other.were_late,
        }
    }
}

/// All PEs, and the driver, hold all the money, and each has got what others have sent to it, once all have dealt with what
/// waits.
fn check(states: &BTreeMap<PeId, State>) -> Result<(), String> {
    let done = |(pe, state): (&PeId, &State)| Ok((*pe, state.clone().with_queue_done()?));
    let states = states.iter().map(done).collect::<Result<BTreeMap<_, _>, String>>()?;
    let (mut money, mut sent, mut got) = (0, BTreeMap::new(), BTreeMap::new());
    for (pe, state) in &states {
        money += state.purse;
        sent.extend(state.sent.iter().map(|((to, kind), count)| ((*pe, *to, *kind), *count)));
        got.extend(state.got.iter().map(|((from, kind), count)| ((*from, *pe, *kind), *count)));
    }
    let all = PURSE * states.len() as u64;
    if money != all {
        return Err(format!("{money} of {all} coins are there"));
    }
    match sent.iter().find(|(key, count)| got.get(key) != Some(count)) {
        Some((key, count)) => Err(format!("{key:?}: {count} were sent and {:?} have come", got.get(key))),
        None if sent.len() < got.len() => Err("something came that nobody has sent".into()),
        None => Ok(()),
    }
}

/// Some PEs on nodes of any size; the first node is the launcher's, which has none.
fn nodes(pes: u32, random: &mut Random) -> Vec<u32> {
    let (mut counts, mut left, most) = (vec![0], pes, 1 + random.below(4));
    while left > 0 {
        let here = u32::try_from(1 + random.below(most)).unwrap().min(left);
        counts.push(here);
        left -= here;
    }
    counts
}

/// A run, and what has been seen of it.
struct Play {
    sim: Simulation<Node>,
    random: Random,
    habits: Habits,
    seen: Seen,
}

impl Play {
    /// One that begins with these states.
    fn new(random: &mut Random, states: &BTreeMap<PeId, State>, mistake: Option<Mistake>) -> Self {
        let network = Network::any(random);
        let pes = u32::try_from(states.len()).unwrap() - 1;
        let delay = Duration::from_millis(1) + network.delay_max;
        let habits = Habits {
            pes,
            // Not so quick that all is done before anything is there.
            pace: random.between(delay / 4, delay),
            long: if random.below(2) == 0 { 20 } else { 1 },
            stops_one_in: 4 + random.below(24),
            stop: random.between(Duration::ZERO, 12 * delay),
            says_one_in: 2 + random.below(8),
            mistake,
        };
        let topology = Rc::new(Topology::new(&nodes(pes, random)));
        let (seed, ids) = (random.bits(), 0..topology.node_count());
        let node = |id| Node::new(NodeId(id), &topology, states, seed, habits);
        Self {
            sim: Simulation::new(seed, network, ids.map(node)),
            random: Random::new(random.bits()),
            habits,
            seen: Seen::default(),
        }
    }

    fn launcher(sim: &Simulation<Node>) -> &Launcher {
        sim.machine(NodeId::LAUNCHER).launcher.as_ref().unwrap()
    }

    /// Goes on until something is so; whether it has come to that before `until`.
    fn run(&mut self, until: Duration, is_so: impl Fn(&Simulation<Node>) -> bool) -> Result<bool, String> {
        let ended = self.sim.run(until, is_so);
        let wrong = self.sim.machines().flat_map(|node| &node.pes).find_map(|pe| pe.wrong.clone());
        wrong.map_or(Ok(ended == Ended::Reached), Err)
    }

    /// Begins a snapshot soon, and goes on until it is over.
    fn snapshot(&mut self) -> Result<(), String> {
        let pace = self.habits.pace;
        let pause = self.random.between(Duration::ZERO, 6 * pace);
        self.run(self.sim.now() + pause, |_| false)?;
        let begun = self.sim.now();
        if self.random.below(4) == 0 {
            let node = self.random.node(u16::try_from(self.sim.ids().count()).unwrap());
            let after = self.random.between(Duration::ZERO, 8 * pace);
            self.sim.freeze(node, begun + after, 20 * pace);
        }
        self.sim.act(NodeId::LAUNCHER, Node::begin);
        let is_hasty = self.habits.make(Mistake::BeginsBeforeOver);
        let is_over = |sim: &Simulation<Node>| {
            let launcher = Self::launcher(sim);
            launcher.snapshot.is_none() || is_hasty && launcher.is_closing
        };
        if !self.run(begun + LONGEST, is_over)? {
            return Err("a snapshot does not end".into());
        }
        self.seen.snapshots += 1;
        let is_at_work = |node: &Node| node.pes.iter().any(|pe| pe.state.whims > 0);
        self.seen.in_time += u64::from(self.sim.machines().any(is_at_work));
        Ok(())
    }

    /// Does the work, and takes so many snapshots meanwhile.
    fn play(&mut self, snapshots: u64) -> Result<Vec<Checkpoint>, String> {
        (0..snapshots).try_for_each(|_| self.snapshot())?;
        self.run(LIMIT, |_| false)?;
        let pes = || self.sim.machines().flat_map(|node| &node.pes);
        if !self.sim.machines().all(Node::is_done) {
            return Err("something is left over".into());
        }
        check(&pes().map(|pe| (pe.me, pe.state.clone())).collect())?;
        self.seen.trace = pes().fold(0, |sum, pe| sum ^ pe.trace().rotate_left(pe.me.0 % 64));
        self.seen.were_aside = pes().map(|pe| pe.were_aside).sum();
        let checkpoints = Self::launcher(&self.sim).checkpoints.clone();
        checkpoints.iter().try_for_each(|one| check(&one.restored(self.habits.mistake)))?;
        let late = checkpoints.iter().flat_map(|one| one.late.values());
        self.seen.were_late = late.map(|late| late.len() as u64).sum();
        Ok(checkpoints)
    }
}

/// A run with snapshots, and another one that goes on from one of them on other nodes.
fn play(seed: u64, mistake: Option<Mistake>) -> Result<Seen, String> {
    let mut random = Random::new(seed);
    let pes = u32::try_from(1 + random.below(16)).unwrap();
    let whims = u32::try_from(20 + random.below(80)).unwrap();
    let all = (0..pes).map(PeId).chain([PeId::DRIVER]);
    let states = all.map(|pe| (pe, State { purse: PURSE, whims, ..State::default() })).collect();
    let mut first = Play::new(&mut random, &states, mistake);
    let checkpoints = first.play(random.below(5))?;
    let Some(last) = checkpoints.get(usize::try_from(random.below(checkpoints.len() as u64)).unwrap()) else {
        return Ok(first.seen);
    };
    let mut second = Play::new(&mut random, &last.restored(mistake), mistake);
    second.play(random.below(2))?;
    Ok(first.seen.and(second.seen))
}

/// Each is a run of its own, or two: this many take a second.
const SEEDS: u64 = 300;

#[test]
fn a_snapshot_of_a_run_that_goes_on_is_one_from_which_it_can_go_on() {
    let mut all = Seen::default();
    for seed in 0..SEEDS {
        let seen = play(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        if seed % 30 == 0 {
            assert_eq!(play(seed, None), Ok(seen), "the same seed gives the same run");
        }
        all = all.and(seen);
    }
    assert!(all.snapshots > 2 * SEEDS && 3 * all.in_time > all.snapshots, "{all:?}");
    assert!(all.were_aside > 10 * SEEDS && all.were_late > 10 * SEEDS, "{all:?}");
}

#[test]
fn planted_mistakes_are_found() {
    for mistake in MISTAKES {
        let found = (0..20_000).find(|seed| play(*seed, Some(mistake)).is_err());
        assert!(found.is_some(), "{mistake:?} makes no difference");
    }
}
