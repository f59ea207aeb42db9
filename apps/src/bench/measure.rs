//! The application that `metachare bench` starts: measures what it is told and puts the figures of all stretches
//! into its report.

use super::catalogue::{self, CROWD, FAR_CROWD, Operation, Pair, Task};
use super::conductor::{Conductor, Find, How, Kind, Make, Rounds};
use super::player::{Meet, Play, Player, Throw};
use super::{memory, mill};
use chares::On;
use chares::prelude::*;
use clap::{Args, ValueEnum};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A stretch is long enough when it takes so many nanoseconds.
const STRETCH_NS: f64 = 50e6;
/// So long a fresh connection is used before anything is measured: it has to find the network's datagram size, and
/// starts slowly.
const WARM_UP: Duration = Duration::from_millis(500);

/// What a run is to measure.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(super) struct Arguments {
    /// What kind of operations
    #[arg(long, value_enum)]
    pub(super) part: OperationKind,
    /// Keys of the operations
    #[arg(long, value_delimiter = ',')]
    pub(super) operations: Vec<String>,
    /// Stretches of each operation
    #[arg(long, default_value_t = 9)]
    pub(super) repeats: usize,
    /// Only go through every operation once
    #[arg(long)]
    pub(super) brief: bool,
    /// Steps of the work; if not given, as many as make a stretch
    #[arg(long)]
    pub(super) steps: Option<u64>,
}

/// Kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum OperationKind {
    /// Those that chares do
    Paths,
    /// Memory
    Memory,
    /// What watching costs
    Monitor,
    /// The same work without anybody who watches
    Work,
    /// None: the run itself is what is measured
    Nothing,
}

impl OperationKind {
    /// As on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Paths => "paths",
            Self::Memory => "memory",
            Self::Monitor => "monitor",
            Self::Work => "work",
            Self::Nothing => "nothing",
        }
    }
}

/// Figures of every stretch, by the operation's key.
pub(super) type Figures = BTreeMap<String, Vec<f64>>;

/// The fact under which figures stand in a report.
pub(super) const FACT: &str = "figures";

/// Has this run end when whoever measures with it is gone.
pub(super) fn check(_: &Arguments) -> Result<(), RunError> {
    prctl::set_pdeathsig(Signal::SIGTERM).map_err(|e| RunError::Failed(format!("prctl: {e}")))
}

pub(super) fn drive(main: &mut Driver, arguments: Arguments) -> Result<(), RunError> {
    let figures = match arguments.part {
        OperationKind::Paths => paths(main, &arguments)?,
        OperationKind::Memory => memory::measure(main, &arguments)?,
        OperationKind::Monitor => mill::measure(main, &arguments)?,
        OperationKind::Work => mill::work(main, &arguments)?,
        OperationKind::Nothing => Figures::new(),
    };
    let figures = serde_json::to_value(figures).map_err(|e| RunError::Failed(e.to_string()))?;
    main.outcome().fact(FACT, figures);
    Ok(())
}

fn paths(main: &mut Driver, arguments: &Arguments) -> Result<Figures, RunError> {
    let stage = Stage::new(main);
    main.init_over()?;
    if !arguments.brief && main.node_count() > 1 {
        let (begun, trips) = (Instant::now(), Task::Throws(Pair::Elements, Throw::Back(1 << 20), 2));
        while begun.elapsed() < WARM_UP {
            stage.stretch(main, trips, 10)?;
        }
    }
    let chosen = catalogue::all().into_iter().filter(|o| arguments.operations.contains(&o.key));
    let figures = chosen.map(|operation| {
        let figures = stage.figures(main, &operation, arguments)?;
        Ok((operation.key, figures))
    });
    let figures = figures.collect::<Result<Figures, RunError>>()?;
    main.timed_over()?;
    Ok(figures)
}

/// All chares that take part.
struct Stage {
    chares: Players,
    elements: Players,
    neighbours: Vec<Players>,
    conductor: Element<Conductor>,
    /// On one node all over its PEs, on several on the last PE.
    crowd: Array<Player>,
    /// One on each PE.
    on_each: Array<Player>,
}

