//! A program: its chare types, and why a run of it may not end well.

use crate::chare::{Chare, Message};
use crate::store;
use crate::type_name::type_name;
use runtime::failure::{Failure, Kind};
use runtime::object::{ChareType, Kernel, ProgramTable, PupError, VariableMigration};
use runtime::pe::queue::QueueOrder;
use runtime::schema::{Shape, shape_of};
use serde::de::DeserializeOwned;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;

/// Why a run did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run could not go on: a chare failed, or memory ran out.
    #[error("{0}")]
    Failed(String),
    /// A node was lost.
    #[error("{sentence}")]
    NodeLost {
        /// Its name in the nodes file.
        node: String,
        /// What happened to it.
        sentence: String,
    },
    /// The result was checked and is wrong.
    #[error("{0}")]
    Wrong(String),
    /// What the user asked for or gave is not usable.
    #[error("{0}")]
    Input(String),
    /// A result could not be written.
    #[error("{0}")]
    Output(String),
    /// A message was not what its receiver expected.
    #[error(transparent)]
    Pup(#[from] PupError),
    /// The run was ended from outside, by its user or its time limit; or so was another one that a command of the
    /// program's own had started.
    #[error(transparent)]
    Ended(Failure),
    /// The application's own error.
    #[error(transparent)]
    App(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl RunError {
    /// What kind of failure it is, from which the exit code follows.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Wrong(_) | Self::App(_) => Kind::Wrong,
            Self::Input(_) => Kind::Input,
            // Only the run itself knows how the loss was noticed.
            Self::NodeLost { .. } => Kind::Unavailable,
            Self::Failed(_) | Self::Pup(_) => Kind::Failed,
            Self::Output(_) => Kind::Output,
            Self::Ended(failure) => failure.kind.clone(),
        }
    }

    /// The exit code of a program that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.kind().exit_code()
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// What the driver's waits say when the run has failed.
impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        let Failure { kind, sentence } = failure;
        match kind {
            Kind::NodeLost { node, .. } => Self::NodeLost { node, sentence },
            Kind::Failed => Self::Failed(sentence),
            kind => Self::Ended(Failure { kind, sentence }),
        }
    }
}

