//! An application of a program: what `run NAME` does, and what the command line knows of it.

use crate::named_file::NamedFile;
use chares::{Driver, KernelCall, Program, RunError, pup};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use loadbalance::cost::Phase;
use loadbalance::machines::Machines;
use runtime::envelope::Packed;
use runtime::object::Kernel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// Looks at arguments before any node is started.
type Check<A> = fn(&A) -> Result<(), RunError>;

/// Fills in what arguments leave to files of this machine.
type Complete<A> = fn(A) -> Result<A, RunError>;

/// Names options that are not used with the other arguments, with the reason.
type Unused<A> = fn(&A) -> Vec<(&'static str, String)>;

/// Names the files of arguments.
type Files<A> = fn(&A) -> Vec<NamedFile>;

/// Divides the work over machines as a run would, and says what each part of it needs.
type Cost<A> = fn(&A, &Machines, Option<f64>) -> Result<Vec<Phase>, RunError>;

/// An application of a program: what `run NAME` does.
pub struct App<A> {
    name: &'static str,
    about: &'static str,
    drive: fn(&mut Driver, A) -> Result<(), RunError>,
    kernel: Option<fn(&A) -> KernelCall>,
    kernel_key: Option<fn(&A) -> String>,
    kernel_unit: Option<fn(&A) -> &'static str>,
    work: Option<fn(&A) -> f64>,
    check: Option<Check<A>>,
    complete: Option<Complete<A>>,
    unused: Option<Unused<A>>,
    files: Option<Files<A>>,
    alone: Option<fn(&A) -> bool>,
    aside: &'static [&'static str],
    settled: Option<Settled<A>>,
    cost: Option<(&'static str, Cost<A>)>,
    is_hidden: bool,
}

/// An option, and the options by which a run does the same work as one with that.
type Settled<A> = (&'static str, fn(&A) -> Vec<(&'static str, String)>);

impl<A> App<A> {
    /// An application named `name`; `drive` is its first function and gets the parsed arguments.
    #[must_use]
    pub fn new(
        name: &'static str,
        about: &'static str,
        drive: fn(&mut Driver, A) -> Result<(), RunError>,
    ) -> Self {
        Self {
            name,
            about,
            drive,
            kernel: None,
            kernel_key: None,
            kernel_unit: None,
            work: None,
            check: None,
            complete: None,
            unused: None,
            files: None,
            alone: None,
            aside: &[],
            settled: None,
            cost: None,
            is_hidden: false,
        }
    }

    /// How the speed of a PE is measured for this application: `kernel` makes a function whose every call
    /// does a piece of the application's own work (a few milliseconds) and returns how many units of work
    /// that was. Without one, all PEs count as equally fast.
    #[must_use]
    pub fn kernel(mut self, kernel: fn(&A) -> KernelCall) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Names what of the arguments the kernel depends on: with equal keys it is the same, and a speed that was
    /// measured with one holds for the other (`--speed cached`). Without this, any other argument may make
    /// another kernel.
    #[must_use]
    pub fn kernel_key(mut self, key: fn(&A) -> String) -> Self {
        self.kernel_key = Some(key);
        self
    }

    /// Names the unit of the kernel's work, for people who read rates: a symbol in capitals, such as `FLOP`, or a word in
    /// the plural, such as `atoms`. Without this they are `units`.
    #[must_use]
    pub fn kernel_unit(mut self, unit: fn(&A) -> &'static str) -> Self {
        self.kernel_unit = Some(unit);
        self
    }

    /// How many units of its kernel's work the application has to do with these arguments, about: speeds of long runs
    /// are measured longer, because they are then the more worth.
    #[must_use]
    pub fn work(mut self, work: fn(&A) -> f64) -> Self {
        self.work = Some(work);
        self
    }

    /// Checks the arguments before any node is started.
    #[must_use]
    pub fn check(mut self, check: Check<A>) -> Self {
        self.check = Some(check);
        self
    }

