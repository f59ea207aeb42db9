//! Between which PEs messages are measured.

use super::arguments::split;
use super::results::Kind;
use chares::loadbalance::machines::Machines;
use std::collections::BTreeSet;

/// Of up to so many nodes each is measured with each.
const ALL_PAIRS_MAX: usize = 5;

/// What takes part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Nodes, ascending, by their place in the list of all.
    pub(super) nodes: Vec<usize>,
    /// All of their PEs; places of PEs below are places in this list.
    pub(super) pes: Vec<u32>,
    /// One PE with itself, two of a node, and two of different nodes, in this order.
    pub(super) links: Vec<Ends>,
}

/// Two ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) kind: Kind,
    /// Its nodes, by their place in the list of all.
    pub(super) nodes: [usize; 2],
    /// Its PEs, by their place among those that take part.
    pub(super) pes: [u32; 2],
}

/// What is measured between these nodes.
///
/// # Errors
/// A sentence that names those that there are, if one of those asked for is not.
pub(super) fn plan(machines: &Machines, between: &[String]) -> Result<Plan, String> {
    let names: Vec<&str> = machines.nodes.iter().map(|node| node.name.as_str()).collect();
    let (pairs, of_nodes) = (pairs(&names, between)?, machines.pes());
    let named: BTreeSet<usize> = pairs.iter().flatten().copied().collect();
    // A single node has no pair.
    let chosen: Vec<usize> =
        if named.is_empty() { (0..names.len()).collect() } else { named.into_iter().collect() };
    let pes: Vec<u32> = chosen.iter().flat_map(|&node| of_nodes[node].clone()).collect();
    let place = |pe: u32| pes.iter().position(|found| *found == pe).and_then(|at| u32::try_from(at).ok());
    let ends = |kind, [a, b]: [usize; 2], rank: u32| {
        let far = of_nodes[b].start + rank;
        let pes = [place(of_nodes[a].start)?, place(far)?];
        Some(Ends { kind, nodes: [a, b], pes })
    };
    let itself = chosen.iter().filter_map(|&node| ends(Kind::OnePe, [node, node], 0));
    let inside = chosen.iter().filter(|&&node| of_nodes[node].len() > 1);
    let inside = inside.filter_map(|&node| ends(Kind::TwoPes, [node, node], 1));
    let across = pairs.iter().filter_map(|&pair| ends(Kind::TwoNodes, pair, 0));
    let links = itself.chain(inside).chain(across).collect();
    Ok(Plan { nodes: chosen, pes, links })
}

/// Pairs of nodes, each once, in their order.
fn pairs(nodes: &[&str], between: &[String]) -> Result<Vec<[usize; 2]>, String> {
    let mut lists: Vec<Vec<usize>> = Vec::new();
    for list in between {
        lists.push(split(list).into_iter().map(|name| find(nodes, name)).collect::<Result<_, _>>()?);
    }
    if lists.is_empty() && nodes.len() > ALL_PAIRS_MAX {
        lists = (1..nodes.len()).map(|node| vec![0, node]).collect();
    } else if lists.is_empty() {
        lists.push((0..nodes.len()).collect());
    }
    let all = lists.iter().flat_map(|list| {
        let after = move |at: usize| list[at + 1..].iter().map(move |&b| [list[at].min(b), list[at].max(b)]);
        (0..list.len()).flat_map(after)
    });
    let mut seen = BTreeSet::new();
    Ok(all.filter(|pair| seen.insert(*pair)).collect())
}

fn find(nodes: &[&str], name: &str) -> Result<usize, String> {
    nodes.iter().position(|node| *node == name).ok_or_else(|| {
        format!("--between names {name:?}, but the nodes of this run are {}", nodes.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::Machine;

    fn machines(pes: &[usize]) -> Machines {
        let names = ('a'..='z').map(String::from);
        let machine = |(name, &pes)| Machine { name, rates: vec![1.0; pes], ..Machine::default() };
        Machines { nodes: names.zip(pes).map(machine).collect(), ..Machines::default() }
    }

    fn pairs_of(count: usize, between: &[&str]) -> Result<Vec<[usize; 2]>, String> {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        pairs(&names[..count], &between.iter().map(|list| list.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn few_nodes_are_measured_each_with_each_and_many_with_the_first() {
        assert_eq!(pairs_of(3, &[]), Ok(vec![[0, 1], [0, 2], [1, 2]]));
        assert_eq!(pairs_of(5, &[]).map(|pairs| pairs.len()), Ok(10));
        assert_eq!(pairs_of(7, &[]).map(|pairs| pairs.len()), Ok(6));
        assert_eq!(pairs_of(1, &[]), Ok(Vec::new()));
    }

    #[test]
    fn what_is_asked_for_is_measured_once_and_nothing_else() {
        assert_eq!(pairs_of(9, &["c,a", "a, c,d", "h,i"]), Ok(vec![[0, 2], [0, 3], [2, 3], [7, 8]]));
    }

    #[test]
    fn an_unknown_node_is_refused_with_the_names_of_all() {
        let sentence = pairs_of(3, &["a,sharc"]).unwrap_err();
        assert_eq!(sentence, "--between names \"sharc\", but the nodes of this run are a, b, c");
    }

    #[test]
    fn links_are_on_a_pe_between_two_of_a_node_and_between_nodes() {
        let plan = plan(&machines(&[1, 2, 3]), &["b,c".to_string()]).unwrap();
        assert_eq!((&plan.nodes[..], &plan.pes[..]), (&[1, 2][..], &[1, 2, 3, 4, 5][..]));
        let ends = |kind, nodes, pes| Ends { kind, nodes, pes };
        let expected = [
            ends(Kind::OnePe, [1, 1], [0, 0]),
            ends(Kind::OnePe, [2, 2], [2, 2]),
            ends(Kind::TwoPes, [1, 1], [0, 1]),
            ends(Kind::TwoPes, [2, 2], [2, 3]),
            ends(Kind::TwoNodes, [1, 2], [0, 2]),
        ];
        assert_eq!(plan.links, expected);
    }
}
