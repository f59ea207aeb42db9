//! Which blocks are refined: those whose error is largest, until all are small enough or there are as many elements as may be.
//! Nothing depends on who computes it.

use super::forest::Forest;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What levels are chosen by.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// Levels so far.
    pub levels: &'a [u8],
    /// The error of each block, squared.
    pub errors: &'a [f64],
    /// The lowest level that each may have.
    pub floors: &'a [u8],
    /// The error squared that a block may have.
    pub allowed: f64,
    /// Elements, at most.
    pub most: usize,
}

/// Levels of the next step. They differ by one at most from block to block, and become lower by one at most, so that what moves
/// on leaves a wake and nothing flickers.
#[must_use]
pub fn chosen(forest: &Forest, judged: Judged<'_>) -> Vec<u8> {
    let Judged { levels, errors, floors, allowed, most } = judged;
    let around = around(forest);
    let least = |(level, floor): (&u8, &u8)| level.saturating_sub(1).max(*floor);
    let mut next = graded(forest, &levels.iter().zip(floors).map(least).collect::<Vec<_>>());
    if forest.elements(&next) > most {
        next = graded(forest, floors);
    }
    // An error goes with the square of the elements' length.
    let expected =
        |block: usize, level: u8| errors[block] * 16f64.powi(i32::from(levels[block]) - i32::from(level));
    let entry = |block: usize, level: u8| (expected(block, level).to_bits(), Reverse(block), level);
    let mut heap: BinaryHeap<_> = (0..next.len()).map(|block| entry(block, next[block])).collect();
    let mut elements = forest.elements(&next);
    while let Some((error, Reverse(block), level)) = heap.pop() {
        if f64::from_bits(error) <= allowed {
            break;
        }
        if next[block] != level {
            // It was raised together with another.
            heap.push(entry(block, next[block]));
            continue;
        }
        if level == forest.finest || level > levels[block] {
            continue;
        }
        let raised = raise(&mut next, &around, block, level + 1);
        let size = |level: u8| forest.along(level).pow(2);
        let more: usize = raised.iter().map(|&(other, before)| size(next[other]) - size(before)).sum();
        if elements + more > most {
            raised.into_iter().rev().for_each(|(other, before)| next[other] = before);
            continue;
        }
        elements += more;
        heap.push(entry(block, level + 1));
    }
    next
}

/// The lowest levels that differ by one at most from block to block where none is lower than these.
#[must_use]
pub fn graded(forest: &Forest, levels: &[u8]) -> Vec<u8> {
    let (around, mut graded) = (around(forest), vec![0; levels.len()]);
    for (block, &level) in levels.iter().enumerate() {
        raise(&mut graded, &around, block, level.min(forest.finest));
    }
    graded
}

/// The blocks that touch each.
fn around(forest: &Forest) -> Vec<Vec<u32>> {
    let of = |block| forest.around(block).into_iter().map(|(other, _)| other).collect();
    (0..forest.blocks()).map(of).collect()
}

/// Raises a block to a level, and others so that none beside it is lower by more than one; who was raised, and its level before.
fn raise(levels: &mut [u8], around: &[Vec<u32>], block: usize, level: u8) -> Vec<(usize, u8)> {
    let mut raised = Vec::new();
    let mut rest = vec![(block, level)];
    while let Some((block, level)) = rest.pop() {
        if levels[block] < level {
            raised.push((block, levels[block]));
            levels[block] = level;
            rest.extend(around[block].iter().map(|&other| (other as usize, level - 1)));
        }
    }
    raised
}
