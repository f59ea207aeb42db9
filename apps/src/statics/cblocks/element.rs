//! The chare: a block of the crystal that relaxes together with all others.

use super::account::Figures;
use super::halo::{self, Audience, Features, Source};
use crate::statics::block::{Block, Bounds};
use crate::statics::course::{Begin, Course, Next};
use crate::statics::neighbours::Extent;
use crate::statics::problem::Problem;
use crate::statics::relax::vectors::Vectors;
use crate::statics::relax::{Measured, Method, Order};
use crate::statics::result::{Digest, Piece};
use chares::{
    Array, Bulk, Callback, Chare, Ctx, Cx as _, Element, Entry, Gather, Inbox, Message, Readonly, Reduce,
    Section,
};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What others wait for goes before anything that computes.
const URGENT: i32 = -1;
/// Densities that other nodes wait for, those that this node waits for, forces, which nobody waits for, and what can be
/// computed without ghosts, where nothing else is to be done.
const DENSITIES_FOR_OTHERS: i32 = 1;
const DENSITIES: i32 = 2;
const FORCES: i32 = 3;
const AHEAD: i32 = 4;

/// A block of the crystal, its ghosts, and what it keeps for the relaxation.
#[derive(Serialize, Deserialize)]
pub struct CBlock {
    problem: Readonly<Problem>,
    number: u32,
    block: Block,
    vectors: Vectors,
    course: Course,
    /// The box of now.
    bounds: Bounds,
    /// Counts evaluations; messages carry it.
    evaluation: u64,
    stage: Stage,
    /// Whether what needs no ghosts has been computed in this stage.
    is_ahead: bool,
    /// Node by node, with the address of all blocks there.
    audiences: Vec<(Audience, Section<Self>)>,
    sources: Vec<Source>,
    /// Whether another node feels this block.
    is_felt_elsewhere: bool,
    ghosts: Inbox<u64, Ghosts>,
    places: Inbox<u64, Places>,
    slopes: Inbox<u64, Slopes>,
    figures: Figures,
}

/// What a block waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// An order, or its own turn to compute.
    Idle,
    /// The extents of all.
    Extents,
    /// Ghosts of all that it feels.
    Ghosts,
    /// Their places.
    Places,
    /// Their slopes.
    Slopes,
}

/// What all blocks measured, joined in the order of their numbers.
#[derive(Clone, Serialize, Deserialize)]
pub struct Sums(pub Measured);

impl Reduce for Sums {
    fn combine(&mut self, other: Self) {
        self.0.join(&other.0);
    }
}

/// Boxes around the atoms of all blocks, by their numbers.
type Extents = Gather<Option<Extent>>;

/// Atoms of a block that feels the receiver's, where lists are built anew.
#[derive(Clone, Serialize, Deserialize)]
pub struct Ghosts {
    evaluation: u64,
    from: u32,
    features: Features,
}

/// Where the atoms of a block are now.
#[derive(Clone, Serialize, Deserialize)]
pub struct Places {
    evaluation: u64,
    from: u32,
    places: Bulk<f64>,
}

/// F'(rho) of the atoms of a block.
#[derive(Clone, Serialize, Deserialize)]
pub struct Slopes {
    evaluation: u64,
    from: u32,
    slopes: Bulk<f64>,
}

/// Compute what needs no ghosts, while they are on their way: of the densities, or of the forces.
#[derive(Serialize, Deserialize)]
pub struct Ahead {
    evaluation: u64,
    awaited: Stage,
}

/// Compute the densities: the ghosts are in their places.
#[derive(Serialize, Deserialize)]
pub struct Densities;

/// Compute the forces: the ghosts have their slopes.
#[derive(Serialize, Deserialize)]
pub struct Forces;

/// Say what it took.
#[derive(Clone, Serialize, Deserialize)]
pub struct Account(pub Callback<Gather<Figures>>);

/// A checksum over the bits of all places and forces.
#[derive(Clone, Serialize, Deserialize)]
pub struct Check(pub Callback<Digest>);

/// Send the atoms.
#[derive(Clone, Serialize, Deserialize)]
pub struct Collect(pub Callback<Piece>);

chares::entries!(CBlock:
    Begin, Sums, Extents as "Extents", Ghosts, Places, Slopes, Ahead, Densities, Forces, Account, Check, Collect;
    reduces Sums, Extents as "Extents", Gather<Figures> as "Figures", Digest);

