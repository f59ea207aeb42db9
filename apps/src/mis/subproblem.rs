//! Subproblems, each a chare that searches a part of the tree; and where new ones are made: a PE that runs short of them asks
//! for one, and some subproblem elsewhere gives half of what it has left (seed balancing by tokens). So there are no more of
//! them than are asked for, and a late large one does not keep everybody waiting.

use super::bound::Choice;
use super::graph::Complement;
use super::search::{Found, Known, Search, Workspace};
use crate::matrix::generate::hash;
use chares::loadbalance::balance::seeds::Tokens;
use chares::{
    Accumulator, Better as _, Callback, Chare, Ctx, Cx, Element, Entry, Group, Monotonic, On, Reduce,
    Scratch, Stopwatch, WriteOnce,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Rows that a subproblem reads before its PE does what else there is: about a millisecond of work.
const SLICE_WORK: f64 = 1.6e6;
/// A PE asks for a subproblem when it has fewer than this, so that there is one when it has done the other.
const AHEAD: usize = 2;
/// The whole tree in units of progress.
pub(super) const TREE: u64 = 1_000_000;

/// What all subproblems of a search share.
#[derive(Clone, Serialize, Deserialize)]
pub struct Problem {
    /// How branches are chosen.
    pub choice: Choice,
    /// Only larger sets than this count.
    pub beaten: usize,
    /// Whether no set is more than one larger than that, and the first of those in the order of the tree is wanted.
    pub is_first: bool,
    /// The best that is known anywhere.
    pub best: Monotonic<Found>,
    /// What has been done.
    pub tally: Accumulator<Tally>,
    /// Who knows the subproblems of each PE.
    pub placers: Group<Placer>,
    /// Runs since the search began.
    pub begun: Stopwatch,
}

impl Problem {
    /// What is known here of what others have found.
    pub(super) fn known(&self, cx: &mut impl Cx) -> Known {
        let best = self.best.best(cx);
        if self.is_first {
            return Known { beaten: self.beaten, before: best.map(|best| best.path.clone()) };
        }
        Known { beaten: best.map_or(0, |best| best.set.len()).max(self.beaten), before: None }
    }
}

/// Where the graph is that is searched.
#[derive(Clone, Serialize, Deserialize)]
pub enum Searched {
    /// The whole, on every node.
    Whole(WriteOnce<Complement>),
    /// A small part of it, with whoever searches it.
    Part(Complement),
}

impl Searched {
    fn read(&self, cx: &mut impl Cx) -> Option<Arc<Complement>> {
        match self {
            Self::Whole(graph) => graph.read(cx),
            Self::Part(graph) => Some(Arc::new(graph.clone())),
        }
    }
}

/// What part of the tree has been searched, where it is said in whole units.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Progress(f64);

impl Progress {
    /// So much more of it, 0 to 1.
    pub(super) fn add<C: Chare>(&mut self, ctx: &mut Ctx<'_, C>, part: f64) {
        self.0 += part * TREE as f64;
        let whole = self.0.floor();
        self.0 -= whole;
        ctx.progress(whole as u64);
    }
}

/// What subproblems have done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Nodes of the tree that they have searched.
    pub nodes: u64,
    /// Rows that they have read.
    pub rows: u64,
    /// Units of work that these were.
    pub work: f64,
    /// How many there were.
    pub subproblems: u64,
    /// The best set that they have found, if they have found any that counts.
    pub best: Option<Found>,
    /// Candidates of each step of the first descent, from whoever has made it.
    pub descent: Vec<u32>,
}

impl Reduce for Tally {
    fn combine(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.rows += other.rows;
        self.work += other.work;
        self.subproblems += other.subproblems;
        if self.descent.is_empty() {
            self.descent = other.descent;
        }
        let is_better = match (&self.best, &other.best) {
            (Some(mine), Some(theirs)) => theirs.better_than(mine),
            (mine, _) => mine.is_none(),
        };
        if is_better {
            self.best = other.best;
        }
    }
}

