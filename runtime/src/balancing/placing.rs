//! Placing the chares of a run anew when it goes on elsewhere: by what was known of them when it was saved, and the speeds of
//! now.

use super::graph;
use crate::envelope::{Packed, PeOrder};
use crate::ids::{ElementId, PeId};
use crate::loads::KnownLoads;
use crate::node::Node;
use crate::topology::Topology;
use loadbalance::Part;
use loadbalance::balance::decision::cut_bytes;
use loadbalance::balance::view::Times;
use loadbalance::balance::{Chare, Mapping, Mobility, Pe, View, ViewError};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// A chare that may move.
#[derive(Clone, Debug)]
pub struct Placeable {
    /// Which.
    pub element: ElementId,
    /// Where it is.
    pub pe: PeId,
    /// Where it may go.
    pub mobility: Mobility,
}

/// What came of placing chares anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// How.
    pub mapping: Mapping,
    /// How many chares there are that may move.
    pub chares: usize,
    /// Which of them go where from where.
    pub moves: Vec<(ElementId, PeId, PeId)>,
    /// The longest time of a PE over the ideal one, if all stayed and after the moves; 1 is perfect.
    pub imbalance: (f64, f64),
    /// The part of the bytes between chares that crosses between PEs, if all stayed and after the moves; `None` if it is not
    /// known who talks to whom.
    pub crossing: Option<(f64, f64)>,
}

impl Placed {
    /// Says where chares that may move go, of which it is listed where they are and may go, on PEs of these speeds. Where
    /// nobody says how, it is by who talks to whom if that is known and leaves no PE with much more to do than blocks would,
    /// and by blocks if not.
    ///
    /// # Errors
    /// If speeds or loads make no sense.
    pub fn new(
        topology: &Topology,
        speeds: &[f64],
        known: &KnownLoads,
        mut chares: Vec<Placeable>,
        mapping: Option<Mapping>,
    ) -> Result<Self, ViewError> {
        chares.sort_unstable_by_key(|chare| (chare.element, chare.pe));
        let view = view(topology, speeds, known, &chares);
        let now = view.check()?;
        let imbalance = |owners: &[u32]| Times::with(&view, owners).imbalance();
        let by = |mapping| owners_by(mapping, &view, &chares, now.owners()).map(|owners| (mapping, owners));
        let (mapping, owners) = match mapping {
            Some(mapping) => by(mapping)?,
            None if view.edges.is_empty() => by(Mapping::Block)?,
            None => {
                let [graph, blocks] = [by(Mapping::Comm)?, by(Mapping::Block)?];
                if imbalance(&graph.1) <= ALIKE * imbalance(&blocks.1) { graph } else { blocks }
            }
        };
        let cut = |owners: &[u32]| cut_bytes(&view, owners) as f64;
        let all: f64 = view.edges.iter().map(|edge| edge.bytes as f64).sum();
        let crossing = (all > 0.0).then(|| (cut(&now.owners()) / all, cut(&owners) / all));
        let moves = chares.iter().zip(&owners).filter(|(chare, to)| chare.pe.0 != **to);
        Ok(Self {
            mapping,
            chares: chares.len(),
            moves: moves.map(|(chare, to)| (chare.element, chare.pe, PeId(*to))).collect(),
            imbalance: (now.times.imbalance(), imbalance(&owners)),
            crossing,
        })
    }

    /// Has PEs send away what is to move; only on the launcher.
    pub fn order(&self, node: &Node) {
        let _ = order(node, self.moves.iter().copied());
    }
}

impl std::fmt::Display for Placed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { mapping, chares, moves, imbalance: (before, after), .. } = self;
        let moves = moves.len();
        write!(
            f,
            "chares are placed anew ({mapping}): {moves} of {chares} move, imbalance {before:.2} becomes {after:.2}"
        )?;
        match self.crossing {
            Some((before, after)) => {
                write!(
                    f,
                    ", {:.0} % of their bytes cross PEs and then {:.0} %",
                    before * 100.0,
                    after * 100.0
                )
            }
            None => Ok(()),
        }
    }
}

