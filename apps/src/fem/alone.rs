//! All subdomains in one thread: what a run comes to, without chares.

use super::cholesky::Cholesky;
use super::course::Why;
use super::machine::{Machine, Need};
use super::marching::{Block, Marching, Rim, Verdict};
use super::problem::Problem;
use super::subdomain::{joined, spent};
use super::submesh::Submesh;
use super::swelling::Swelling;
use chares::Bulk;

/// Subdomains that know who has copies of whose nodes; `read` gives those of a mesh that was read, in order. Nothing if one asks
/// for nodes that are not another's.
pub(super) fn prepared(problem: &Problem, mut read: impl FnMut() -> Option<Submesh>) -> Option<Vec<Machine>> {
    let mut machines: Vec<Machine> =
        (0..problem.parts).map(|part| Machine::new(problem, part, read())).collect();
    introduce(&mut machines)?;
    Some(machines)
}

/// Has subdomains know who has copies of whose nodes; nothing if one asks for nodes that are not another's.
pub(super) fn introduce(machines: &mut [Machine]) -> Option<()> {
    for by in 0..machines.len() {
        for level in 0..machines[by].levels.len() {
            let wants: Vec<_> = machines[by].levels[level].wants().collect();
            for (from, ids) in wants {
                let level = machines.get_mut(from as usize)?.levels.get_mut(level)?;
                level.want(by as u32, &ids).then_some(())?;
            }
        }
    }
    Some(())
}

/// What came of a step of a body that swells.
pub(super) struct Step {
    /// Of each block.
    pub closed: Vec<(Verdict, Block)>,
    /// Seconds of processor time that the iterations took.
    pub iterating_s: f64,
}

/// Takes a step of all blocks in one thread; nothing if it does not converge.
pub(super) fn step(
    problem: &Problem,
    swelling: &Swelling,
    blocks: &mut [Marching],
    levels: &[u8],
) -> Option<Step> {
    let mut rims: Vec<Vec<Rim>> = vec![Vec::new(); blocks.len()];
    for block in &mut *blocks {
        for (to, rim) in block.open(swelling, levels.to_vec()) {
            rims.get_mut(to as usize)?.push(rim);
        }
    }
    let mut iterating_s = 0.0;
    let mut iterate = |machines: &mut [Machine]| {
        let begun = spent();
        let is_understood = iterate(problem, machines, None);
        iterating_s += spent() - begun;
        let is_over = machines.first().is_some_and(|first| first.course.why == Some(Why::Converged));
        (is_understood && is_over).then_some(())
    };
    let machines = blocks.iter_mut().zip(rims).map(|(block, rims)| block.diffuse(swelling, problem, rims));
    let mut machines: Vec<Machine> = machines.collect::<Option<_>>()?;
    iterate(&mut machines)?;
    let machines = blocks.iter_mut().zip(machines).map(|(block, of)| block.strain(swelling, problem, of));
    let mut machines: Vec<Machine> = machines.collect::<Option<_>>()?;
    iterate(&mut machines)?;
    let closed = blocks.iter_mut().zip(&machines).map(|(block, of)| block.close(swelling, problem, of));
    Some(Step { closed: closed.collect(), iterating_s })
}

/// Takes the steps of all subdomains until the iteration is over; whether all understood each other.
pub(super) fn iterate(problem: &Problem, machines: &mut [Machine], factor: Option<&Cholesky>) -> bool {
    let mut told: Vec<Vec<(u32, Bulk<f64>)>> = vec![Vec::new(); machines.len()];
    loop {
        let needs: Vec<Need> = machines.iter_mut().map(Machine::step).collect();
        let (mut sums, mut coarse) = (None, Vec::new());
        for (by, need) in needs.into_iter().enumerate() {
            match need {
                Need::Nothing => {}
                Need::Tell(parts) => {
                    parts.into_iter().for_each(|(to, numbers)| told[to as usize].push((by as u32, numbers)));
                }
                Need::Halo(count) => {
                    let numbers = std::mem::take(&mut told[by]);
                    if numbers.len() != count
                        || !numbers.iter().all(|(from, numbers)| machines[by].take(*from, numbers))
                    {
                        return false;
                    }
                    machines[by].have_taken();
                }
                Need::Sums(part) => {
                    let all = sums.get_or_insert_with(|| vec![0.0; part.len()]);
                    all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
                }
                Need::Coarse(part) => coarse.push(part),
                Need::Over => return true,
            }
        }
        if let Some(sums) = sums {
            machines.iter_mut().for_each(|machine| machine.take_sums(&sums));
        }
        if !coarse.is_empty() {
            let (Some((_, cut)), Some(factor)) = (problem.lattice(), factor) else { return false };
            let mut solution = joined(problem, &cut, &coarse);
            factor.solve(solution.as_mut_slice());
            machines.iter_mut().for_each(|machine| machine.take_coarse(&solution));
        }
    }
}