/// A part of the tree.
#[derive(Serialize, Deserialize)]
pub struct Subproblem {
    problem: Problem,
    graph: Searched,
    search: Search,
    /// Tells it from others.
    key: u64,
    /// Subproblems that it has given away.
    given: u64,
    /// The PE whose placer knows it.
    pe: u32,
    /// PEs that wait for a part of it.
    wishes: Vec<u32>,
    /// Who wants to know when it is over.
    over: Option<Callback<Over>>,
    progress: Progress,
    work: Scratch<Workspace>,
}

/// What a subproblem is made with.
#[derive(Clone, Serialize, Deserialize)]
pub struct SubproblemInit {
    /// What it is part of.
    pub problem: Problem,
    /// What is searched.
    pub graph: Searched,
    /// Its part; `None` is the whole tree.
    pub search: Option<Search>,
    /// Tells it from others.
    pub key: u64,
    /// Who wants to know when it is over.
    pub over: Option<Callback<Over>>,
}

/// A subproblem that began on this PE is over; what it has given away may go on.
#[derive(Serialize, Deserialize)]
pub struct Over(pub u32);

/// Search for a while.
#[derive(Serialize, Deserialize)]
pub struct GoOn;

/// Give that PE a part of what is left.
#[derive(Serialize, Deserialize)]
pub struct Divide(u32);

/// Nobody will ask any more.
#[derive(Serialize, Deserialize)]
pub struct Leave;

chares::entries!(Subproblem: GoOn, Divide, Leave);

impl Chare for Subproblem {
    type Index = u32;
    type Init = SubproblemInit;

    fn new(
        SubproblemInit { problem, graph, search, key, over }: SubproblemInit,
        ctx: &mut Ctx<'_, Self>,
    ) -> Self {
        let mut work = Workspace::default();
        let search = search.unwrap_or_else(|| match graph.read(ctx) {
            Some(graph) => {
                let all = super::graph::all(graph.len());
                Search::new(&graph, &problem.choice, problem.beaten, all, &mut work)
            }
            None => Search::default(),
        });
        let pe = ctx.group_pe();
        let began = Began { key, begun: search.begun().to_vec(), subproblem: ctx.this() };
        problem.placers.on(pe).send(ctx, began);
        let subproblem = Self {
            problem,
            graph,
            search,
            key,
            given: 0,
            pe,
            wishes: Vec::new(),
            over,
            progress: Progress::default(),
            work: Scratch(work),
        };
        subproblem.go_on(ctx);
        subproblem
    }
}

impl Entry<GoOn> for Subproblem {
    fn receive(&mut self, _: GoOn, ctx: &mut Ctx<'_, Self>) {
        let Some(graph) = self.graph.read(ctx) else {
            return ctx.fail("a subproblem was made where the graph is not known yet");
        };
        let mut known = self.problem.known(ctx);
        let begun = (self.search.nodes, self.work.bound.rows);
        // A PE with a part of a core sleeps after each slice for the rest.
        let slice = SLICE_WORK * ctx.cpu_share() / graph.work(1);
        let end = self.work.bound.rows + slice.ceil() as u64;
        let mut best = None;
        while !self.search.is_over() && self.work.bound.rows < end {
            let rows = end - self.work.bound.rows;
            let Self { search, work, problem, .. } = self;
            if let Some((set, path)) = search.run(&graph, &problem.choice, &known, rows, work) {
                let found = Found { set, path, after: problem.begun.elapsed() };
                problem.best.propose(ctx, found.clone());
                known = self.problem.known(ctx);
                best = Some(found);
            }
        }
        self.report(ctx, &graph, begun, best);
        self.grant(ctx, &known);
        if self.search.is_over() {
            let ended = Ended(self.key, std::mem::take(&mut self.wishes));
            self.problem.placers.on(self.pe).send(ctx, ended);
            if let Some(over) = self.over {
                over.send(ctx, Over(self.pe));
            }
        } else {
            self.go_on(ctx);
        }
    }
}

impl Entry<Divide> for Subproblem {
    fn receive(&mut self, Divide(pe): Divide, ctx: &mut Ctx<'_, Self>) {
        if self.search.is_over() {
            self.problem.placers.on(self.pe).send(ctx, Give(pe));
        } else {
            self.wishes.push(pe);
            let known = self.problem.known(ctx);
            self.grant(ctx, &known);
        }
    }
}