/// The place of a block in the array: z, y, x, so that blocks stand in the order of their numbers.
pub fn index_of(grid: [usize; 3], number: u32) -> [u32; 3] {
    let [nx, ny, _] = grid.map(|n| n as u32);
    [number / (nx * ny), number / nx % ny, number % nx]
}

/// The shape of the array for a grid of blocks along x, y, z.
pub fn shape_of(grid: [usize; 3]) -> [u32; 3] {
    let [x, y, z] = grid.map(|n| n as u32);
    [z, y, x]
}

impl Chare for CBlock {
    type Index = [u32; 3];
    type Init = Readonly<Problem>;

    fn new(problem: Readonly<Problem>, ctx: &mut Ctx<'_, Self>) -> Self {
        let known = problem.read(ctx);
        let ([nx, ny, _], [z, y, x]) = (known.partition.grid(), ctx.index());
        let number = (z * ny as u32 + y) * nx as u32 + x;
        Self {
            problem,
            number,
            block: known.block(number as usize),
            vectors: Vectors::default(),
            course: Course::default(),
            bounds: known.crystal.bounds(),
            evaluation: 0,
            stage: Stage::Idle,
            is_ahead: false,
            audiences: Vec::new(),
            sources: Vec::new(),
            is_felt_elsewhere: false,
            ghosts: Inbox::default(),
            places: Inbox::default(),
            slopes: Inbox::default(),
            figures: Figures::default(),
        }
    }
}

impl Entry<Begin> for CBlock {
    fn receive(&mut self, begin: Begin, ctx: &mut Ctx<'_, Self>) {
        let next = self.course.told(begin);
        self.go_on(next, ctx);
    }
}

impl Entry<Sums> for CBlock {
    fn receive(&mut self, Sums(measured): Sums, ctx: &mut Ctx<'_, Self>) {
        let next = self.course.next(ctx, &measured, self.number == 0);
        self.go_on(next, ctx);
    }
}

impl Entry<Extents> for CBlock {
    fn receive(&mut self, Gather(extents): Extents, ctx: &mut Ctx<'_, Self>) {
        let problem = self.problem.read(ctx);
        let (bounds, reach, me) = (&self.bounds, problem.reach(), self.number as usize);
        self.sources = halo::sources(me, &extents, bounds, reach);
        let (array, grid, node) = (ctx.array(), problem.partition.grid(), ctx.node_id());
        let node_of = |block| match ctx.home_of(&array, index_of(grid, block)) {
            Some(pe) => ctx.node_of_pe(pe),
            None => node,
        };
        let told = halo::audiences(&self.block, me, &extents, (bounds, reach), node_of);
        self.audiences.clear();
        for (audience, features) in told {
            for (&block, features) in audience.blocks.iter().zip(features) {
                let ghosts = Ghosts { evaluation: self.evaluation, from: self.number, features };
                array.at(index_of(grid, block)).send_with(ctx, URGENT, ghosts);
            }
            let section = array.section(ctx, audience.blocks.iter().map(|&block| index_of(grid, block)));
            self.audiences.push((audience, section));
        }
        self.is_felt_elsewhere = self.audiences.iter().any(|(audience, _)| audience.node != node);
        self.stage = Stage::Ghosts;
        self.advance(ctx);
    }
}

impl Entry<Ghosts> for CBlock {
    fn receive(&mut self, ghosts: Ghosts, ctx: &mut Ctx<'_, Self>) {
        self.ghosts.hold(ghosts.evaluation, ghosts);
        self.advance(ctx);
    }
}

impl Entry<Places> for CBlock {
    fn receive(&mut self, places: Places, ctx: &mut Ctx<'_, Self>) {
        self.places.hold(places.evaluation, places);
        self.advance(ctx);
    }
}

impl Entry<Slopes> for CBlock {
    fn receive(&mut self, slopes: Slopes, ctx: &mut Ctx<'_, Self>) {
        self.slopes.hold(slopes.evaluation, slopes);
        self.advance(ctx);
    }
}

