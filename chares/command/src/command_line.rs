//! The command line of a program: its applications, and what it does beside running them.

use crate::app::{App, AppEntry};
use crate::manual::Page;
use chares::{Chare, Program, RunError};
use clap::{ArgMatches, Args, Command};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// A program with its applications: list what it has, then call [`main`](Self::main).
pub struct CommandLine {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) program: Program,
    pub(crate) apps: Vec<AppEntry>,
    pub(crate) about: &'static str,
    pub(crate) demo: Option<Preset>,
    pub(crate) network: Option<Preset>,
    pub(crate) commands: Vec<(Command, Execute)>,
    pub(crate) pages: Vec<Page>,
}

/// What a command of the program's own does.
pub(crate) type Execute = fn(&ArgMatches) -> Result<(), RunError>;

/// An application with some arguments.
#[derive(Clone, Copy)]
pub(crate) struct Preset {
    pub(crate) app: &'static str,
    pub(crate) arguments: &'static [&'static str],
}

/// Gives a program a command line.
pub trait WithApps {
    /// Lists an application; the others, and [`CommandLine::main`], follow.
    fn app<A>(self, app: App<A>) -> CommandLine
    where
        A: Args + Clone + Serialize + DeserializeOwned + Send + 'static;
}

impl WithApps for Program {
    fn app<A>(self, app: App<A>) -> CommandLine
    where
        A: Args + Clone + Serialize + DeserializeOwned + Send + 'static,
    {
        CommandLine::new(self).app(app)
    }
}

impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.program.fmt(f)
    }
}

impl CommandLine {
    /// The command line of a program, without applications as yet.
    #[must_use]
    pub fn new(program: Program) -> Self {
        let (name, version) = (program.name(), program.version());
        let (apps, commands, pages) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, version, program, apps, about: "", demo: None, network: None, commands, pages }
    }

    /// Whether it is one application of its own name, whose arguments come right after `run`.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self.apps.as_slice(), [only] if only.name == self.name)
    }

    /// One line that says what the program is for.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Adds the command `demo`, for a first look: the application `app` with other defaults for its options and
    /// those of `run`, written as on a command line. An option that there is not is left out.
    #[must_use]
    pub fn demo(mut self, app: &'static str, arguments: &'static [&'static str]) -> Self {
        self.demo = Some(Preset { app, arguments });
        self
    }

    /// Names the application that measures the network, for `plan` and `compare` to predict with, and how it is done in
    /// a few seconds, written as on a command line. The report of such a run has under `facts` a list `links`, with
    /// `from` and `to` (nodes), `kind` (`one-pe`, `two-pes` or `two-nodes`), `latency_s`, and `bytes_per_s` and
    /// `stream_bytes_per_s` (of single messages and of long streams; `null` where length costs no time).
    #[must_use]
    pub fn network(mut self, app: &'static str, arguments: &'static [&'static str]) -> Self {
        self.network = Some(Preset { app, arguments });
        self
    }

    /// Adds a command beside `run`, for what is not a run itself: `execute` gets what was parsed, and an error ends
    /// the process with its sentence and exit code. Signals end the process at once.
    #[must_use]
    pub fn command(mut self, command: Command, execute: fn(&ArgMatches) -> Result<(), RunError>) -> Self {
        self.commands.push((command, execute));
        self
    }

    /// Adds a page to the manual, which `help NAME` prints as it stands; its first line is its title. The page of an
    /// application bears its name.
    #[must_use]
    pub fn page(mut self, name: &'static str, text: &'static str) -> Self {
        self.pages.push(Page::new(name, text));
        self
    }

    /// Lists a chare type, as [`Program::chare`] does.
    ///
    /// # Panics
    /// If another type of the same name is listed already.
    #[must_use]
    pub fn chare<C: Chare>(mut self) -> Self {
        self.program = self.program.chare::<C>();
        self
    }

    /// Says how an older state becomes one of today's, as [`Program::migrate`] does.
    ///
    /// # Panics
    /// If `C` is not listed yet.
    #[must_use]
    pub fn migrate<Old, C>(mut self, from: u16, make: fn(Old) -> Result<C, String>) -> Self
    where
        Old: DeserializeOwned + 'static,
        C: Chare,
    {
        self.program = self.program.migrate::<Old, C>(from, make);
        self
    }

    /// The program without its command line, to be run inside this process.
    #[must_use]
    pub fn into_program(self) -> Program {
        self.program
    }

    /// Lists an application.
    #[must_use]
    pub fn app<A>(mut self, app: App<A>) -> Self
    where
        A: Args + Clone + Serialize + DeserializeOwned + Send + 'static,
    {
        self.apps.push(app.entry(&mut self.program));
        self
    }
}
