//! Work of unknown amount, handed out to PEs as they get done: master and workers, without writing them.

use crate::callback::Callback;
use crate::chare::{Chare, Entry, Message};
use crate::ctx::{Ctx, Cx};
use crate::driver::{Driver, Pending};
use crate::placement::Placement;
use crate::program::RunError;
use crate::proxy::Array;
use serde::{Deserialize, Serialize};
use std::any::TypeId;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;

/// As many doers for each PE: while one computes, the next has its task.
const DOERS_PER_PE: u32 = 2;
/// While an output waits for those before it, so many times as many as may be under way are handed out behind it.
const AHEAD: usize = 16;

/// A function that any PE can be given to do; written by [`#[task]`](macro@crate::task).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a task",
    label = "a function that other nodes can be given to do",
    note = "write `#[task]` before a function of its own: a closure is known to this process only"
)]
pub trait Task: Send + 'static {
    /// What it is given; of several parameters a tuple.
    type Input: Message;
    /// What it gives.
    type Output: Message;

    /// Does it.
    fn run(input: Self::Input) -> Self::Output;
}

/// Does one task after the other.
#[doc(hidden)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Doer<T>(PhantomData<fn(T)>);

#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Task", deserialize = "T: Task"))]
struct Do<T: Task> {
    number: u64,
    input: T::Input,
    done: Callback<Done<T>>,
}

#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Task", deserialize = "T: Task"))]
struct Done<T: Task> {
    number: u64,
    doer: u32,
    output: T::Output,
}

crate::entries!(impl<T: Task> Doer<T>: Do<T> as "Do");

impl<T> fmt::Debug for Doer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Doer<{}>", std::any::type_name::<T>())
    }
}

impl<T: Task> Chare for Doer<T> {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self(PhantomData)
    }
}

impl<T: Task> Entry<Do<T>> for Doer<T> {
    fn receive(&mut self, Do { number, input, done }: Do<T>, ctx: &mut Ctx<'_, Self>) {
        let doer = ctx.index();
        done.send(ctx, Done { number, doer, output: T::run(input) });
    }
}

impl Driver {
    /// Has the machines do `task` with each of `inputs`, and gives the outputs in the order of the inputs, as an iterator.
    ///
    /// Nobody has to know how many there are and how long each takes: a PE gets its next task when it is done with one, so that
    /// each does what its speed allows. Inputs are taken from the iterator as they are handed out, and no more than
    /// [`under_way`](Tasks::under_way) are. The first output that is asked for begins the work.
    ///
    /// Chares that do the work are ordinary ones. A PE whose node leaves the run goes on elsewhere with its doers, and a
    /// balancer may move some to a node that joins. From a checkpoint the run goes on with the tasks that were not done: the
    /// driver takes all inputs again, which must be the same, but only sends those that it had not sent. A task that panics
    /// ends the run, named, as does a lost node.
    ///
    /// ```
    /// use chares::prelude::*;
    ///
    /// #[task]
    /// fn divisors(of: u64) -> u64 {
    ///     (1..=of).filter(|divisor| of % divisor == 0).count() as u64
    /// }
    ///
    /// let run = Program::new("divisors", "1.0").run_in_process(&InProcess::new(&[2, 1]), |main| {
    ///     let counts: Vec<u64> = main.tasks(1..=12, divisors).collect::<Result<_, _>>()?;
    ///     assert_eq!(counts, [1, 2, 2, 3, 2, 4, 2, 4, 3, 4, 2, 6]);
    ///     assert_eq!(divisors(60), 12); // it can still be called
    ///     Ok(())
    /// });
    /// run.unwrap();
    /// ```
    pub fn tasks<T, I>(&mut self, inputs: I, task: T) -> Tasks<'_, T, I::IntoIter>
    where
        T: Task,
        I: IntoIterator<Item = T::Input>,
    {
        let _ = task;
        let inputs = inputs.into_iter();
        let under_way = DOERS_PER_PE.saturating_mul(self.pe_count()) as usize;
        let (more, early) = (VecDeque::new(), BTreeMap::new());
        Tasks { main: self, inputs, more, under_way, crew: None, early, given: 0, has_failed: false }
    }
}

/// Outputs of tasks, in the order of the inputs; made by [`Driver::tasks`]. After an error there are no more.
pub struct Tasks<'a, T: Task, I> {
    main: &'a mut Driver,
    inputs: I,
    /// Inputs that were added on the way.
    more: VecDeque<T::Input>,
    under_way: usize,
    crew: Option<Crew<T>>,
    /// Outputs that wait for those before them.
    early: BTreeMap<u64, T::Output>,
    /// How many outputs have been given.
    given: u64,
    has_failed: bool,
}