    /// Fills in what the arguments leave to files of this machine, after they have been checked: nodes, which
    /// make the kernel from the arguments, do not have these files. An error ends the run before any node is started.
    #[must_use]
    pub fn complete(mut self, complete: Complete<A>) -> Self {
        self.complete = Some(complete);
        self
    }

    /// Names options that change nothing with these arguments, completed ones, each with the reason: a run for which one of them
    /// is given is refused, as whoever gives it expects something of it. Names are those of the fields.
    #[must_use]
    pub fn unused(mut self, unused: Unused<A>) -> Self {
        self.unused = Some(unused);
        self
    }

    /// Names the files that arguments speak of, completed ones: a run in which one would be written over another, or over
    /// the report, is refused before any node is started.
    #[must_use]
    pub fn files(mut self, files: Files<A>) -> Self {
        self.files = Some(files);
        self
    }

    /// Says of which arguments the driver makes everything by itself, without chares: no nodes are started for them.
    #[must_use]
    pub fn alone(mut self, alone: fn(&A) -> bool) -> Self {
        self.alone = Some(alone);
        self
    }

    /// Names arguments that change nothing of the timed part, such as where the result is written: runs may differ
    /// in them and are still runs of the same work, which `compare` puts side by side. Names are those of the fields.
    #[must_use]
    pub fn aside(mut self, names: &'static [&'static str]) -> Self {
        self.aside = names;
        self
    }

    /// Names an option from which the work follows by a trial on this machine, such as `seconds`, which comes out otherwise each
    /// time, and the options with their values by which a run does just that work: `compare` runs all mixes with these.
    #[must_use]
    pub fn settled(mut self, option: &'static str, by: fn(&A) -> Vec<(&'static str, String)>) -> Self {
        self.settled = Some((option, by));
        self
    }

    /// How `plan` and `compare` predict the length of the timed part: `cost` divides the work over machines as a run
    /// would, and says phase by phase what it needs, with work in units of the kernel. Where runs are known it is told
    /// how much work they did, which does not always follow from the arguments. `model` is a sentence that says what
    /// is reckoned with, for people.
    #[must_use]
    pub fn cost(mut self, model: &'static str, cost: Cost<A>) -> Self {
        self.cost = Some((model, cost));
        self
    }

    /// Leaves the application out of the help: one that only another command of the program starts.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }
}

impl<A> fmt::Debug for App<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "App({})", self.name)
    }
}

/// The driver's function with its arguments in place.
pub(crate) type Drive = Box<dyn FnOnce(&mut Driver) -> Result<(), RunError> + Send>;

/// An application whose arguments have been parsed.
pub(crate) struct Started {
    pub(crate) drive: Drive,
    /// What speeds are measured with.
    pub(crate) kernel: AppKernel,
    /// For the report.
    pub(crate) arguments: serde_json::Value,
    /// Files that its arguments name.
    pub(crate) files: Vec<NamedFile>,
    /// What is wrong with an option that is given and not used.
    pub(crate) unused: Option<String>,
    /// Whether it needs no nodes.
    pub(crate) is_alone: bool,
    /// Options that are in the place of others: what a trial has found stays so.
    pub(crate) settled: Vec<(&'static str, Option<String>)>,
}

impl Started {
    /// The same, unless an option was given that is not used.
    pub(crate) fn without_unused(self) -> Result<Self, RunError> {
        match self.unused {
            Some(sentence) => Err(RunError::Input(sentence)),
            None => Ok(self),
        }
    }
}

/// The kernel of an application with its arguments.
#[derive(Debug)]
pub(crate) struct AppKernel {
    /// Among those of the program; `None` if the application has none.
    pub(crate) number: Option<u16>,
    /// For the kernel on the nodes.
    pub(crate) arguments: Vec<u8>,
    /// Names the kernel with what it depends on, among those of all programs.
    pub(crate) key: String,
    /// What its units of work are called.
    pub(crate) unit: &'static str,
    /// Units of its work that the application does in all, or 0 if that is not known.
    pub(crate) work: f64,
}

/// Makes an application ready from its part of the command line.
pub(crate) type Start = Box<dyn Fn(&ArgMatches) -> Result<Started, RunError>>;

/// An application behind a common face.
pub(crate) struct AppEntry {
    pub(crate) name: &'static str,
    pub(crate) command: Command,
    pub(crate) start: Start,
    pub(crate) kernel: Option<u16>,
    /// Arguments that runs of the same work may differ in.
    pub(crate) aside: &'static [&'static str],
    pub(crate) cost: Option<CostModel>,
}

