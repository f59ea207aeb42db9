//! What is known of all chares of a run: which there are, where they are, what they cost and how large they are.

use super::graph::{self, Graph};
use crate::ids::{ElementId, NodeId, PeId};
use crate::loads::{ChareLoad, KnownLoads, NodeLoads, PeLoads, Whereabouts};
use crate::topology::Topology;
use loadbalance::Part;
use loadbalance::balance::span::Span;
use loadbalance::balance::{Chare, Mobility, Pe, View};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Collects what nodes say until all have said something, and makes a view of it for a balancer.
#[derive(Debug)]
pub struct Census {
    topology: Topology,
    told: BTreeSet<NodeId>,
    pes: Vec<PeNow>,
    chares: Vec<Known>,
    numbers: FxHashMap<ElementId, usize>,
    /// How many chares there were in the last view, and which of the view before it had ended since.
    viewed: usize,
    gone: Vec<u32>,
    graph: Graph,
    /// Bytes that nodes may still take whose memory is limited, as they said last.
    rooms: BTreeMap<NodeId, u64>,
    /// Over how long work was done.
    span: Span,
    /// The same for what is saved.
    long: Span,
    /// The work of chares that say what remains, and by how many units that fell meanwhile.
    done: Done,
    bytes_per_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Done {
    work: f64,
    units: f64,
}

/// What a balancer looks at besides loads and speeds.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// At who talks to whom.
    pub at_edges: bool,
    /// At where chares lie.
    pub at_places: bool,
}

/// A PE.
#[derive(Clone, Debug)]
struct PeNow {
    /// Since the last view.
    wall_s: f64,
    fixed_s: f64,
    /// The part of its time that the system let it run when it had something to do, as it was measured last.
    cpu_part: f64,
    /// The part of a core that it got when it computed for nothing since the last view.
    probed: Option<f64>,
    /// Work for what cannot move, in the span.
    fixed: f64,
}

#[derive(Clone, Debug)]
struct Known {
    element: ElementId,
    pe: PeId,
    bytes: u64,
    mobility: Mobility,
    /// Processor time since the last view, on each PE where it was.
    worked: Vec<(PeId, f64)>,
    /// Its work in the span.
    work: f64,
    /// The same in the long one, and how many seconds its PEs have told of there.
    long_work: f64,
    long_s: f64,
    /// What it still has to do, as it said itself.
    remaining: Option<f64>,
    /// For how many seconds it has been nowhere.
    nowhere_s: Option<f64>,
    /// Its number is still that of the last view; nothing else is left of it.
    has_ended: bool,
}

impl Known {
    /// Its part of the work in the span: what it did, or, if it says what remains, as much as that is worth.
    fn share(&self, worth: Option<f64>) -> f64 {
        self.remaining.zip(worth).map_or(self.work, |(units, worth)| units * worth)
    }
}

impl PeNow {
    /// Nothing has been said of it.
    const UNKNOWN: Self = Self { wall_s: 0.0, fixed_s: 0.0, cpu_part: 1.0, probed: None, fixed: 0.0 };
}

/// A chare that left a PE and has not come anywhere for so many seconds has ended: of one that did so soon after a move, the PE
/// where it was before may speak last.
const NOWHERE_MAX_S: f64 = 60.0;
/// The part of all work that chares do who say what remains, if that is to tell how much is left.
const MOST: f64 = 0.9;
/// What is saved is for a run that goes on elsewhere, where chares are placed once and not followed. Over the few rounds that a
/// balancer looks at, a load depends on when its chare was last counted.
const LONG: Span = Span::of(100.0, 120.0);
/// A chare that does less than this part of what one does on average does nothing.
const NOTHING: f64 = 1e-3;