/// Outputs of tasks as they come, each with the number of its input counted from 0 in the order in which they were handed
/// out; made by [`Tasks::as_they_come`].
pub struct AsTheyCome<'a, T: Task, I>(Tasks<'a, T, I>);

/// Who does the work.
struct Crew<T: Task> {
    doers: Array<Doer<T>>,
    callback: Callback<Done<T>>,
    done: Pending<Done<T>>,
    /// Workers with room for a task, once for each.
    free: VecDeque<u32>,
    sent: u64,
    taken: u64,
}

impl<T: Task, I> fmt::Debug for Tasks<'_, T, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tasks<{}>", std::any::type_name::<T>())
    }
}

impl<T: Task, I> fmt::Debug for AsTheyCome<'_, T, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'a, T: Task, I: Iterator<Item = T::Input>> Tasks<'a, T, I> {
    /// Has at most so many tasks handed out and not done at any moment, at least one; by itself two for each PE. Fewer take
    /// less memory, more hide longer ways to other nodes. To be said before the first output is taken.
    #[must_use]
    pub fn under_way(mut self, tasks: usize) -> Self {
        self.under_way = tasks.max(1);
        self
    }

    /// Gives outputs as they come, in no order that is promised: none waits for one before it.
    #[must_use]
    pub fn as_they_come(self) -> AsTheyCome<'a, T, I> {
        AsTheyCome(self)
    }

    /// Adds a task, which is handed out before what is left of the inputs: for work that turns out to consist of more. Its
    /// output comes behind those of all tasks that have been handed out.
    pub fn add(&mut self, input: T::Input) {
        self.more.push_back(input);
    }

    /// Gives free doers what there is to do.
    fn hand_out(&mut self) {
        let Self { main, inputs, more, under_way, crew, given, .. } = self;
        let crew = crew.get_or_insert_with(|| Crew::of(main, *under_way));
        let ahead = under_way.saturating_mul(AHEAD) as u64;
        while crew.sent - *given < ahead {
            let Some(&doer) = crew.free.front() else { return };
            let Some(input) = more.pop_front().or_else(|| inputs.next()) else { return };
            crew.free.pop_front();
            let (number, done) = (crew.sent, crew.callback);
            crew.sent += 1;
            crew.doers.at(doer).send(*main, Do { number, input, done });
        }
    }

    /// Waits for an output, if there is still one to come.
    fn wait_for_one(&mut self) -> Option<Result<(u64, T::Output), RunError>> {
        let crew = self.crew.as_mut().filter(|crew| crew.taken < crew.sent && !self.has_failed)?;
        let done = crew.done.wait(self.main);
        self.has_failed = done.is_err();
        crew.taken += 1;
        Some(done.map(|Done { number, doer, output }| {
            crew.free.push_back(doer);
            (number, output)
        }))
    }
}

impl<T: Task, I: Iterator<Item = T::Input>> AsTheyCome<'_, T, I> {
    /// Adds a task, as [`Tasks::add`] does.
    pub fn add(&mut self, input: T::Input) {
        self.0.add(input);
    }
}

impl<T: Task> Crew<T> {
    fn of(main: &mut Driver, under_way: usize) -> Self {
        let (callback, done) = main.pending();
        let pes = main.pe_count();
        let known = main.crews.get(&TypeId::of::<T>()).copied();
        let (id, shape) = known.unwrap_or_else(|| {
            // Those that follow each other are on different PEs.
            let made = main.array_placed::<Doer<T>>(pes.saturating_mul(DOERS_PER_PE), (), Placement::Cyclic);
            (made.id(), made.shape())
        });
        main.crews.insert(TypeId::of::<T>(), (id, shape));
        let free = (0..shape[0]).cycle().take(under_way).collect();
        Self { doers: Array::new(id, shape), callback, done, free, sent: 0, taken: 0 }
    }
}

impl<T: Task, I: Iterator<Item = T::Input>> Iterator for Tasks<'_, T, I> {
    type Item = Result<T::Output, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(output) = self.early.remove(&self.given) {
                self.given += 1;
                return Some(Ok(output));
            }
            self.hand_out();
            match self.wait_for_one()? {
                Ok((number, output)) => drop(self.early.insert(number, output)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<T: Task, I: Iterator<Item = T::Input>> Iterator for AsTheyCome<'_, T, I> {
    type Item = Result<(u64, T::Output), RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        let early = self.0.early.pop_first().map(Ok);
        let next = early.or_else(|| {
            self.0.hand_out();
            self.0.wait_for_one()
        });
        self.0.given += u64::from(matches!(next, Some(Ok(_))));
        next
    }
}
