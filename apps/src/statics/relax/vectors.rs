//! What a block keeps for a relaxation, and does on its orders.

use super::{History, Measured, Order, Turn};
use crate::statics::block::{Block, Class, Total};

/// Vectors of a block's own atoms; those of atoms that do not move stay 0.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Vectors {
    /// Places where the line begins.
    origin: Vec<[f64; 3]>,
    /// Force at the origin.
    before: Vec<[f64; 3]>,
    direction: Vec<[f64; 3]>,
    /// Places where the lists were built.
    built: Vec<[f64; 3]>,
    /// Steps that are kept, oldest first: ways and losses of force.
    kept: Vec<[Vec<[f64; 3]>; 2]>,
}

impl Vectors {
    /// Vectors for a block whose lists were just built.
    pub fn new(block: &Block) -> Self {
        let own = block.own();
        let mut vectors = Self {
            origin: block.at[..own].to_vec(),
            before: vec![[0.0; 3]; own],
            direction: vec![[0.0; 3]; own],
            ..Self::default()
        };
        vectors.built(block);
        vectors
    }

    /// To be told after the lists were built.
    pub fn built(&mut self, block: &Block) {
        self.built.clear();
        self.built.extend_from_slice(&block.at[..block.own()]);
    }

    /// Does the turn and the move of an [`Order::Go`]; rebuilding and evaluating is left to the caller.
    pub fn obey(&mut self, block: &mut Block, order: &Order) {
        let Order::Go { turn, step, .. } = order else { return };
        if let Some(turn) = turn {
            self.turn(block, turn);
        }
        for i in 0..block.own() {
            if block.classes[i] == Class::Free {
                for k in 0..3 {
                    block.at[i][k] = self.origin[i][k] + step * self.direction[i][k];
                }
            }
        }
    }

    fn turn(&mut self, block: &Block, turn: &Turn) {
        if turn.keep == 0 {
            self.kept.clear();
        } else {
            self.kept.push([self.way(block), self.loss(block)]);
            let surplus = self.kept.len().saturating_sub(turn.keep);
            self.kept.drain(..surplus);
        }
        for i in 0..block.own() {
            for k in 0..3 {
                let (at, force) = (block.at[i][k], block.force[i][k]);
                let place = at + turn.beyond * (at - self.origin[i][k]);
                let force = force + turn.beyond * (force - self.before[i][k]);
                let mut d = turn.force * force + turn.direction * self.direction[i][k];
                for ([s, y], factors) in self.kept.iter().zip(&turn.history) {
                    d += factors[0] * s[i][k] + factors[1] * y[i][k];
                }
                self.direction[i][k] = if block.classes[i] == Class::Free { d } else { 0.0 };
                self.before[i][k] = force;
                self.origin[i][k] = place;
            }
        }
    }

    fn way(&self, block: &Block) -> Vec<[f64; 3]> {
        let way = |(at, origin): (&[f64; 3], &[f64; 3])| std::array::from_fn(|k| at[k] - origin[k]);
        block.at.iter().zip(&self.origin).map(way).collect()
    }

    fn loss(&self, block: &Block) -> Vec<[f64; 3]> {
        let loss = |(force, before): (&[f64; 4], &[f64; 3])| std::array::from_fn(|k| before[k] - force[k]);
        block.force.iter().zip(&self.before).map(loss).collect()
    }

    /// Measures after an evaluation whose total was `total`. `with_history` where the method is L-BFGS.
    pub fn measure(&self, block: &Block, total: &Total, with_history: bool) -> Measured {
        let Total { energy, virial } = *total;
        let mut sums = Measured { energy, virial, not_finite: block.not_finite(), ..Measured::default() };
        for i in 0..block.own() {
            let (at, force) = (block.at[i], block.force[i]);
            let mut moved = 0.0;
            for k in 0..3 {
                let (f, d) = (force[k], self.direction[i][k]);
                sums.ff += f * f;
                sums.fg += f * self.before[i][k];
                sums.fd += f * d;
                sums.dd += d * d;
                sums.max_f = sums.max_f.max(f.abs());
                sums.max_d = sums.max_d.max(d.abs());
                let way = at[k] - self.built[i][k];
                moved += way * way;
            }
            sums.moved = sums.moved.max(moved);
        }
        sums.moved = sums.moved.sqrt();
        if with_history {
            sums.history = self.history(block);
        }
        sums
    }

    fn history(&self, block: &Block) -> History {
        let mut history = History { kept: vec![[0.0; 5]; self.kept.len()], ..History::default() };
        for i in 0..block.own() {
            for k in 0..3 {
                let f = block.force[i][k];
                let (s, y) = (block.at[i][k] - self.origin[i][k], self.before[i][k] - f);
                super::add(&mut history.new, &[s * y, y * y, f * s, f * y]);
                history.largest = [history.largest[0].max(s.abs()), history.largest[1].max(y.abs())];
                for (sums, [ways, losses]) in history.kept.iter_mut().zip(&self.kept) {
                    let (sk, yk) = (ways[i][k], losses[i][k]);
                    super::add(sums, &[s * yk, y * sk, y * yk, f * sk, f * yk]);
                }
            }
        }
        history
    }

    /// Bytes of memory that the vectors hold.
    pub fn bytes(&self) -> usize {
        let kept = self.kept.iter().flatten().map(Vec::capacity).sum::<usize>();
        let vectors = [&self.origin, &self.before, &self.direction, &self.built];
        (kept + vectors.iter().map(|vector| vector.capacity()).sum::<usize>()) * size_of::<[f64; 3]>()
    }
}