/// What a run is reckoned to need.
pub(crate) struct CostModel {
    /// For people.
    pub(crate) statement: &'static str,
    /// From the arguments as they are in reports.
    pub(crate) phases: Phases,
}

/// Makes phases of the arguments in a report, of machines, and of the work that runs did.
pub(crate) type Phases =
    Box<dyn Fn(&serde_json::Value, &Machines, Option<f64>) -> Result<Vec<Phase>, RunError>>;

impl<A> App<A>
where
    A: Args + Clone + Serialize + DeserializeOwned + Send + 'static,
{
    /// Behind the common face; its kernel, if it has one, joins those of the program.
    pub(crate) fn entry(self, program: &mut Program) -> AppEntry {
        let Self {
            name,
            about,
            drive,
            kernel,
            kernel_key,
            kernel_unit,
            work,
            check,
            complete,
            unused,
            files,
            alone,
            aside,
            settled,
            cost,
            is_hidden,
        } = self;
        let number = kernel.map(|kernel| {
            let prepare = move |packed: &[u8]| {
                let packed = Packed { body: packed.to_vec().into(), attachments: Vec::new() };
                Ok(kernel(&pup::unpack::<A>(&packed)?))
            };
            program.add_kernel(Kernel { name: name.into(), prepare: Arc::new(prepare) })
        });
        let start = move |matches: &ArgMatches| {
            let mut arguments = A::from_arg_matches(matches).map_err(|e| RunError::Input(e.to_string()))?;
            if let Some(check) = check {
                check(&arguments)?;
            }
            if let Some(complete) = complete {
                arguments = complete(arguments)?;
            }
            let unused = unused.and_then(|unused| {
                let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
                let (id, why) = unused(&arguments).into_iter().find(|(id, _)| is_given(id))?;
                let all = A::augment_args(Command::new(name));
                let option = all.get_arguments().find(|argument| argument.get_id() == id)?.get_long()?;
                Some(format!("--{option}: {why}; leave it out"))
            });
            let as_json = serde_json::to_value(&arguments).unwrap_or_default();
            let key = kernel_key.map_or_else(|| as_json.to_string(), |key| key(&arguments));
            let is_alone = alone.is_some_and(|alone| alone(&arguments));
            let kernel = AppKernel {
                number: number.filter(|_| !is_alone),
                arguments: pup::pack(&arguments).body.to_vec(),
                key: format!("{name}: {key}"),
                unit: kernel_unit.map_or("units", |unit| unit(&arguments)),
                work: work.map_or(0.0, |work| work(&arguments)),
            };
            let files = files.map_or_else(Vec::new, |files| files(&arguments));
            let settled = settled.map_or_else(Vec::new, |(option, by)| {
                let values = by(&arguments).into_iter().map(|(name, value)| (name, Some(value)));
                std::iter::once((option, None)).chain(values).collect()
            });
            let drive: Drive = Box::new(move |main| drive(main, arguments));
            Ok(Started { drive, kernel, arguments: as_json, files, unused, is_alone, settled })
        };
        let cost = cost.map(|(statement, cost)| {
            let phases: Phases = Box::new(move |arguments, machines, work| {
                let arguments: A = serde_json::from_value(arguments.clone()).map_err(|e| {
                    RunError::Input(format!("its arguments are not those of this version: {e}"))
                })?;
                cost(&arguments, machines, work)
            });
            CostModel { statement, phases }
        });
        // The arguments' own documentation would take the place of what the application is for.
        let command = A::augment_args(Command::new(name)).about(about).long_about(None).hide(is_hidden);
        AppEntry { name, command, start: Box::new(start), kernel: number, aside, cost }
    }
}