impl Census {
    /// Of a run of which nothing is known yet.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        Self {
            topology: topology.clone(),
            told: BTreeSet::new(),
            pes: vec![PeNow::UNKNOWN; topology.pe_count() as usize],
            chares: Vec::new(),
            numbers: FxHashMap::default(),
            viewed: 0,
            gone: Vec::new(),
            graph: Graph::default(),
            rooms: BTreeMap::new(),
            span: Span::default(),
            long: LONG,
            done: Done::default(),
            bytes_per_s: 0.0,
        }
    }

    /// Takes over which PEs are on which node.
    pub fn look_at(&mut self, topology: &Topology) {
        if self.topology.compute_nodes() != topology.compute_nodes() {
            self.topology = topology.clone();
            self.pes.resize(topology.pe_count() as usize, PeNow::UNKNOWN);
        }
    }

    /// Takes what a node says, which has been checked.
    pub fn take(&mut self, from: NodeId, loads: NodeLoads) {
        self.told.insert(from);
        self.bytes_per_s = self.bytes_per_s.max(loads.bytes_per_s);
        match loads.room_bytes {
            Some(room) => self.rooms.insert(from, room),
            None => self.rooms.remove(&from),
        };
        for PeLoads { pe, wall_ns, cpu_part, probed, fixed_ns, chares, traffic, .. } in loads.pes {
            self.graph.take(traffic);
            let Some(now) = self.pes.get_mut(pe.as_usize()) else { continue };
            now.wall_s += seconds(wall_ns);
            now.fixed_s += seconds(fixed_ns);
            now.cpu_part = cpu_part.unwrap_or(now.cpu_part);
            now.probed = probed.or(now.probed);
            chares.into_iter().for_each(|chare| self.take_chare(pe, chare));
        }
    }

    fn take_chare(&mut self, pe: PeId, chare: ChareLoad) {
        let ChareLoad { element, cpu_ns, bytes, whereabouts, mobility, remaining } = chare;
        let next = self.chares.len();
        if whereabouts != Whereabouts::Here && !self.numbers.contains_key(&element) {
            // Whoever has it tells of it, if there still is one.
            self.pes[pe.as_usize()].fixed_s += seconds(cpu_ns);
            return;
        }
        let number = *self.numbers.entry(element).or_insert(next);
        if number == next {
            self.chares.push(Known {
                element,
                pe,
                bytes: 0,
                mobility: Mobility::Anywhere,
                worked: Vec::new(),
                work: 0.0,
                long_work: 0.0,
                long_s: 0.0,
                remaining: None,
                nowhere_s: None,
                has_ended: false,
            });
        }
        let known = &mut self.chares[number];
        known.worked.push((pe, seconds(cpu_ns)));
        // Of one that has gone, whoever has it now may have spoken already; as a rule less and less remains.
        let is_newest = whereabouts == Whereabouts::Here || known.pe == pe;
        let is_less = || remaining.zip(known.remaining).is_none_or(|(units, before)| units < before);
        if is_newest || is_less() {
            let fallen = remaining.zip(known.remaining).map_or(0.0, |(units, before)| before - units);
            self.done.units += fallen.max(0.0);
            known.remaining = remaining.or(known.remaining);
        }
        if bytes > 0 {
            known.bytes = bytes;
        }
        match whereabouts {
            Whereabouts::Here => (known.pe, known.nowhere_s, known.mobility) = (pe, None, mobility),
            Whereabouts::Left if known.pe == pe => known.nowhere_s = known.nowhere_s.or(Some(0.0)),
            Whereabouts::Left => {}
            Whereabouts::Ended => self.end(number),
        }
    }

    /// A chare has ended. What it did counts as work that stays where it was done: where chares come and go, others do the same
    /// there.
    fn end(&mut self, number: usize) {
        let known = &mut self.chares[number];
        known.has_ended = true;
        self.numbers.remove(&known.element);
        for (pe, worked_s) in known.worked.drain(..) {
            self.pes[pe.as_usize()].fixed_s += worked_s;
        }
        self.pes[known.pe.as_usize()].fixed += std::mem::take(&mut known.work);
        if number >= self.viewed {
            self.chares.swap_remove(number);
            if let Some(moved) = self.chares.get(number) {
                self.numbers.insert(moved.element, number);
            }
        }
    }

    /// Whether every node has said something since the last view.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.topology.compute_nodes().iter().all(|node| self.told.contains(node))
    }

    /// Seconds over which the work of a view was done.
    #[must_use]
    pub const fn span_s(&self) -> f64 {
        self.span.seconds()
    }

    /// The most bytes per second that any node has got from others.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes_per_s
    }

    /// What chares do per second, and the speeds that PEs delivered last, where `cpu_rates` is the work that each PE does in
    /// a second of processor time. Who talks to whom, and where chares lie, is only told to who looks at it.
    pub fn view(&mut self, cpu_rates: &[f64], looks: Looks) -> View {
        self.told.clear();
        self.forget();
        self.add(cpu_rates);
        let nodes = self.topology.compute_nodes();
        let node_of = |pe: u32| {
            let node = self.topology.node_of(PeId(pe));
            nodes.iter().position(|one| *one == node).unwrap_or_default()
        };
        let memory = self.memory();
        let of_pe = |(pe, now): (u32, &PeNow)| {
            let speed = rate(cpu_rates, PeId(pe)) * now.cpu_part;
            let probed = now.probed.map(|part| rate(cpu_rates, PeId(pe)) * part);
            let background = per_second(now.fixed, self.span_s());
            let memory_bytes = memory[pe as usize];
            Pe { background, memory_bytes, probed, ..Pe::from(Part { node: node_of(pe), speed }) }
        };
        let worth = self.worth_of_remaining();
        let of_chare = |known: &Known| {
            let load = per_second(known.share(worth), self.span_s());
            Chare { pe: known.pe.0, load, bytes: known.bytes, mobility: known.mobility.clone() }
        };
        let (pes, chares) = ((0..).zip(&self.pes).map(of_pe), self.chares.iter().map(of_chare));
        let elements: Vec<ElementId> = self.chares.iter().map(|known| known.element).collect();
        let number = |one: &ElementId| self.numbers.get(one).and_then(|number| u32::try_from(*number).ok());
        let edges = if looks.at_edges { graph::edges(&self.graph.pairs(), number) } else { Vec::new() };
        let places = if looks.at_places { graph::places(&elements) } else { Vec::new() };
        let view = View { pes: pes.collect(), chares: chares.collect(), edges, places, ..View::default() };
        self.pes.iter_mut().for_each(|pe| pe.probed = None);
        self.viewed = self.chares.len();
        view
    }

    /// The work in the span that one unit of what remains to be done counts as, if anybody has said that something remains:
    /// together, chares that say so do what they did, but each the part of it that it has of what remains to them all.
    fn worth_of_remaining(&self) -> Option<f64> {
        let (work, units) = self.told();
        // Of next to nothing the worth may be larger than numbers get.
        Some(work / units).filter(|worth| worth.is_finite())
    }

    /// The work that chares still have to do, if those say what remains that do most: what a unit of it takes is known by what was
    /// done since.
    #[must_use]
    pub fn left_work(&self) -> Option<f64> {
        let all: f64 = self.chares.iter().map(|known| known.work).sum();
        let (work, units) = self.told();
        let left = units * self.done.work / self.done.units;
        (work >= MOST * all && left.is_finite()).then_some(left)
    }

    /// The work in the span of those chares that say what remains, and what that is together.
    fn told(&self) -> (f64, f64) {
        let there = self.chares.iter().filter(|known| !known.has_ended);
        let told = there.filter_map(|known| known.remaining.map(|units| (known.work, units)));
        told.fold((0.0, 0.0), |(work, units), one| (work + one.0, units + one.1))
    }

    /// Which chares of the view before the last had ended when that was made, in order. Those behind them have closed the ranks.
    #[must_use]
    pub fn gone(&self) -> &[u32] {
        &self.gone
    }

    /// Bytes of chares that each PE may hold: those that it holds, and its share of what its node may still take. Where all
    /// chares of others would fit in, nothing limits it: balancers have more to choose from without limits.
    fn memory(&self) -> Vec<Option<u64>> {
        let mut held = vec![0u64; self.pes.len()];
        for known in self.chares.iter().filter(|known| known.nowhere_s.is_none()) {
            held[known.pe.as_usize()] = held[known.pe.as_usize()].saturating_add(known.bytes);
        }
        let all = held.iter().copied().fold(0, u64::saturating_add);
        let mut memory = vec![None; self.pes.len()];
        for (node, room) in &self.rooms {
            let pes = self.topology.pes(*node);
            let own = pes.iter().map(|pe| held[*pe as usize]).fold(0, u64::saturating_add);
            // A chare that comes is there twice for a moment: as bytes, and as what is made of them.
            let room = room / 2;
            if room >= all - own {
                continue;
            }
            for pe in pes {
                let share = room / pes.len() as u64;
                memory[*pe as usize] = Some(held[*pe as usize].saturating_add(share));
            }
        }
        memory
    }

    /// All that is known, as of the last view.
    #[must_use]
    pub fn known(&self) -> KnownLoads {
        let work = |work: f64| per_second(work, self.span_s());
        let worth = self.worth_of_remaining();
        let load = |known: &Known| match known.remaining.zip(worth) {
            Some(_) => work(known.share(worth)),
            None => per_second(known.long_work, known.long_s),
        };
        let known = self.chares.iter().filter(|known| !known.has_ended);
        KnownLoads {
            chares: known.map(|known| (known.element, load(known))).collect(),
            fixed: self.pes.iter().map(|pe| work(pe.fixed)).collect(),
            edges: self.graph.pairs(),
        }
    }

    /// Adds what was done since the last view to what was done before.
    fn add(&mut self, cpu_rates: &[f64]) {
        let since_s = self.since_s();
        let mean = self.chares.iter().map(|known| known.work).sum::<f64>() / self.chares.len().max(1) as f64;
        let does_something = |known: &&Known| !known.worked.is_empty() || known.work > mean * NOTHING;
        let doing = self.chares.iter().filter(does_something).count();
        let heard = self.chares.iter().filter(|known| known.worked.iter().any(|(_, s)| *s > 0.0)).count();
        let kept = self.span.passes(since_s, heard, doing);
        let kept_long = self.long.passes(since_s, heard, doing);
        for known in &mut self.chares {
            let wall_s = |pe: PeId| self.pes[pe.as_usize()].wall_s;
            let (mut done, mut done_as_told) = (0.0, 0.0);
            for (pe, s) in known.worked.drain(..) {
                done += rate(cpu_rates, pe) * s * per_second(since_s, wall_s(pe));
                done_as_told += rate(cpu_rates, pe) * s;
            }
            known.work = known.work * kept + done;
            // PEs tell at different moments. Over many rounds that evens out; what is put in proportion round by round does not.
            known.long_work = known.long_work * kept_long + done_as_told;
            known.long_s = known.long_s * kept_long + wall_s(known.pe);
            self.done.work += if known.remaining.is_some() { done } else { 0.0 };
        }
        for (number, pe) in (0..).map(PeId).zip(&mut self.pes) {
            pe.fixed =
                pe.fixed * kept + rate(cpu_rates, number) * pe.fixed_s * per_second(since_s, pe.wall_s);
            (pe.wall_s, pe.fixed_s) = (0.0, 0.0);
        }
        let numbers = &self.numbers;
        self.graph.add(kept, |one| numbers.contains_key(one));
    }

    /// The chare of that number, and the PE where it was last.
    #[must_use]
    pub fn chare(&self, number: u32) -> Option<(ElementId, PeId)> {
        self.chares.get(number as usize).map(|known| (known.element, known.pe))
    }

    /// Forgets chares that have ended.
    fn forget(&mut self) {
        let since_s = self.since_s();
        self.chares.iter_mut().filter_map(|known| known.nowhere_s.as_mut()).for_each(|s| *s += since_s);
        let is_lost = |known: &Known| known.nowhere_s.is_some_and(|s| s > NOWHERE_MAX_S);
        for number in (0..self.chares.len()).rev() {
            if is_lost(&self.chares[number]) && !self.chares[number].has_ended {
                self.end(number);
            }
        }
        let has_ended = |(number, known): (u32, &Known)| known.has_ended.then_some(number);
        self.gone = (0..).zip(&self.chares).filter_map(has_ended).collect();
        let Some(&first) = self.gone.first() else { return };
        self.chares.retain(|known| !known.has_ended);
        for (number, known) in self.chares.iter().enumerate().skip(first as usize) {
            self.numbers.insert(known.element, number);
        }
    }

    /// Seconds since the last view, as PEs have counted them.
    fn since_s(&self) -> f64 {
        self.pes.iter().map(|pe| pe.wall_s).sum::<f64>() / self.pes.len().max(1) as f64
    }
}

