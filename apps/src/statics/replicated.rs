//! Replicated data, as PMOLSTAT of 1999 had it: every PE holds all atoms, and computes some consecutive blocks of them.
//!
//! A cross-check for the blocks as chares: the same bits, by another way, with memory on every node that grows with the
//! crystal. Each PE tells all others the places of its free atoms and the slopes of its atoms, at every evaluation.
//!
//! There is one for each PE, and it stays there: each holds all atoms, so more of them would need as much memory again, and
//! one that moved would take everything along to a PE that has it already. Work that can move is that of the blocks as
//! chares (`cblocks`), which is the default.

use super::block::{Block, Class};
use super::cblocks::element::Collect;
use super::course::{Begin, Course, Next};
use super::problem::Problem;
use super::relax::vectors::Vectors;
use super::relax::{Measured, Method, Order};
use super::result::{Digest, Piece};
use super::serial::System;
use chares::{Bulk, Callback, Chare, Ctx, Cx as _, Entry, Gather, Inbox, Readonly};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// All atoms, on one PE.
#[derive(Serialize, Deserialize)]
pub struct Replica {
    setup: ReplicaInit,
    system: System,
    vectors: Vec<Vectors>,
    course: Course,
    /// Counts exchanges: two for an evaluation.
    exchange: u64,
    rebuilds: bool,
    told: Inbox<u64, BlockNumbers>,
}

/// What every PE is told.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReplicaInit {
    /// What is relaxed.
    pub problem: Readonly<Problem>,
    /// PE `p` computes the blocks `bounds[p]..bounds[p + 1]`.
    pub bounds: Vec<u64>,
}

/// Places or slopes of the blocks of a PE.
#[derive(Clone, Serialize, Deserialize)]
pub struct BlockNumbers {
    exchange: u64,
    from: u32,
    numbers: Bulk<f64>,
}

/// What blocks measured, in the order of their numbers.
type Sums = Gather<Measured>;

/// A checksum over the bits of all places and forces.
#[derive(Clone, Serialize, Deserialize)]
pub struct CheckReplica(pub Callback<Gather<Digest>>);

chares::entries!(Replica:
    Begin, BlockNumbers, Sums as "Sums", CheckReplica as "Check", Collect; reduces Sums as "Sums", Gather<Digest> as "Digests");

impl ReplicaInit {
    fn blocks(&self, pe: u32) -> Range<usize> {
        self.bounds[pe as usize] as usize..self.bounds[pe as usize + 1] as usize
    }
}

impl Chare for Replica {
    type Index = u32;
    type Init = ReplicaInit;

    fn new(setup: ReplicaInit, ctx: &mut Ctx<'_, Self>) -> Self {
        let problem = setup.problem.read(ctx);
        let blocks = (0..problem.partition.len()).map(|number| problem.block(number)).collect();
        let (bounds, mine) = (problem.crystal.bounds(), setup.blocks(ctx.pe_id()));
        let system = System::shared(problem.potential.clone(), bounds, blocks, problem.skin, mine);
        Self {
            setup,
            system,
            vectors: Vec::new(),
            course: Course::default(),
            exchange: 0,
            rebuilds: false,
            told: Inbox::default(),
        }
    }
}

impl Entry<Begin> for Replica {
    fn receive(&mut self, begin: Begin, ctx: &mut Ctx<'_, Self>) {
        let next = self.course.told(begin);
        self.go_on(next, ctx);
    }
}

impl Entry<Sums> for Replica {
    fn receive(&mut self, Gather(blocks): Sums, ctx: &mut Ctx<'_, Self>) {
        let tells = ctx.pe_id() == 0;
        let next = self.course.next(ctx, &Measured::all(&blocks), tells);
        self.go_on(next, ctx);
    }
}

impl Entry<BlockNumbers> for Replica {
    fn receive(&mut self, told: BlockNumbers, ctx: &mut Ctx<'_, Self>) {
        self.told.hold(told.exchange, told);
        self.advance(ctx);
    }
}