/// An imbalance that is larger by this factor is taken for the same, if fewer bytes cross for it.
const ALIKE: f64 = 1.05;

/// Where chares go that are mapped so and are at `owners` now. What belongs to one collection works at the same time, so that
/// each is shared out by itself; neighbours of all kinds come together.
fn owners_by(
    mapping: Mapping,
    view: &View,
    chares: &[Placeable],
    mut owners: Vec<u32>,
) -> Result<Vec<u32>, ViewError> {
    let pieces: Vec<Range<usize>> = if mapping == Mapping::Comm {
        std::iter::once(0..chares.len()).collect()
    } else {
        by_collection(chares).collect()
    };
    for piece in pieces {
        let moves = mapping.decide(&part(view, piece.clone()))?.moves;
        moves.iter().for_each(|step| owners[piece.start + step.chare as usize] = step.to);
    }
    Ok(owners)
}

/// Has PEs send away chares: which, from where, and where to. The bytes of each order.
pub(super) fn order(node: &Node, moves: impl Iterator<Item = (ElementId, PeId, PeId)>) -> Vec<u64> {
    let mut by_pe: BTreeMap<PeId, Vec<(ElementId, PeId)>> = BTreeMap::new();
    moves.for_each(|(element, from, to)| by_pe.entry(from).or_default().push((element, to)));
    let mut sent = Vec::new();
    for (pe, moves) in by_pe {
        match postcard::to_stdvec(&moves) {
            Ok(body) => {
                sent.push(body.len() as u64);
                let payload = Packed { body: body.into(), attachments: Vec::new() };
                node.order_pe(pe, PeOrder::Migrate, payload);
            }
            Err(error) => tracing::error!("moves cannot be ordered: {error}"),
        }
    }
    sent
}

fn view(topology: &Topology, speeds: &[f64], known: &KnownLoads, chares: &[Placeable]) -> View {
    let nodes = topology.compute_nodes();
    let of_pe = |pe: u32| {
        let node = topology.node_of(PeId(pe));
        let node = nodes.iter().position(|one| *one == node).unwrap_or_default();
        let speed = speeds.get(pe as usize).copied().filter(|speed| *speed > 0.0).unwrap_or(1.0);
        let background = known.fixed.get(pe as usize).copied().unwrap_or_default();
        Pe { background, ..Pe::from(Part { node, speed }) }
    };
    let works: FxHashMap<ElementId, f64> = known.chares.iter().copied().collect();
    let known_works = || chares.iter().filter_map(|chare| works.get(&chare.element));
    let (sum, count) = (known_works().sum::<f64>(), known_works().count());
    // Of whom nothing is known, it is that he does as much as others do.
    let usual = if sum > 0.0 { sum / count as f64 } else { 1.0 };
    let chare = |Placeable { element, pe, mobility }: &Placeable| {
        let load = if sum > 0.0 { works.get(element).copied().unwrap_or(usual) } else { usual };
        Chare { pe: pe.0, load, bytes: 0, mobility: mobility.clone() }
    };
    let elements: Vec<ElementId> = chares.iter().map(|chare| chare.element).collect();
    let number =
        |one: &ElementId| elements.binary_search(one).ok().and_then(|number| u32::try_from(number).ok());
    View {
        pes: (0..topology.pe_count()).map(of_pe).collect(),
        chares: chares.iter().map(chare).collect(),
        edges: graph::edges(&known.edges, number),
        ..View::default()
    }
}

/// The chares of each collection, which follow one another.
fn by_collection(chares: &[Placeable]) -> impl Iterator<Item = Range<usize>> {
    let mut begin = 0;
    chares.chunk_by(|one, other| one.element.collection == other.element.collection).map(move |chunk| {
        let piece = begin..begin + chunk.len();
        begin = piece.end;
        piece
    })
}