impl Entry<Densities> for CBlock {
    fn receive(&mut self, _: Densities, ctx: &mut Ctx<'_, Self>) {
        let (begun, problem) = (Instant::now(), self.problem.read(ctx));
        if !std::mem::take(&mut self.is_ahead) {
            self.block.densities_inside(&problem.potential);
        }
        self.block.densities_across(&problem.potential);
        self.figures.seconds += begun.elapsed().as_secs_f64();
        for audience in &self.audiences {
            if let Some(slopes) = audience.0.slopes(&self.block) {
                let slopes = Slopes { evaluation: self.evaluation, from: self.number, slopes };
                tell(audience, &problem, slopes, ctx);
            }
        }
        self.await_ghosts(Stage::Slopes, ctx);
    }
}

impl Entry<Ahead> for CBlock {
    fn receive(&mut self, ahead: Ahead, ctx: &mut Ctx<'_, Self>) {
        // What it waited for has come meanwhile.
        if (ahead.evaluation, ahead.awaited) != (self.evaluation, self.stage) {
            return;
        }
        let (begun, problem) = (Instant::now(), self.problem.read(ctx));
        match self.stage {
            Stage::Places => self.block.densities_inside(&problem.potential),
            _ => self.block.forces_inside(&problem.potential, self.course.with_virial()),
        }
        self.is_ahead = true;
        self.figures.seconds += begun.elapsed().as_secs_f64();
    }
}

impl Entry<Forces> for CBlock {
    fn receive(&mut self, _: Forces, ctx: &mut Ctx<'_, Self>) {
        let (begun, problem) = (Instant::now(), self.problem.read(ctx));
        let with_virial = self.course.with_virial();
        if !std::mem::take(&mut self.is_ahead) {
            self.block.forces_inside(&problem.potential, with_virial);
        }
        let total = self.block.forces_across(&problem.potential, with_virial);
        let measured = self.vectors.measure(&self.block, &total, problem.method == Method::Lbfgs);
        self.figures.seconds += begun.elapsed().as_secs_f64();
        ctx.progress(1);
        let all = Callback::broadcast(&ctx.array());
        ctx.contribute_ordered(Sums(measured), all);
    }
}

impl Entry<Account> for CBlock {
    fn receive(&mut self, Account(to): Account, ctx: &mut Ctx<'_, Self>) {
        let kept = self.audiences.iter().map(|(audience, _)| audience.bytes()).sum::<usize>()
            + self.sources.iter().map(Source::bytes).sum::<usize>();
        let mut figures = self.figures.clone();
        figures.of_block(&self.block);
        figures.sources = self.sources.iter().map(|source| source.block).collect();
        figures.audiences =
            self.audiences.iter().map(|(audience, _)| (audience.node, audience.atoms() as u32)).collect();
        figures.bytes = (self.block.bytes() + self.vectors.bytes() + kept + size_of::<Self>()) as u64;
        figures.pe = ctx.pe_id();
        ctx.contribute_ordered(Gather(vec![figures]), to);
    }
}

impl Entry<Check> for CBlock {
    fn receive(&mut self, Check(to): Check, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Digest::of(&self.block), to);
    }
}

impl Entry<Collect> for CBlock {
    fn receive(&mut self, Collect(to): Collect, ctx: &mut Ctx<'_, Self>) {
        let problem = self.problem.read(ctx);
        to.send(ctx, Piece::of(self.number, &self.block, &problem));
    }
}

impl CBlock {
    fn go_on(&mut self, next: Next, ctx: &mut Ctx<'_, Self>) {
        match next {
            Next::Obey(order) => self.obey(&order, ctx),
            Next::Begin(begin) => {
                let problem = self.problem.read(ctx);
                problem.prepare(&begin.leg, self.number as usize, &mut self.block, &mut self.bounds);
                self.vectors = Vectors::new(&self.block);
                let order = self.course.begin(begin, &problem);
                self.obey(&order, ctx);
            }
            Next::Wait => {}
        }
    }

    /// Moves the atoms as told, and tells others where they are; or that lists are to be built anew.
    fn obey(&mut self, order: &Order, ctx: &mut Ctx<'_, Self>) {
        let Order::Go { rebuild, .. } = order else { return };
        self.evaluation += 1;
        let begun = Instant::now();
        self.vectors.obey(&mut self.block, order);
        self.figures.seconds += begun.elapsed().as_secs_f64();
        if *rebuild {
            self.stage = Stage::Extents;
            self.figures.rebuilds += 1;
            let all = Callback::broadcast(&ctx.array());
            return ctx.contribute_ordered(Gather(vec![self.block.extent()]), all);
        }
        let problem = self.problem.read(ctx);
        for audience in &self.audiences {
            if let Some(places) = audience.0.places(&self.block) {
                let places = Places { evaluation: self.evaluation, from: self.number, places };
                tell(audience, &problem, places, ctx);
            }
        }
        self.await_ghosts(Stage::Places, ctx);
    }

