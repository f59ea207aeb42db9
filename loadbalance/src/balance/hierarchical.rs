//! Hierarchical: nodes are balanced against each other as if each were one PE, and then the PEs of each node. Few chares
//! cross the wire, because PEs of a node share what they have.

use super::greedy::{GreedyRefine, soonest};
use super::refine::Refine;
use super::view::{Chare, Checked, Mobility, Pe, Times, View, key};
use super::{Balancer, Wanted};
use crate::plan::Part;

/// [`Refine`] between nodes, [`GreedyRefine`] between the PEs of a node.
#[derive(Clone, Copy, Debug)]
pub struct Hierarchical {
    /// How much later than the ideal a PE may end, as a part of it: half of it by its node, half inside.
    pub tolerance: f64,
}

impl Balancer for Hierarchical {
    fn name(&self) -> &'static str {
        "hierarchical"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let node_of = view.nodes();
        let mut pes = vec![Vec::new(); node_of.iter().max().map_or(0, |last| last + 1)];
        (0..).zip(&node_of).for_each(|(pe, node)| pes[*node].push(pe));
        let mut owners = view.owners();
        let nodes = between_nodes(view, &node_of, &pes);
        let Ok(checked) = nodes.check() else { return owners.into() };
        let wanted = Refine { tolerance: self.tolerance / 2.0 }.wanted(&checked);
        for (pes, chares) in pes.iter().zip(checked.by_pe(&wanted.owners)) {
            self.inside(view, pes, &chares, &mut owners);
        }
        owners.into()
    }
}

impl Hierarchical {
    /// Chares of one node, some of which come from others, among its PEs.
    fn inside(&self, view: &Checked<'_>, pes: &[u32], chares: &[u32], owners: &mut [u32]) {
        let local = |pe: &u32| pes.binary_search(pe).ok().map(|at| at as u32);
        let mut node = View { pes: pes.iter().map(|pe| view.pes[*pe as usize]).collect(), ..View::default() };
        let mut times = Times::without_chares(&node);
        let mut coming = Vec::new();
        for &chare in chares {
            let told = &view.chares[chare as usize];
            let mobility = match &told.mobility {
                Mobility::OneOf(set) => Mobility::OneOf(set.iter().filter_map(local).collect()),
                other => other.clone(),
            };
            match local(&told.pe) {
                Some(pe) => times.work[pe as usize] += told.load,
                None => coming.push(node.chares.len()),
            }
            let pe = local(&told.pe).unwrap_or(0);
            node.chares.push(Chare { pe, load: told.load, bytes: told.bytes, mobility });
        }
        coming.sort_by_key(|at| (!key(node.chares[*at].load), *at));
        for at in coming {
            let told = &mut node.chares[at];
            let pe = match &told.mobility {
                Mobility::OneOf(set) => soonest(&times, set.iter().copied(), told.load),
                _ => soonest(&times, 0..pes.len() as u32, told.load),
            };
            told.pe = pe.unwrap_or(0);
            times.work[told.pe as usize] += told.load;
        }
        let Ok(checked) = node.check() else { return };
        let inner = GreedyRefine { tolerance: self.tolerance / 2.0 }.wanted(&checked);
        for (chare, pe) in chares.iter().zip(inner.owners) {
            owners[*chare as usize] = pes[pe as usize];
        }
    }
}

/// The view of nodes as if each were a PE.
fn between_nodes(view: &Checked<'_>, node_of: &[usize], pes: &[Vec<u32>]) -> View {
    let node = |(node, pes): (usize, &Vec<u32>)| {
        let sum = |of: fn(&Pe) -> f64| pes.iter().map(|pe| of(&view.pes[*pe as usize])).sum();
        let part = Part { node, speed: sum(|pe| pe.part.speed) };
        Pe { background: sum(|pe| pe.background), ..Pe::from(part) }
    };
    let chare = |told: &Chare| Chare {
        pe: node_of[told.pe as usize] as u32,
        mobility: match &told.mobility {
            Mobility::OneOf(set) => {
                let mut nodes: Vec<u32> = set.iter().map(|pe| node_of[*pe as usize] as u32).collect();
                nodes.sort_unstable();
                nodes.dedup();
                Mobility::OneOf(nodes.into())
            }
            other => other.clone(),
        },
        ..*told
    };
    View {
        pes: pes.iter().enumerate().map(node).collect(),
        chares: view.chares.iter().map(chare).collect(),
        ..View::default()
    }
}