impl Entry<Leave> for Subproblem {
    fn receive(&mut self, _: Leave, ctx: &mut Ctx<'_, Self>) {
        ctx.destroy();
    }
}

impl Subproblem {
    /// The next slice, in the order in which one search would go through the tree.
    fn go_on(&self, ctx: &mut Ctx<'_, Self>) {
        ctx.this().send_with(ctx, self.search.bits(), GoOn);
    }

    /// Adds what a slice did to the counts.
    fn report(
        &mut self,
        ctx: &mut Ctx<'_, Self>,
        graph: &Complement,
        (nodes, rows): (u64, u64),
        best: Option<Found>,
    ) {
        let rows = self.work.bound.rows - rows;
        let tally = Tally {
            nodes: self.search.nodes - nodes,
            rows,
            work: graph.work(rows),
            subproblems: u64::from(self.search.is_over()),
            best,
            descent: Vec::new(),
        };
        self.problem.tally.add(ctx, tally);
        self.progress.add(ctx, std::mem::take(&mut self.search.done));
    }

    /// Gives parts to PEs that wait, as far as it has some to spare now.
    fn grant(&mut self, ctx: &mut Ctx<'_, Self>, known: &Known) {
        while let Some(&pe) = self.wishes.first()
            && let Some(part) = self.search.divide(known)
        {
            self.wishes.remove(0);
            self.given += 1;
            let key = hash(self.key, self.given, 0);
            let (problem, graph) = (self.problem.clone(), self.graph.clone());
            let init = SubproblemInit { problem, graph, search: Some(part), key, over: None };
            ctx.chare::<Self>(init, On::Pe(pe));
        }
    }
}

/// Knows the subproblems of a PE. That of PE 0 knows besides which PEs have some and which wait for one.
#[derive(Default, Serialize, Deserialize)]
pub struct Placer {
    here: Vec<Began>,
    /// Whether one has been asked for and has not come.
    has_asked: bool,
    directory: Directory,
}

/// A subproblem begins here.
#[derive(Serialize, Deserialize)]
pub struct Began {
    key: u64,
    /// Where in the tree: those that come first are searched first.
    begun: Vec<(u32, u32)>,
    subproblem: Element<Subproblem>,
}

/// One has ended; these PEs wait for a part of another.
#[derive(Serialize, Deserialize)]
pub struct Ended(u64, Vec<u32>);

/// Have a part given to that PE.
#[derive(Serialize, Deserialize)]
pub struct Give(u32);

/// That PE wants a subproblem.
#[derive(Serialize, Deserialize)]
pub struct Wanted(u32);

/// That PE has subproblems, or none any more.
#[derive(Serialize, Deserialize)]
pub struct Load(u32, bool);

chares::entries!(Placer: Began, Ended, Give, Wanted, Load);

impl Chare for Placer {
    type Index = u32;
    type Init = ();

    fn new((): (), ctx: &mut Ctx<'_, Self>) -> Self {
        let mut placer = Self::default();
        placer.ask(ctx);
        placer
    }
}

impl Entry<Began> for Placer {
    fn receive(&mut self, began: Began, ctx: &mut Ctx<'_, Self>) {
        self.here.push(began);
        self.has_asked = false;
        if self.here.len() == 1 {
            self.tell_directory(ctx, Load(ctx.index(), true));
        }
        self.ask(ctx);
    }
}

impl Entry<Ended> for Placer {
    fn receive(&mut self, Ended(key, wishes): Ended, ctx: &mut Ctx<'_, Self>) {
        if let Some(at) = self.here.iter().position(|known| known.key == key) {
            self.here.swap_remove(at).subproblem.send(ctx, Leave);
        }
        if self.here.is_empty() {
            self.tell_directory(ctx, Load(ctx.index(), false));
        }
        wishes.into_iter().for_each(|pe| self.give(ctx, pe));
        self.ask(ctx);
    }
}

impl Entry<Give> for Placer {
    fn receive(&mut self, Give(pe): Give, ctx: &mut Ctx<'_, Self>) {
        self.give(ctx, pe);
    }
}

impl Entry<Wanted> for Placer {
    fn receive(&mut self, Wanted(pe): Wanted, ctx: &mut Ctx<'_, Self>) {
        if let Some(giver) = self.directory.wanted(pe) {
            ctx.array().at(giver).send(ctx, Give(pe));
        }
    }
}