impl Entry<CheckReplica> for Replica {
    fn receive(&mut self, CheckReplica(to): CheckReplica, ctx: &mut Ctx<'_, Self>) {
        let digests = self.system.mine().iter().map(Digest::of).collect();
        ctx.contribute_ordered(Gather(digests), to);
    }
}

impl Entry<Collect> for Replica {
    fn receive(&mut self, Collect(to): Collect, ctx: &mut Ctx<'_, Self>) {
        let (problem, numbers) = (self.setup.problem.read(ctx), self.setup.blocks(ctx.pe_id()));
        for (number, block) in numbers.zip(self.system.mine()) {
            to.send(ctx, Piece::of(number as u32, block, &problem));
        }
    }
}

impl Replica {
    fn go_on(&mut self, next: Next, ctx: &mut Ctx<'_, Self>) {
        match next {
            Next::Obey(order) => self.obey(&order, ctx),
            Next::Begin(begin) => {
                let problem = self.setup.problem.read(ctx);
                problem.prepare_all(&begin.leg, &mut self.system);
                self.vectors = self.system.mine().iter().map(Vectors::new).collect();
                let order = self.course.begin(begin, &problem);
                self.obey(&order, ctx);
            }
            Next::Wait => {}
        }
    }

    fn obey(&mut self, order: &Order, ctx: &mut Ctx<'_, Self>) {
        let Order::Go { rebuild, .. } = order else { return };
        let system = &mut self.system;
        for (block, vectors) in system.mine().iter_mut().zip(&mut self.vectors) {
            vectors.obey(block, order);
        }
        self.rebuilds = *rebuild;
        let places = |block: &Block| {
            let free = (0..block.own()).filter(|&i| block.classes[i] == Class::Free);
            free.flat_map(|i| block.at[i]).collect::<Vec<_>>()
        };
        let numbers = system.mine().iter().flat_map(places).collect();
        self.tell(numbers, ctx);
    }

    /// Tells all others, and goes on when all have told.
    fn tell(&mut self, numbers: Vec<f64>, ctx: &mut Ctx<'_, Self>) {
        self.exchange += 1;
        let (all, me) = (ctx.array(), ctx.pe_id());
        let told = BlockNumbers { exchange: self.exchange, from: me, numbers: numbers.into() };
        for pe in (0..ctx.pe_count()).filter(|&pe| pe != me) {
            all.at(pe).send(ctx, told.clone());
        }
        self.advance(ctx);
    }

    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        let others = ctx.pe_count() as usize - 1;
        let Some(told) = self.told.take(&self.exchange, others) else { return };
        let system = &mut self.system;
        let has_places = self.exchange % 2 == 1;
        for BlockNumbers { from, numbers, .. } in &told {
            let blocks = &mut system.blocks_mut()[self.setup.blocks(*from)];
            if has_places { take_places(blocks, numbers) } else { take_slopes(blocks, numbers) }
        }
        if has_places {
            if self.rebuilds {
                system.rebuild();
                system.mine().iter().zip(&mut self.vectors).for_each(|(block, vectors)| vectors.built(block));
            }
            system.densities();
            let slopes = |block: &Block| block.slope[..block.own()].to_vec();
            let numbers = system.mine().iter().flat_map(slopes).collect();
            return self.tell(numbers, ctx);
        }
        let with_history = self.setup.problem.read(ctx).method == Method::Lbfgs;
        let measured = system.measure(&self.vectors, with_history, self.course.with_virial());
        ctx.progress(measured.len() as u64);
        let all = Callback::broadcast(&ctx.array());
        ctx.contribute_ordered(Gather(measured), all);
    }
}

fn take_places(blocks: &mut [Block], numbers: &[f64]) {
    let mut places = numbers.chunks_exact(3);
    for block in blocks {
        for i in 0..block.own() {
            if block.classes[i] == Class::Free
                && let Some(at) = places.next()
            {
                block.at[i].copy_from_slice(at);
            }
        }
    }
}

fn take_slopes(blocks: &mut [Block], numbers: &[f64]) {
    let mut slopes = numbers.iter();
    for block in blocks {
        let own = block.own();
        for (to, slope) in block.slope[..own].iter_mut().zip(&mut slopes) {
            *to = *slope;
        }
    }
}
