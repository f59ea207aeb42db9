//! What a program is written against: chares, their entry methods, proxies, reductions and the driver.
//!
//! ```
//! use chares::prelude::*;
//!
//! #[chare]
//! struct Square(u64);
//!
//! #[chare]
//! impl Square {
//!     fn new(ctx: &mut Ctx<Self>) -> Self {
//!         Self(u64::from(ctx.index()))
//!     }
//!
//!     #[reduce]
//!     fn area(&self) -> Sum<u64> {
//!         Sum(self.0 * self.0)
//!     }
//! }
//!
//! fn main() -> Result<(), RunError> {
//!     // Two nodes with two PEs and one, inside this process.
//!     Program::new("squares", "1.0").run_in_process(&InProcess::new(&[2, 1]), |main| {
//!         let squares = main.array::<Square>(10, ());
//!         assert_eq!(squares.area().ask(main)?, Sum(285));
//!         Ok(())
//!     })
//! }
//! ```
//!
//! A *chare* is an object with state and typed entry methods. It lives on one PE (a scheduler thread of a
//! node), reacts to one message at a time, each to its end, and never blocks. Chares come single, in arrays of
//! one, two or three dimensions, and in groups (one on every PE, or on every node). The *driver* is a plain
//! function on the launcher that makes the first chares and may wait for results.
//!
//! Where to begin: the attribute [`#[chare]`](macro@chare) says all of a chare type in one place, and [`Driver::tasks`]
//! hands out work that needs none. The folder `chares/examples` has three programs with the lines that they need for Cargo,
//! all in all `chares = { path = "…" }` (or `git`) under `[dependencies]`; `chares/command/examples/stencil2d.rs` is one with
//! a command line, which comes from the crate `command` in the folder `chares/command`; this crate needs none.
//!
//! What the attribute writes can be written without it, for messages that are types of their own: [`Chare`](trait@Chare),
//! [`Entry`] and the macro [`entries!`]. What methods may do is in [`Ctx`]; how others send to a chare in [`Element`],
//! [`Array`] and [`Group`]; what the driver may do in [`Driver`]; how a program is put together and run inside one process in
//! [`Program`].
//!
//! # What is guaranteed of messages
//!
//! While no node is lost (a lost node ends the run, named). Each sentence is held by tests, in `tests/model` of
//! this crate on nodes inside one process, in the workspace's `tests/model` over several processes, and for the
//! protocols under it in virtual time:
//!
//! - **Every message is delivered exactly once.** To an element that has not been constructed yet, or has been destroyed,
//!   it waits. To a single chare that has been destroyed, it is dropped.
//! - **What waits in vain is found.** If nothing else is left to do and a message waits for an element that
//!   nobody has made, or made again, [`Driver::quiescence`] ends the run and names it; so does [`Pending::wait`], within a
//!   few seconds, and also when no message waits but nothing is left that could give the result.
//! - **One at a time.** Nothing else touches a chare while one of its entry methods runs.
//! - **Order.** Messages of the same priority from one sender to one chare run in the order sent (unless the program has
//!   queues [take the last first](Program::queue_order)), if they are of the same class: all below 16 KiB, or all of
//!   16 KiB and more. A big message may be overtaken by small ones that were sent after it, never by big ones. The same
//!   holds among broadcasts to an array, and among multicasts to a section, of one sender.
//! - **[Priorities](#priorities)** order what waits on a PE. They do not interrupt an entry method and are not an order
//!   across PEs.
//! - **No order is promised** between messages of different senders, between a broadcast, a multicast and a
//!   message sent directly, between multicasts to different sections, and between elements of a broadcast.
//! - **Reductions** of an array or section complete in the order in which its elements contribute, if their
//!   values are of the same class; each element counts once. `contribute_ordered` and `contribute_in` combine
//!   in index order, so that results do not depend on the machines, to the last bit.
//! - **Readonly values** are on every node before the driver gets their handle; write-once values when their
//!   callback is called; monotonic variables are eventually the best of all, without a bound on the time.
//! - **Quiescence** is found only if no entry method ran and no message was anywhere at one moment after the call.
//!
//! All of it holds although chares move, senders and receivers, as often as they like, while broadcasts, reductions,
//! exchanges and a search for quiescence are under way.
//!
//! A program that needs more order numbers its steps and holds early messages in an [`Inbox`].
//!
//! # Priorities
//!
//! Whoever sends can say how urgent a message is ([`Element::send_with`], [`Array::broadcast_with`],
//! [`Section::send_with`]). A [`Priority`] is a number, a vector of bits, or both:
//!
//! - Smaller *numbers* come first; 0 is ordinary, and costs nothing.
//! - *[`Bits`]* order messages of the same number, for searches that go through a tree: they are compared bit by bit, 0
//!   before 1, and one that another begins with comes first. A node that gives each child its own bits and behind them
//!   those of the child ([`Bits::child`]) is followed by all below it, from left to right. So one PE expands the tree
//!   depth first, and each of several the leftmost node that waits there. Messages of the same number without bits come
//!   before all that have some.
//! - *Equal ones* run first come, first served, or the last first ([`Program::queue_order`]).
//!
//! ```
//! use chares::{Bits, Priority};
//! let left = Bits::new().child(0, 3); // of three
//! let right = Bits::new().child(2, 3);
//! let mut waiting = [Priority::from(&right), (&left).into(), left.child(1, 2).into(), 1.into(), 0.into(), (-1).into()];
//! waiting.sort();
//! let expected = [(-1).into(), 0.into(), (&left).into(), left.child(1, 2).into(), (&right).into(), Priority::from(1)];
//! assert_eq!(waiting, expected);
//! ```
//!
//! # Chares that move
//!
//! Between any two of its entry methods a chare can go on on another PE: it asks for that itself ([`Ctx::migrate_to`]), or
//! somebody else does ([`Cx::migrate`]). It takes along its state, the messages that wait for it, and how far it has come
//! with each sender. Elements of groups stay, because there is one for each PE or node.
//!
//! - **Proxies stay good.** A chare keeps its *home*, the PE where it was made. A message that does not find it is passed
//!   on, and its sender told the place, so that the next goes straight; so does everything after it, however often the
//!   chare moves. The first message of each sender from a new side costs two small ones more.
//! - **What goes to many and comes from many** keeps its ways: broadcasts, multicasts and reductions go by the homes of
//!   elements, each of which passes on what is for elements that are away. So nobody has to know where all of them are,
//!   and each counts once; but an element that is away costs a message of its own in each.
//! - **Who does not move pays nothing** but for the look whether anybody has.
//! - **A chare says where it may go** ([`Ctx::set_mobility`]): anywhere, to some PEs only, or nowhere ([`Mobility`]). Balancers
//!   keep to it, as do restarts that place chares anew, and `--wander`; what the program itself asks for against it ends the
//!   run with a sentence. What counts is the number of the PE: should its node leave the run, the PE goes on elsewhere
//!   with all its chares, also those that may not leave it.
//! - **A chare may say when it would like to go** ([`Ctx::migration_point`]), such as at the end of a step: a balancer waits for
//!   that moment, for a second at most. Nobody has to.
//!
//! A whole node can leave a run that goes on (`metachare nodes drain`): its PEs go on at other nodes with all that is theirs,
//! groups included, and keep their numbers.
//!
//! `--wander SEED` (hidden, for tests; [`InProcess::wander`]) moves chares of any program at random moments.
//!
//! # Elements that come and go
//!
//! An element of an array ends with the entry method in which it calls [`Ctx::destroy`], at home or wherever it has moved to;
//! its state is dropped. [`Cx::insert`] makes one at its place again, as often as the program likes. The index stands for
//! whichever of them is there:
//!
//! - **Messages** to an element that has been destroyed, and those that it had not dealt with, wait for the next at its
//!   place, in order. If none comes, [`Driver::quiescence`] or a wait names one of them and ends the run, as for an element
//!   that nobody has made: nothing is lost silently (in Charm++ they are kept too, but nobody says so). Whoever destroys
//!   elements sees to it that the others know before. Callbacks are messages.
//! - **Broadcasts** reach the elements that are there; they wait for none that has been destroyed. Only an element that is
//!   destroyed, or made again, while a broadcast is under way may or may not get it. One for which the driver asks when it has
//!   heard what came of its broadcast, by a reduction, does not get that any more, unless that is less urgent.
//! - **Reductions** of the array count an element up to the one to which it has contributed last, as in Charm++. One that
//!   others have begun goes on without it, also where no element is left on a PE or node. An element that is made again
//!   begins with the next reduction to which no other has contributed yet, as far as that is known on the way from its PE
//!   to the root; its constructor runs after that has been settled. So insert between two reductions, and
//!   [wait](Driver::quiescence) until the element is there, or is heard of, before the next.
//! - **Sections** are lists of elements that the program makes: a multicast is a message to each that is on it, and waits as one; a
//!   reduction over a section waits for all on it. So make a section anew, without the element that was destroyed.
//! - **Checkpoints** have the elements that are there, and go on with what is said here of the others.
//!
//! Elements of groups stay, as there is one for each PE or node.
//!
//! # Collectives
//!
//! What many elements do together. Whoever can send can broadcast and scatter; elements take part in the rest by a call in
//! their entry methods, each to the same collectives in the same order. Nobody waits: results come as messages, and
//! several collectives may be under way. Groups are arrays with an element per PE or per node
//! ([`Group::as_array`]).
//!
//! | collective | of an array or group | of a section | cost |
//! |---|---|---|---|
//! | broadcast: one message to all | [`Array::broadcast`] | [`Section::send`] | packed once; one message for each node, along a tree |
//! | scatter: a message of its own to each | [`Array::scatter`] | [`Section::scatter`] | short ones for the same other node travel together |
//! | reduce: one value of all | [`Ctx::contribute`], [`Ctx::contribute_ordered`] | [`Ctx::contribute_in`] | one message from each PE, then from each node, up a tree |
//! | gather: all values in index order | [`Ctx::contribute_ordered`] of a [`Gather`] | [`Ctx::contribute_in`] of a [`Gather`] | as reduce, but nothing gets smaller on the way |
//! | barrier: all have come here | [`Ctx::contribute`] of a [`Barrier`] | [`Ctx::contribute_in`] of a [`Barrier`] | as reduce |
//! | all-gather: all values to all | [`Ctx::all_gather`] | [`Ctx::all_gather_in`] | gather, then broadcast |
//! | all-reduce: one value of all to all | `contribute` with [`Callback::broadcast`] | `contribute_in` with [`Callback::multicast`] | reduce, then broadcast |
//! | all-to-all: each has a part for each | [`Exchange::send`] | [`Exchange::send_in`] | a message for each pair of elements |
//!
//! Order: a scattered message is to its receiver as one sent directly; reductions and all that is made of them complete
//! in the order in which elements contribute; rounds of an [`Exchange`] are taken in the order in which they were sent.
//! When a node is lost none of them completes: the run ends, named.
//!
//! # What happens when something goes wrong
//!
//! The compiler refuses messages that a chare does not take, wrong indices and constructor arguments, and
//! reductions that are not listed. What it cannot see ends the run on all nodes with one sentence and a
//! non-zero exit code: a panic in an entry method (with the chare type, entry method, element and node), what
//! [`Cx::fail`] says, elements made twice, places outside an array, reductions that do not match, a message over
//! a limit. Every wait of the driver then returns that sentence as an error; an error that the driver returns
//! itself does the same.
//!
//! # Limits
//!
//! Only what goes to another node is limited:
//!
//! - A message has at most 4 GiB: up to 65,535 [`Bulk`] arrays, and 64 MiB beside them. The same holds for
//!   constructor arguments, values of variables, and the parts of reductions that are combined on the way.
//! - 8 GiB may wait for one other node. Nobody waits while sending, so a chare that sends without end to a node
//!   that takes more slowly comes to that limit, or to the memory of its machine.