/// Some chares of a view by themselves, with as much of what PEs have besides as falls to them.
fn part(view: &View, piece: Range<usize>) -> View {
    if piece.len() == view.chares.len() {
        return view.clone();
    }
    let load = |chares: &[Chare]| chares.iter().map(|chare| chare.load).sum::<f64>();
    let share = load(&view.chares[piece.clone()]) / load(&view.chares);
    let pe = |pe: &Pe| Pe { background: pe.background * if share.is_finite() { share } else { 0.0 }, ..*pe };
    View { pes: view.pes.iter().map(pe).collect(), chares: view.chares[piece].to_vec(), ..View::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementIndex};
    use crate::loads::Amount;

    fn element(serial: u32, at: u32) -> ElementId {
        ElementId { collection: CollectionId::made_by(PeId(0), serial), index: ElementIndex([at, 0, 0]) }
    }

    /// So many chares of two collections on the first of four PEs that two nodes have.
    fn placed(known: &KnownLoads, mapping: Option<Mapping>) -> (Placed, Vec<[usize; 4]>) {
        let chares = (1..3).flat_map(|serial| (0..24).map(move |at| (element(serial, at), PeId(at % 2))));
        let topology = Topology::new(&[0, 2, 2]);
        let placeable = |(element, pe)| Placeable { element, pe, mobility: Mobility::Anywhere };
        let all = chares.clone().map(placeable).collect();
        let placed = Placed::new(&topology, &[1.0, 1.0, 3.0, 1.0], known, all, mapping);
        let placed = placed.unwrap();
        let counts = (1..3).map(|serial| {
            let mut counts = [0; 4];
            for (element, pe) in
                chares.clone().filter(|(element, _)| *element == self::element(serial, element.index.0[0]))
            {
                let moved = placed.moves.iter().find(|(one, ..)| *one == element);
                counts[moved.map_or(pe, |(_, _, to)| *to).as_usize()] += 1;
            }
            counts
        });
        let counts = counts.collect();
        (placed, counts)
    }

    #[test]
    fn each_collection_is_shared_out_by_speed() {
        let known = KnownLoads::default();
        for mapping in [None, Some(Mapping::Block), Some(Mapping::Cyclic)] {
            let (placed, counts) = placed(&known, mapping);
            assert_eq!(counts, [[4, 4, 12, 4]; 2], "{mapping:?}");
            assert_eq!((placed.imbalance, placed.crossing), ((3.0, 1.0), None));
        }
        let (kept, _) = placed(&known, Some(Mapping::Keep));
        assert!(kept.moves.is_empty());
    }

    #[test]
    fn chares_stay_where_they_may_not_leave() {
        let only = |at: u32| if at < 4 { Mobility::Pinned } else { Mobility::one_of([0, 3]) };
        let placeable = |at| Placeable { element: element(1, at), pe: PeId(0), mobility: only(at) };
        for mapping in [Mapping::Block, Mapping::Cyclic, Mapping::Comm] {
            let (topology, all) = (Topology::new(&[0, 2, 2]), (0..24).map(placeable).collect());
            let placed =
                Placed::new(&topology, &[1.0; 4], &KnownLoads::default(), all, Some(mapping)).unwrap();
            assert!(!placed.moves.is_empty(), "{mapping}");
            for (chare, _, to) in placed.moves {
                assert!(chare.index.0[0] >= 4 && to == PeId(3), "{mapping}: {chare:?} to {to:?}");
            }
        }
    }

    #[test]
    fn saved_loads_count_and_who_talks_to_whom() {
        let mut known = KnownLoads {
            chares: (0..24).map(|at| (element(1, at), if at == 0 { 13.0 } else { 1.0 })).collect(),
            ..KnownLoads::default()
        };
        let (placed, counts) = self::placed(&known, None);
        assert_eq!((placed.mapping, placed.imbalance.1 < 1.6), (Mapping::Block, true), "{placed}");
        // The heavy one is where it takes least, and nobody has anything before it.
        assert_eq!(counts[0], [0, 0, 15, 9]);
        let amount = Amount { messages: 1, bytes: 100 };
        let pair = |at: u32| (element(1, at), element(2, at), amount);
        known = KnownLoads { edges: (0..24).map(pair).collect(), ..KnownLoads::default() };
        let (placed, _) = self::placed(&known, None);
        assert_eq!((placed.mapping, placed.imbalance.1), (Mapping::Comm, 1.0));
        assert_eq!(placed.crossing, Some((0.0, 0.0)), "{placed}");
    }
}
