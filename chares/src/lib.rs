//! What a program is written against: chares, their entry methods, proxies, reductions and the driver.

mod bulk;
mod callback;
mod chare;
mod cli;
mod ctx;
mod driver;
mod entries;
mod in_process;
mod inbox;
mod placement;
mod program;
mod proxy;
pub mod pup;
mod reduce;
mod shared;
mod store;
mod timeline;

pub use bulk::{Bulk, Number};
pub use callback::Callback;
pub use chare::{Chare, Entry, EntryMethod, EntryTable, Index, Listed, Message, Reduces};
pub use ctx::{Ctx, Cx};
pub use driver::{Driver, Pending};
#[doc(hidden)]
pub use entries::{entry_method, reducer};
pub use in_process::InProcess;
pub use inbox::Inbox;
pub use loadbalance;
pub use placement::{On, Placement};
pub use program::{App, Program, RunError};
pub use proxy::{Array, Element, Group, NodeGroup, Section};
pub use reduce::{Barrier, Better, Gather, Max, Min, Reduce, Sum};
pub use runtime::object::KernelCall;
#[doc(hidden)]
pub use runtime::object::Reducer;
pub use shared::{Accumulator, Monotonic, Readonly, WriteOnce};
pub use timeline::Timeline;