/// A program under construction: list its chare types, then run it, inside this process or from a command line.
pub struct Program {
    name: &'static str,
    version: &'static str,
    table: ProgramTable,
    /// How many of the table's chare types, which are its last ones, nobody has listed.
    unlisted: usize,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

impl Program {
    /// A program of that name and version; nodes refuse to work with another version.
    #[must_use]
    pub fn new(name: &'static str, version: &'static str) -> Self {
        let chare_types = registered();
        let unlisted = chare_types.len();
        let table = ProgramTable {
            name: name.into(),
            version: version.into(),
            chare_types,
            ..ProgramTable::default()
        };
        Self { name, version, table, unlisted }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Lists a chare type. All types that are ever made must be listed, but those that
    /// [`#[chare]`](macro@crate::chare) stands before: an executable knows them by itself.
    ///
    /// # Panics
    /// If another type of the same name is listed already.
    #[must_use]
    pub fn chare<C: Chare>(mut self) -> Self {
        let made = store::chare_type::<C>();
        let types = &mut self.table.chare_types;
        let (listed, unlisted) = types.split_at(types.len() - self.unlisted);
        if unlisted.iter().any(|known| known.type_id == made.type_id) {
            return self;
        }
        assert!(
            listed.iter().all(|known| known.name != made.name),
            "two chare types are named {}: name one with `entries!(… as \"Name\": …)` or `#[chare(name = \"Name\")]`",
            made.name
        );
        let at = listed.len();
        // What is listed is meant, whatever else there is of its name in other parts of the executable.
        if let Some(other) = unlisted.iter().position(|known| known.name == made.name) {
            types.remove(at + other);
            self.unlisted -= 1;
        }
        types.insert(at, made);
        self
    }

    /// Says how a state that was saved as an `Old`, when [`Chare::VERSION`] of `C` was `from`, becomes one of today's. `Old` has
    /// the fields that the type had then, with their names and in their order. Where `make` returns an error the run does not
    /// go on, and says it.
    ///
    /// # Panics
    /// If `C` is not listed yet.
    #[must_use]
    pub fn migrate<Old, C>(mut self, from: u16, make: fn(Old) -> Result<C, String>) -> Self
    where
        Old: DeserializeOwned + 'static,
        C: Chare,
    {
        let listed = self.table.chare_types.iter_mut().find(|t| t.type_id == TypeId::of::<C>());
        let listed = listed.expect("list a chare type before its migrations");
        listed.schema.migrations.push(store::migration(from, make));
        self
    }

    /// The same for values of shared variables, readonly and write-once ones that the driver makes, accumulators and monotonic
    /// ones: says how one that was saved as an `Old` becomes a `T`. The version of the type of a variable is 1 in a program that
    /// lists no migration to it, and otherwise one more than the newest from which it lists one.
    #[must_use]
    pub fn migrate_variable<Old, T>(mut self, from: u16, make: fn(Old) -> Result<T, String>) -> Self
    where
        Old: DeserializeOwned + 'static,
        T: Message,
    {
        let migration = store::variable_migration(from, make);
        let (into, name, shape) = (TypeId::of::<T>(), type_name::<T>(), shape_of::<T> as fn() -> Shape);
        self.table.variable_migrations.push(VariableMigration { into, name, shape, migration });
        self
    }

    /// Says which of the messages of the same priority that wait on a PE is the next; by itself it is the one that came
    /// first. With the last first a program gets deeper before it gets broader, and its queues stay short; but messages
    /// from one sender to one chare run in no order that is promised, and what is old may wait for long.
    #[must_use]
    pub fn queue_order(mut self, order: QueueOrder) -> Self {
        self.table.queue_order = order;
        self
    }

    /// Lists a function by which speeds are measured; its number among the program's.
    ///
    /// # Panics
    /// If there are more than 65,536.
    pub fn add_kernel(&mut self, kernel: Kernel) -> u16 {
        self.table.kernels.push(kernel);
        u16::try_from(self.table.kernels.len() - 1).expect("a program has few applications")
    }

    /// What nodes are given: types and kernels by their numbers.
    #[must_use]
    pub fn table(&self) -> &ProgramTable {
        &self.table
    }

    /// The finished tables, when all types are listed.
    #[must_use]
    pub fn into_table(self) -> ProgramTable {
        self.table
    }
}

/// A chare type that an executable knows without a list: what `#[chare]` and `#[task]` write into it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Registered {
    module: &'static str,
    make: fn() -> ChareType,
}

inventory::collect!(Registered);

impl Registered {
    /// A chare type of the module of that path.
    #[must_use]
    pub const fn of<C: Chare>(module: &'static str) -> Self {
        Self { module, make: store::chare_type::<C> }
    }
}

/// The chare types that an executable knows without a list, in the order of their names, which is the same in all
/// executables of one source. Types of the same name have the path of their module before it.
fn registered() -> Vec<ChareType> {
    let mut by_name = BTreeMap::<String, Vec<(&str, ChareType)>>::new();
    for registered in inventory::iter::<Registered> {
        let made = (registered.make)();
        by_name.entry(made.name.clone()).or_default().push((registered.module, made));
    }
    let named = |(name, mut types): (String, Vec<(&'static str, ChareType)>)| {
        types.sort_by_key(|(module, _)| *module);
        let is_alone = types.len() == 1;
        types.into_iter().map(move |(module, made)| {
            let name = if is_alone { name.clone() } else { format!("{module}::{name}") };
            ChareType { name, ..made }
        })
    };
    by_name.into_iter().flat_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    mod one {
        use crate::prelude::*;

        #[message]
        pub(super) struct Shape(u32);

        #[chare]
        pub(super) struct Lamp;

        #[chare(reduces(Max<u32> as "Highest"))]
        impl Lamp {
            fn new(_height: u32) -> Self {
                Self
            }
            #[entry]
            fn go_on(&mut self, _shape: Shape, _step: u32) {}
            #[entry(name = "Off")]
            fn stop(&mut self) {}
            #[reduce]
            fn count(&self) -> Sum<u32> {
                Sum(1)
            }
        }

        #[chare]
        pub(super) struct Bulb;

        #[chare]
        impl Bulb {
            fn new() -> Self {
                Self
            }
        }
    }

    mod other {
        use crate::prelude::*;

        #[chare]
        pub(super) struct Bulb;

        #[chare]
        impl Bulb {
            fn new() -> Self {
                Self
            }
        }

        #[task]
        pub(super) fn double(number: u32) -> u32 {
            2 * number
        }
    }

    mod listed {
        use crate::prelude::*;

        #[derive(serde::Serialize, serde::Deserialize)]
        pub(super) struct Lamp;
        crate::entries!(Lamp:);
        impl Chare for Lamp {
            type Index = u32;
            type Init = ();
            fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
                Self
            }
        }
    }

    fn lines(program: &Program) -> Vec<String> {
        program
            .table()
            .lines()
            .into_iter()
            .filter(|line| ["Lamp", "Bulb", "double"].iter().any(|n| line.contains(n)))
            .collect()
    }

    /// What nodes compare.
    #[test]
    fn types_are_known_without_a_list_by_names_that_tell_them_apart_in_an_order_that_is_that_of_all_builds() {
        let known = lines(&Program::new("lamps", "1"));
        let lamp = "Lamp: GoOn Off Count; reduces Highest Sum<u32>";
        let bulbs = ["chares::program::tests::one::Bulb", "chares::program::tests::other::Bulb"];
        assert_eq!(known.len(), 4, "{known:#?}");
        assert!(known[0].contains(bulbs[0]) && known[1].contains(bulbs[1]), "{known:#?}");
        assert!(known[3].contains(lamp), "{known:#?}");
        assert!(known[2].contains("Doer<double>: Do"), "{known:#?}");
        let again = Program::new("lamps", "1").chare::<one::Lamp>().chare::<other::Bulb>();
        assert_eq!(lines(&again), known, "to list them too changes nothing");
    }

    #[test]
    fn what_is_listed_is_meant_whatever_else_has_its_name() {
        let program = Program::new("lamps", "1").chare::<listed::Lamp>();
        let made = |types: &[ChareType]| types.iter().find(|known| known.name == "Lamp").unwrap().type_id;
        assert_eq!(made(&program.table().chare_types), TypeId::of::<listed::Lamp>());
        let other = std::panic::AssertUnwindSafe(|| drop(program.chare::<one::Lamp>()));
        let other = std::panic::catch_unwind(other);
        assert!(other.is_err(), "two of a name can only be told apart by their author");
        assert_eq!(other::double(4), 8);
    }
}