// What the attributes write begins with `::chares`, here too.
extern crate self as chares;

mod asking;
mod attributes;
mod bulk;
mod callback;
mod chare;
pub mod checkpoint;
mod ctx;
mod driver;
mod entries;
mod exchange;
mod in_process;
mod inbox;
mod placement;
mod program;
mod proxy;
pub mod pup;
mod reduce;
mod shared;
mod site;
mod state;
mod store;
mod tasks;
mod timeline;
mod type_name;

/// What nearly every program needs: `use chares::prelude::*`.
pub mod prelude {
    pub use crate::{
        Array, Barrier, Bulk, Callback, Chare, Ctx, Cx, Driver, Element, Entry, Group, InProcess, Inbox, Max,
        Pending, Placement, Program, Proxy, RunError, Sum, Sums, chare, message, task,
    };
}

pub use asking::{Ask, Askable, One, Prioritised, Proxy};
#[doc(hidden)]
pub use asking::{Nothing, Reduced, Reply, Sent, Travels};
pub use attributes::{chare, message, task};
pub use bulk::{Bulk, Number};
pub use callback::Callback;
pub use chare::{Chare, Entry, EntryMethod, EntryTable, Index, Listed, Message, Reduces};
pub use ctx::{Ctx, Cx};
pub use driver::{Drained, Driver, Joined, Joining, Pending};
#[doc(hidden)]
pub use entries::{Method, entry_method, method, reducer, renamed};
pub use exchange::{Exchange, Part};
pub use in_process::InProcess;
pub use inbox::Inbox;
#[doc(hidden)]
pub use inventory;
pub use loadbalance;
pub use loadbalance::balance::Mobility;
pub use placement::{On, Placement};
#[doc(hidden)]
pub use program::Registered;
pub use program::{Program, RunError};
pub use proxy::{Array, Element, Group, NodeGroup, Section};
pub use reduce::{Barrier, Better, Gather, Max, Min, Reduce, Sum, Sums};
pub use runtime::failure;
pub use runtime::monitor::map::{Axis, Map};
pub use runtime::object::KernelCall;
#[doc(hidden)]
pub use runtime::object::Reducer;
pub use runtime::pe::queue::QueueOrder;
pub use runtime::priority::{Bits, Priority};
pub use runtime::size::Size;
#[doc(hidden)]
pub use serde;
pub use shared::{Accumulator, Monotonic, Readonly, WriteOnce};
pub use state::{Scratch, Stopwatch};
pub use tasks::{AsTheyCome, Doer, Task, Tasks};
pub use timeline::{EarlierSpeeds, Timeline};
#[doc(hidden)]
pub use type_name::type_name;