    /// Goes on as soon as ghosts have come, and computes what needs none if they do not come at once.
    fn await_ghosts(&mut self, awaited: Stage, ctx: &mut Ctx<'_, Self>) {
        self.stage = awaited;
        self.advance(ctx);
        if self.stage == awaited {
            let ahead = Ahead { evaluation: self.evaluation, awaited };
            self.this(ctx).send_with(ctx, AHEAD, ahead);
        }
    }

    /// Goes on if all that it waits for is here.
    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        let fits = match self.stage {
            Stage::Idle | Stage::Extents => true,
            Stage::Ghosts => self.take_ghosts(ctx),
            Stage::Places => self.take_places(ctx),
            Stage::Slopes => self.take_slopes(ctx),
        };
        if !fits {
            ctx.fail(&format!("block {} got other ghosts than it expects", self.number));
        }
    }

    fn take_ghosts(&mut self, ctx: &mut Ctx<'_, Self>) -> bool {
        let Some(mut told) = self.ghosts.take(&self.evaluation, self.sources.len()) else { return true };
        let begun = Instant::now();
        told.sort_unstable_by_key(|ghosts| ghosts.from);
        let are_all = told.iter().zip(&self.sources).all(|(ghosts, source)| ghosts.from == source.block);
        let told: Vec<Features> = told.into_iter().map(|ghosts| ghosts.features).collect();
        let fits = are_all && halo::take_features(&mut self.block, &mut self.sources, told);
        if fits {
            self.block.rebuild(self.problem.read(ctx).reach());
            self.vectors.built(&self.block);
            self.figures.list_seconds += begun.elapsed().as_secs_f64();
            self.ask_for_densities(ctx);
        }
        fits
    }

    fn take_places(&mut self, ctx: &mut Ctx<'_, Self>) -> bool {
        let count = self.sources.iter().filter(|source| source.sends_places()).count();
        let Some(told) = self.places.take(&self.evaluation, count) else { return true };
        let fits = told.iter().all(|told| {
            self.source(told.from)
                .is_some_and(|at| self.sources[at].take_places(&mut self.block, &told.places))
        });
        self.ask_for_densities(ctx);
        fits
    }

    fn take_slopes(&mut self, ctx: &mut Ctx<'_, Self>) -> bool {
        let count = self.sources.iter().filter(|source| source.sends_slopes()).count();
        let Some(told) = self.slopes.take(&self.evaluation, count) else { return true };
        let fits = told.iter().all(|told| {
            self.source(told.from)
                .is_some_and(|at| self.sources[at].take_slopes(&mut self.block, &told.slopes))
        });
        self.stage = Stage::Idle;
        self.this(ctx).send_with(ctx, FORCES, Forces);
        fits
    }

    fn source(&self, block: u32) -> Option<usize> {
        self.sources.binary_search_by_key(&block, |source| source.block).ok()
    }

    fn ask_for_densities(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.stage = Stage::Idle;
        let priority = if self.is_felt_elsewhere { DENSITIES_FOR_OTHERS } else { DENSITIES };
        self.this(ctx).send_with(ctx, priority, Densities);
    }

    fn this(&self, ctx: &Ctx<'_, Self>) -> Element<Self> {
        ctx.this()
    }
}

/// Tells all blocks of an audience the same, in one message if they are on another node.
fn tell<M: Clone + Message>(
    (audience, section): &(Audience, Section<CBlock>),
    problem: &Problem,
    told: M,
    ctx: &mut Ctx<'_, CBlock>,
) where
    CBlock: Entry<M>,
{
    if audience.node != ctx.node_id() {
        return section.send_with(ctx, URGENT, told);
    }
    let (array, grid) = (ctx.array(), problem.partition.grid());
    for &block in &audience.blocks {
        array.at(index_of(grid, block)).send_with(ctx, URGENT, told.clone());
    }
}

/// The array of blocks.
pub type Blocks = Array<CBlock>;