fn rate(cpu_rates: &[f64], pe: PeId) -> f64 {
    cpu_rates.get(pe.as_usize()).copied().filter(|rate| *rate > 0.0).unwrap_or(1.0)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn per_second(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementIndex};
    use crate::loads::{Amount, ChareLoad, Traffic};
    use loadbalance::balance::Edge;

    const ALL: Looks = Looks { at_edges: true, at_places: true };
    const SECOND: u64 = 1_000_000_000;

    fn element(at: u32) -> ElementId {
        ElementId { collection: CollectionId::made_by(PeId(0), 1), index: ElementIndex([at, 0, 0]) }
    }

    /// That the chares of these numbers worked for so many parts of a second on a PE, and have not left it.
    fn said(pe: u32, cpu_part: f64, chares: &[(u32, f64, bool)]) -> NodeLoads {
        let whereabouts = |is_here| if is_here { Whereabouts::Here } else { Whereabouts::Left };
        let chares: Vec<_> =
            chares.iter().map(|(at, part, is_here)| (*at, *part, whereabouts(*is_here))).collect();
        told(pe, cpu_part, &chares)
    }

    /// That this remains to be done by chares, which are in the order of their numbers.
    fn with_remaining(mut loads: NodeLoads, units: &[Option<f64>]) -> NodeLoads {
        let chares = loads.pes.iter_mut().flat_map(|pe| &mut pe.chares);
        chares.zip(units).for_each(|(chare, units)| chare.remaining = *units);
        loads
    }

    #[test]
    fn chares_that_say_what_remains_count_by_that() {
        let mut census = census();
        let mut view = |first: &[Option<f64>], second: &[Option<f64>]| {
            let one = said(0, 1.0, &[(0, 0.5, true), (1, 0.1, true)]);
            census.take(NodeId(1), with_remaining(one, first));
            census.take(NodeId(2), with_remaining(said(1, 1.0, &[(2, 0.2, true), (3, 0.3, true)]), second));
            let view = census.view(&[1.0, 1.0], ALL);
            assert!(view.check().is_ok());
            let loads: Vec<f64> = view.chares.iter().map(|chare| chare.load).collect();
            let saved = census.known().chares.into_iter().map(|(_, load)| load);
            let are_alike = saved.zip(&loads).all(|(saved, load)| (saved - load).abs() < 1e-9);
            assert!(are_alike, "a run that goes on is placed by the same");
            loads.into_iter().map(|load| (load * 1e6).round() / 1e6).collect::<Vec<_>>()
        };
        assert_eq!(view(&[None, None], &[None, None]), [0.5, 0.1, 0.2, 0.3]);
        // Of those that say so 1 was done, of which they count as 1 to 3; nobody knows of the last.
        assert_eq!(view(&[Some(10.0), Some(30.0)], &[Some(0.0), None]), [0.2, 0.6, 0.0, 0.3]);
        assert_eq!(
            view(&[None, Some(10.0)], &[None, None]),
            [0.4, 0.4, 0.0, 0.3],
            "it holds until it is said anew"
        );
        assert_eq!(
            view(&[Some(0.0), Some(0.0)], &[None, None]),
            [0.5, 0.1, 0.2, 0.3],
            "all are at their end"
        );
        assert_eq!(view(&[Some(1e-320), Some(0.0)], &[None, None]), [0.5, 0.1, 0.2, 0.3], "as good as");
    }

    #[test]
    fn what_is_saved_does_not_depend_on_who_worked_last() {
        let mut census = census();
        for turn in 0..400u32 {
            let at = |chare: u32| if turn % 4 == chare { 0.4 } else { 0.0 };
            census.take(NodeId(1), said(0, 1.0, &[(0, at(0), true), (1, at(1), true)]));
            census.take(NodeId(2), said(1, 1.0, &[(2, at(2), true), (3, at(3), true)]));
            census.view(&[1.0, 1.0], ALL);
        }
        let saved: Vec<f64> = census.known().chares.into_iter().map(|(_, load)| load).collect();
        assert!(saved.iter().all(|load| (load - 0.1).abs() < 0.005), "{saved:?}");
    }

    #[test]
    fn what_is_left_is_known_by_what_was_done_while_less_and_less_remained() {
        let mut census = census();
        let mut left = |first: &[Option<f64>], second: &[Option<f64>]| {
            let one = said(0, 1.0, &[(0, 0.4, true), (1, 0.2, true)]);
            census.take(NodeId(1), with_remaining(one, first));
            census.take(NodeId(2), with_remaining(said(1, 1.0, &[(2, 0.1, true), (3, 0.1, true)]), second));
            census.view(&[1.0, 2.0], ALL);
            census.left_work()
        };
        assert_eq!(
            left(&[Some(9.0), None], &[Some(9.0), None]),
            None,
            "one of whom nobody knows does a fifth"
        );
        assert_eq!(left(&[None, Some(9.0)], &[None, Some(9.0)]), None, "nothing has been done yet");
        let near = |left: Option<f64>, work: f64| left.is_some_and(|left| (left - work).abs() < 1e-9);
        // Since the first word of each, one second each of work of 1.0 a second, and 0.6 before that of the first two, for 4.
        assert!(near(left(&[Some(8.0), Some(8.0)], &[Some(8.0), Some(8.0)]), 32.0 * 2.6 / 4.0));
        assert!(
            near(left(&[Some(8.0), Some(6.0)], &[Some(9.0), Some(7.0)]), 30.0 * 3.6 / 7.0),
            "one began anew"
        );
    }

    #[test]
    fn what_remained_of_who_has_ended_takes_nothing_from_others() {
        let mut census = census();
        census.take(
            NodeId(1),
            with_remaining(said(0, 1.0, &[(0, 0.2, true), (1, 0.4, true)]), &[Some(5.0); 2]),
        );
        census.take(NodeId(2), said(1, 1.0, &[]));
        census.view(&[1.0, 1.0], ALL);
        census.take(NodeId(1), told(0, 1.0, &[(1, 0.0, Whereabouts::Ended)]));
        let known = census.known().chares;
        assert!(matches!(known[..], [(_, load)] if (load - 0.2).abs() < 1e-9), "{known:?}");
    }

    #[test]
    fn what_remains_is_heard_from_whoever_has_the_chare() {
        let mut census = census();
        let mut remains = |pe: u16, is_here: bool, units: f64| {
            let loads = said(u32::from(pe), 1.0, &[(0, 0.1, is_here)]);
            census.take(NodeId(pe + 1), with_remaining(loads, &[Some(units)]));
            census.chares[0].remaining
        };
        assert_eq!(remains(0, true, 8.0), Some(8.0));
        assert_eq!(remains(1, true, 6.0), Some(6.0));
        assert_eq!(remains(0, false, 7.0), Some(6.0), "that was before it left");
        assert_eq!(remains(0, false, 5.0), Some(5.0), "so nothing newer has been heard");
        assert_eq!(remains(1, true, 9.0), Some(9.0), "it has begun anew");
    }

    fn told(pe: u32, cpu_part: f64, chares: &[(u32, f64, Whereabouts)]) -> NodeLoads {
        let chare = |&(at, part, whereabouts): &(u32, f64, Whereabouts)| ChareLoad {
            element: element(at),
            cpu_ns: (part * SECOND as f64) as u64,
            bytes: 10,
            whereabouts,
            mobility: if at == 1 { Mobility::Pinned } else { Mobility::Anywhere },
            remaining: None,
        };
        let chares = chares.iter().map(chare).collect();
        let (wall_ns, fixed_ns) = (SECOND, SECOND / 10);
        let amount = Amount { messages: 3, bytes: 60 };
        let traffic = vec![Traffic { from: element(0), to: element(1), amount }];
        let cpu_part = Some(cpu_part);
        let pe = PeLoads {
            pe: PeId(pe),
            wall_ns,
            cpu_part,
            probed: None,
            fixed_ns,
            chares,
            traffic,
            other_traffic: amount,
        };
        NodeLoads { bytes_per_s: 5.0, room_bytes: None, pes: vec![pe] }
    }

    fn census() -> Census {
        Census::new(&Topology::new(&[0, 1, 1]))
    }

    #[test]
    fn loads_are_work_and_speeds_what_is_delivered() {
        let mut census = census();
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.5, true), (1, 0.25, true)]));
        assert!(!census.is_complete());
        census.take(NodeId(2), said(1, 0.5, &[(2, 0.4, true)]));
        assert!(census.is_complete());
        let view = census.view(&[1.0, 2.0], ALL);
        assert!(view.check().is_ok());
        assert_eq!([view.pes[0].part.speed, view.pes[1].part.speed], [1.0, 1.0]);
        assert_eq!([view.pes[0].part.node, view.pes[1].part.node], [0, 1]);
        assert_eq!([view.pes[0].background, view.pes[1].background], [0.1, 0.2]);
        let chares: Vec<_> = view.chares.iter().map(|chare| (chare.pe, chare.load, chare.bytes)).collect();
        assert_eq!(chares, [(0, 0.5, 10), (0, 0.25, 10), (1, 0.8, 10)]);
        assert_eq!([0, 1].map(|at| view.chares[at].mobility.clone()), [Mobility::Anywhere, Mobility::Pinned]);
        assert_eq!(view.edges, [Edge { one: 0, other: 1, bytes: 120, messages: 6 }]);
        assert_eq!(view.places, [[0.0; 3], [1.0 / 3.0, 0.0, 0.0], [2.0 / 3.0, 0.0, 0.0]]);
        let known = census.known();
        assert_eq!(known.chares, [(element(0), 0.5), (element(1), 0.25), (element(2), 0.8)]);
        assert_eq!((known.fixed, known.edges.len()), (vec![0.1, 0.2], 1));
        assert!(!census.is_complete(), "it begins anew");
        assert_eq!(census.bytes_per_s(), 5.0);
    }

    #[test]
    fn pes_hold_no_more_chares_than_the_memory_of_their_node_has_room_for() {
        let mut census = Census::new(&Topology::new(&[0, 2, 1]));
        let mut view = |rooms: [Option<u64>; 2]| {
            // Chares of 10 bytes each: two on the first PE, one on the second, one on the other node's.
            let mut first = said(0, 1.0, &[(0, 0.5, true), (1, 0.25, true)]);
            first.pes.extend(said(1, 1.0, &[(2, 0.4, true)]).pes);
            first.room_bytes = rooms[0];
            let second = NodeLoads { room_bytes: rooms[1], ..said(2, 1.0, &[(3, 0.1, true)]) };
            census.take(NodeId(1), first);
            census.take(NodeId(2), second);
            let view = census.view(&[1.0; 3], ALL);
            assert!(view.check().is_ok());
            view.pes.iter().map(|pe| pe.memory_bytes).collect::<Vec<_>>()
        };
        assert_eq!(view([None, None]), [None; 3]);
        assert_eq!(view([Some(0), Some(40)]), [Some(20), Some(10), Some(30)]);
        assert_eq!(view([Some(18), Some(60)]), [Some(24), Some(14), None], "all others would fit in");
        assert_eq!(view([Some(u64::MAX), Some(u64::MAX)]), [None; 3]);
    }

    #[test]
    fn a_node_that_has_left_is_not_waited_for_and_its_pe_counts_where_it_is() {
        let mut census = census();
        census.take(NodeId(2), said(1, 1.0, &[(2, 0.4, true)]));
        census.look_at(&Topology::new(&[0, 1, 1]).rearranged(&[(PeId(1), NodeId(1))]));
        let mut both = said(0, 1.0, &[(0, 0.5, true)]);
        both.pes.extend(said(1, 0.5, &[(2, 0.2, true)]).pes);
        census.take(NodeId(1), both);
        assert!(census.is_complete());
        let view = census.view(&[1.0, 1.0], ALL);
        assert_eq!([view.pes[0].part.node, view.pes[1].part.node], [0, 0]);
        assert_eq!((view.chares.len(), view.chares[0].pe), (2, 1));
    }

    #[test]
    fn chares_that_take_longer_than_a_view_are_followed_until_all_have_run() {
        let mut census = census();
        let loads = |turn: u32| {
            // Each of ten chares runs for a whole second, in turn.
            (said(0, 1.0, &[(turn % 10, 0.9, true)]), said(1, 1.0, &[(10 + turn % 2, 0.5, true)]))
        };
        let mut worst: f64 = 0.0;
        for turn in 0..200 {
            let (one, other) = loads(turn);
            census.take(NodeId(1), one);
            census.take(NodeId(2), other);
            let view = census.view(&[1.0, 1.0], ALL);
            if turn > 50 {
                let of_pe = |pe| {
                    view.chares.iter().filter(|chare| chare.pe == pe).map(|chare| chare.load).sum::<f64>()
                };
                worst = worst.max((of_pe(0) - 0.9).abs()).max((of_pe(1) - 0.5).abs());
                let least = view.chares.iter().map(|chare| chare.load).fold(f64::INFINITY, f64::min);
                assert!(least > 0.02, "{turn}: {least}");
            }
        }
        assert!(worst < 1e-6, "{worst}");
    }

    #[test]
    fn what_chares_do_is_followed_at_once_where_all_run_all_the_time() {
        let mut census = census();
        let mut view = |load: f64| {
            census.take(NodeId(1), said(0, 1.0, &[(0, load, true), (1, 0.1, true)]));
            census.take(NodeId(2), said(1, 1.0, &[]));
            census.view(&[1.0, 1.0], ALL).chares[0].load
        };
        (0..20).for_each(|_| assert!(view(0.1) < 0.2));
        let found: Vec<f64> = (0..6).map(|_| view(0.7)).collect();
        assert!(found[0] > 0.2 && found[5] > 0.6, "{found:?}");
    }

    #[test]
    fn nothing_is_kept_of_chares_that_have_ended_but_their_work() {
        let mut census = census();
        let mut count = 10;
        for turn in 0..100 {
            // Ten of each hundred live until the next view.
            let ended = (count - 10..count).map(|at| (at, 1e-3, Whereabouts::Ended));
            let here = (count..count + 100).map(|at| (at, 4e-3, Whereabouts::Here));
            let soon_ended = (count..count + 90).map(|at| (at, 1e-3, Whereabouts::Ended));
            count += 100;
            for some in [ended.collect::<Vec<_>>(), here.collect(), soon_ended.collect()] {
                census.take(NodeId(1), NodeLoads { pes: told(0, 1.0, &some).pes, ..NodeLoads::default() });
            }
            census.take(NodeId(2), said(1, 1.0, &[]));
            let known = census.known();
            assert!(known.chares.len() == 10 && census.chares.len() <= 20, "{turn}: {}", census.chares.len());
            let view = census.view(&[1.0, 1.0], ALL);
            assert_eq!((view.chares.len(), census.numbers.len()), (10, 10), "{turn}");
            let gone: Vec<u32> = if turn == 0 { Vec::new() } else { (0..10).collect() };
            assert_eq!(census.gone(), gone);
            let work = view.pes[0].background + view.chares.iter().map(|chare| chare.load).sum::<f64>();
            // In three seconds half a second for chares, and three times 0.1 s for other things.
            assert!((work - 0.8 / 3.0).abs() < 1e-9, "{turn}: {work}");
        }
    }

    #[test]
    fn a_node_that_speaks_twice_counts_once() {
        let mut census = census();
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.5, true)]));
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.3, true)]));
        census.take(NodeId(2), said(1, 1.0, &[]));
        assert!((census.view(&[1.0, 1.0], ALL).chares[0].load - 0.4).abs() < 1e-12);
    }

    #[test]
    fn a_chare_keeps_its_number_wherever_it_goes_until_it_has_ended() {
        let mut census = census();
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.1, true), (1, 0.1, true)]));
        census.view(&[1.0, 1.0], ALL);
        // What the new PE says may come before what the old one says.
        census.take(NodeId(2), said(1, 1.0, &[(0, 0.2, true)]));
        census.take(NodeId(1), said(0, 1.0, &[(0, 0.1, false), (1, 0.1, true)]));
        let view = census.view(&[1.0, 1.0], ALL);
        assert_eq!((view.chares[0].pe, census.chare(0)), (1, Some((element(0), PeId(1)))));
        census.take(NodeId(1), said(0, 1.0, &[(1, 0.0, false)]));
        let mut count = || {
            census.take(NodeId(2), said(1, 1.0, &[(0, 0.1, true)]));
            census.view(&[1.0, 1.0], ALL).chares.len()
        };
        // One of two PEs says each time that a second has passed.
        let counts: Vec<usize> = (0..2 * NOWHERE_MAX_S as usize + 2).map(|_| count()).collect();
        assert_eq!((counts.first(), counts.last()), (Some(&2), Some(&1)));
        assert_eq!(census.chare(0).map(|(element, _)| element), Some(element(0)));
        census.take(NodeId(1), said(0, 1.0, &[(1, 0.1, true)]));
        assert_eq!(census.view(&[1.0, 1.0], ALL).chares.len(), 2, "or another of that index was made");
        let mut ends = |first: u32, then: &[(u32, f64, Whereabouts)]| {
            census.take(NodeId(1), told(0, 1.0, &[(first, 0.1, Whereabouts::Ended)]));
            census.take(NodeId(2), told(1, 1.0, then));
            let view = census.view(&[1.0, 1.0], ALL);
            (view.chares.len(), census.gone().to_vec(), census.chare(0).map(|(element, _)| element))
        };
        assert_eq!(ends(0, &[(2, 0.1, Whereabouts::Here)]), (2, vec![0], Some(element(1))));
        assert_eq!(ends(7, &[]), (2, vec![], Some(element(1))), "of that one nobody had heard");
        assert_eq!(
            ends(1, &[(1, 0.1, Whereabouts::Here)]),
            (2, vec![0], Some(element(2))),
            "made anew elsewhere"
        );
    }
}