#[derive(Clone, Copy)]
struct Players(Element<Player>, Element<Player>);

impl Stage {
    fn new(main: &mut Driver) -> Self {
        let pes = main.pe_count();
        let chares = Players(main.chare((), On::Pe(0)), main.chare((), On::Pe(pes - 1)));
        let array: Array<Player> = main.array_placed(2, (), Placement::on_pes([0, pes - 1]));
        let elements = Players(array.at(0), array.at(1));
        let array: Array<Player> = main.array(2 * pes, ());
        let neighbours: Vec<_> = (0..pes).map(|pe| Players(array.at(2 * pe), array.at(2 * pe + 1))).collect();
        for &Players(one, other) in neighbours.iter().chain([&chares, &elements]) {
            one.send(main, Meet(other));
            other.send(main, Meet(one));
        }
        let crowd = if main.node_count() == 1 {
            main.array(CROWD, ())
        } else {
            let on_last = std::iter::repeat_n(pes - 1, FAR_CROWD as usize);
            main.array_placed(FAR_CROWD, (), Placement::on_pes(on_last))
        };
        let conductor = main.chare((), On::Pe(0));
        Self { chares, elements, neighbours, conductor, crowd, on_each: main.array(pes, ()) }
    }

    /// A figure for each stretch, after those that find how long it has to be and warm everything.
    fn figures(
        &self,
        main: &mut Driver,
        operation: &Operation,
        arguments: &Arguments,
    ) -> Result<Vec<f64>, RunError> {
        let (mut count, mut repeats) = (2, 1);
        if !arguments.brief {
            repeats = arguments.repeats;
            while self.stretch(main, operation.task, count)? < STRETCH_NS && count < operation.cap {
                count *= 2;
            }
        }
        let amount = (count * operation.each) as f64;
        let figure = |ns: f64| operation.unit.of_stretch(ns, amount);
        (0..repeats).map(|_| Ok(figure(self.stretch(main, operation.task, count)?))).collect()
    }

    /// Nanoseconds that a task takes when it is done so many times, an even number.
    fn stretch(&self, main: &mut Driver, task: Task, count: u64) -> Result<f64, RunError> {
        let (done, ns) = main.pending();
        let rounds = |array: Array<Player>, how| Rounds(array, how, count, done);
        match task {
            Task::Throws(pair, throw, each) => {
                let Players(server, _) = match pair {
                    Pair::Chares => self.chares,
                    Pair::Elements => self.elements,
                };
                server.send(main, Play(throw, each * count, done));
            }
            Task::Neighbours => {
                for Players(server, _) in &self.neighbours {
                    server.send(main, Play(Throw::Back(64), count, done));
                }
                let all: Result<Vec<f64>, _> = self.neighbours.iter().map(|_| ns.wait(main)).collect();
                return Ok(all?.iter().sum::<f64>() / self.neighbours.len() as f64);
            }
            Task::Broadcast => self.conductor.send(main, rounds(self.crowd, How::Broadcast)),
            Task::FanOut => self.conductor.send(main, rounds(self.crowd, How::Sends)),
            Task::Scatter => self.conductor.send(main, rounds(self.crowd, How::Scatter)),
            Task::BroadcastToPes => self.conductor.send(main, rounds(self.on_each, How::Broadcast)),
            Task::LookUps => self.conductor.send(main, Find(self.crowd, count, done)),
            Task::MakeElements => self.conductor.send(main, Make(Kind::Elements, count, done)),
            Task::MakeChares => self.conductor.send(main, Make(Kind::Chares, count, done)),
            Task::Quiescence => {
                let start = Instant::now();
                (0..count).try_for_each(|_| main.quiescence())?;
                return Ok(start.elapsed().as_nanos() as f64);
            }
            Task::Arrangement => return Err(RunError::Failed("no chare can measure that".into())),
        }
        ns.wait(main)
    }
}