impl Entry<Load> for Placer {
    fn receive(&mut self, Load(pe, has_some): Load, ctx: &mut Ctx<'_, Self>) {
        for waiting in self.directory.load(pe, has_some) {
            ctx.array().at(pe).send(ctx, Give(waiting));
        }
    }
}

impl Placer {
    /// Asks for a subproblem if there are few; once until it comes.
    fn ask(&mut self, ctx: &mut Ctx<'_, Self>) {
        if !self.has_asked && self.here.len() < AHEAD {
            self.has_asked = true;
            self.tell_directory(ctx, Wanted(ctx.index()));
        }
    }

    /// The subproblem that is being searched gives that PE a part. If there is none, another PE's shall.
    fn give(&self, ctx: &mut Ctx<'_, Self>, pe: u32) {
        match self.here.iter().min_by_key(|known| &known.begun) {
            Some(Began { subproblem, .. }) => subproblem.send(ctx, Divide(pe)),
            None => self.tell_directory(ctx, Wanted(pe)),
        }
    }

    fn tell_directory<M: chares::Message>(&self, ctx: &mut Ctx<'_, Self>, message: M)
    where
        Self: Entry<M>,
    {
        ctx.array().at(0).send(ctx, message);
    }
}

/// Which PEs have subproblems, and which wait for one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Directory {
    #[serde(serialize_with = "waiting", deserialize_with = "tokens")]
    waiting: Tokens,
    have_some: Vec<u32>,
}

impl Directory {
    /// A PE wants a subproblem: who gives it one. If nobody can the PE waits.
    fn wanted(&mut self, pe: u32) -> Option<u32> {
        let Some(at) = self.have_some.iter().position(|giver| *giver != pe) else {
            self.waiting.idle(pe);
            return None;
        };
        // Others are asked before it is asked again.
        let giver = self.have_some.remove(at);
        self.have_some.push(giver);
        Some(giver)
    }

    /// A PE has subproblems or none any more: which other PEs it gives some to.
    fn load(&mut self, pe: u32, has_some: bool) -> Vec<u32> {
        self.have_some.retain(|other| *other != pe);
        if !has_some {
            return Vec::new();
        }
        self.have_some.push(pe);
        let mut waiting = in_order(&self.waiting);
        waiting.retain(|other| *other != pe);
        waiting.iter().for_each(|other| self.waiting.busy(*other));
        waiting
    }
}

/// PEs that wait, those first that have waited longest.
fn in_order(tokens: &Tokens) -> Vec<u32> {
    let mut left = tokens.clone();
    std::iter::from_fn(|| Some(left.place(u32::MAX)).filter(|pe| *pe != u32::MAX)).collect()
}

fn waiting<S: Serializer>(tokens: &Tokens, serializer: S) -> Result<S::Ok, S::Error> {
    in_order(tokens).serialize(serializer)
}

fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tokens, D::Error> {
    let mut tokens = Tokens::default();
    Vec::<u32>::deserialize(deserializer)?.into_iter().for_each(|pe| tokens.idle(pe));
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_that_wait_are_served_in_turn_by_those_that_have_some_in_turn() {
        let mut directory = Directory::default();
        assert_eq!([2, 1, 0, 2].map(|pe| directory.wanted(pe)), [None; 4]);
        assert_eq!(directory.load(1, true), [2, 0], "each once, and a PE gives itself nothing");
        assert_eq!((directory.wanted(0), directory.wanted(1)), (Some(1), None));
        assert_eq!(directory.load(0, true), [1]);
        assert_eq!([2, 2, 2].map(|pe| directory.wanted(pe)), [Some(1), Some(0), Some(1)]);
        assert_eq!((directory.load(1, false), directory.load(0, false)), (vec![], vec![]));
        assert_eq!([2, 1].map(|pe| directory.wanted(pe)), [None; 2]);
        let packed = chares::pup::pack(&directory);
        let mut unpacked: Directory = chares::pup::unpack(&packed).unwrap();
        assert_eq!(unpacked.load(0, true), [2, 1]);
    }
}
