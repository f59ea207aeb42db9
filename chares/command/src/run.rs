//! `run`: start the nodes, drive the application, show it, report.

use super::compare::settled;
use super::keeping::{self, Schedule, StoreKeeper};
use super::log::NodeLogs;
use super::options::{RunOptions, SpeedSource};
use super::prepare::{Asked, Prepared, Ready, Saves, prepare, store_in};
use super::report::{Report, Sources};
use super::restart::Origin;
use super::speeds::{self, PeSpeeds, SpeedQuery};
use super::unstarted;
use super::viewers::Viewers;
use super::{changes, driving};
use super::{copies, log, note, output, say, warn};
use crate::app::Started;
use crate::command_line::CommandLine;
use chares::checkpoint::{Placed, Placing, Restored};
use chares::{Driver, RunError, Timeline};
use loadbalance::machines::{Machine, Machines, Memory};
use runtime::checkpoint::{SavedSchema, schemas};
use runtime::config::ClusterConfig;
use runtime::failure::{Failure, Kind};
use runtime::job::{Job, JobPlan};
use runtime::monitor::hub::Hub;
use runtime::monitor::wire::{ClockReading, MonitorEvent, NodeInfo, NodeSnapshot, Remark, RunInfo};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the clocks of nodes are read at both ends of a recorded run: the best reading counts.
const CLOCK_READINGS: u32 = 5;
/// At the end a checkpoint may be kept for so long before a word is said about it.
const KEEPING_UNSEEN: Duration = Duration::from_secs(1);

/// What there is to say where chares are placed by a speed that nobody has measured.
const NO_SPEEDS: &str = "this program has no kernel to measure speeds with: shares are equal; give it one with \
                         `App::kernel`, or say `--speed equal`, or `--speed file` with the speeds in the nodes file";

/// Runs an application from the command line; the exit code.
pub(crate) fn run(program: CommandLine, asked: Asked, command_started: Instant) -> Result<u8, Failure> {
    let prepared = prepare(&program, &asked, None, command_started)?;
    go(program, asked, prepared)
}

/// Runs what has been prepared; the exit code.
pub(crate) fn go(program: CommandLine, asked: Asked, prepared: Prepared) -> Result<u8, Failure> {
    let Asked { name, options, line, from, .. } = asked;
    let Prepared { ready, unstarted, balance, metrics, name: run_name, store } = prepared;
    let Ready { started, config, launch, logs } = ready;
    let store = match (store, options.checkpoint.as_deref()) {
        (None, Some(dir)) => Some(store_in(dir, options.checkpoint_keep as usize)?),
        (store, _) => store,
    };
    let version = program.version;
    let schemas = store.iter().flat_map(|_| schemas(program.program.table())).collect();
    let origin = from.as_ref().map(Origin::place);
    // What a trial has found out would come out otherwise when the run goes on.
    let saved_line = settled(line.clone(), &started.settled);
    let saving = Saving { from, store, version, line: saved_line, schemas };
    let mut plan = JobPlan {
        name: run_name,
        program: Arc::new(program.program.into_table()),
        app: name,
        arguments: line,
        kernel_arguments: started.kernel.arguments.clone(),
        launch,
        config: config.clone(),
        always_pup: options.always_pup,
        wander: options.wander,
        detail: options.detail(),
        begun: saving.from.as_ref().map_or_else(Vec::new, |from| from.began.clone()),
        balance,
        keeps_loads: options.checkpoint.is_some() && !options.no_measuring,
        timeout: options.timeout,
    };
    let job = copies::shown(!options.quiet && !log::is_json(), |copies| {
        plan.launch.copies = copies;
        Job::start(plan)
    });
    let arguments = started.arguments.clone();
    let done = match job {
        Ok(job) => {
            drive_and_show(job, (started, saving), config, (&options, metrics), unstarted.command_started)
        }
        Err(error) => Finished {
            info: unstarted.info,
            timeline: Timeline::new(unstarted.command_started),
            error: Some(Failure::from(error)),
            viewers: None,
        },
    };
    told(done, (version, arguments), (&options, origin), logs)
}

/// Says how a run of this version ended: in a table, a report, and the exit code.
fn told(
    mut done: Finished,
    (version, arguments): (&str, serde_json::Value),
    (options, origin): (&RunOptions, Option<(PathBuf, u32)>),
    logs: Option<NodeLogs>,
) -> Result<u8, Failure> {
    let sources = |error: &Option<Failure>| Sources {
        info: &done.info,
        version,
        arguments: arguments.clone(),
        exit_code: error.as_ref().map_or(0, Failure::exit_code),
        error: error.as_ref().map(|e| e.sentence.clone()),
    };
    let logged = logs.map_or(Ok(()), NodeLogs::finish);
    let error = first_of(done.error.take(), logged);
    // A run that failed on its way has measured nothing that a table could show.
    let has_table = !options.quiet && (error.is_none() || done.timeline.timed().is_some());
    let report = Report::new(sources(&error), &done.timeline);
    let table = if has_table { report.table() } else { String::new() };
    let result = format!("{}{table}", done.timeline.printed);
    let has_started = done.viewers.is_some();
    let mut viewers = done.viewers.take();
    let end = |viewers: &mut Viewers| viewers.end(error.as_ref(), options, report.told(), &result);
    let ended = viewers.as_mut().map_or(Ok(()), end);
    let error = first_of(error, ended);
    let reported = |error: Option<Failure>| {
        let Some(path) = &options.report else { return error };
        let written = unstarted::write(path, &Report::new(sources(&error), &done.timeline));
        first_of(error, written)
    };
    // A window may stay for long, and the report is there meanwhile; a stream gets it last, where programs look for it.
    let is_last = options.report.as_deref().is_some_and(output::is_stream);
    let mut error = if is_last { error } else { reported(error) };
    error = error.or(viewers.and_then(|viewers| viewers.leave().err()));
    if !result.is_empty() {
        error = error.or(say(&result).err());
    }
    if is_last {
        error = reported(error);
    }
    // What was not understood would be refused again.
    if let (Some(error), Some(dir)) = (&error, &options.checkpoint)
        && error.kind != Kind::Input
    {
        let written = done.info.saved.as_ref().map(|saved| (dir.clone(), saved.number));
        keeping::say_what_is_left(written.or(origin), &done.info.program, has_started);
    }
    match error {
        None => Ok(0),
        // Whoever has closed the output wants to hear nothing.
        Some(error) if error.kind == Kind::Unheard => Ok(error.exit_code()),
        Some(error) if error.kind == Kind::Stopped => {
            note(&error.sentence);
            Ok(error.exit_code())
        }
        Some(error) => Err(error),
    }
}

/// What a run goes on from, and where it is saved.
struct Saving {
    from: Option<Origin>,
    store: Option<Saves>,
    version: &'static str,
    line: Vec<String>,
    /// What chares are made of, by the names of their types.
    schemas: Vec<(String, SavedSchema)>,
}

/// How a run ended, and who still watches it.
struct Finished {
    info: RunInfo,
    timeline: Timeline,
    error: Option<Failure>,
    viewers: Option<Viewers>,
}

fn drive_and_show(
    mut job: Job,
    (started, saving): (Started, Saving),
    config: ClusterConfig,
    (options, metrics): (&RunOptions, Option<TcpListener>),
    command_started: Instant,
) -> Finished {
    let hub = Arc::clone(job.hub());
    // Before anybody can know of the run, and send it a signal.
    if saving.store.is_none() {
        let hub = Arc::downgrade(&hub);
        runtime::job::refuse_checkpoint_orders(move || {
            let why =
                "SIGUSR1 saves nothing, as this run keeps no checkpoints: start it with `--checkpoint DIR`";
            hub.upgrade().iter().for_each(|hub| hub.warn(why.into()));
        });
    }
    let viewers = Viewers::of(&job, options, metrics);
    let (source, is_quiet, described) = (options.speed, options.quiet, Arc::clone(&hub));
    let readings = if options.record.is_some() { CLOCK_READINGS } else { 1 };
    let limit = options.timeout.zip(job.ends_at());
    let protocol = options.checkpoint_protocol.into();
    let schedule = Schedule { every: options.checkpoint_every, protocol, limit, is_quiet };
    let (driven, timeline) = driving::run(&mut job, Timeline::new(command_started), move |main| {
        changes::tell_who_leaves(main, &described, is_quiet);
        changes::let_nodes_join(main, &described, (source, &started.kernel, &config), is_quiet);
        let found = saving.from.as_ref().filter(|from| from.places_anew(&config));
        let of_now =
            found.map(|_| speeds_of_now(main, (source, &started), &config, &described)).transpose()?;
        let began = if saving.from.is_some() { Began::Before(of_now) } else { Began::Now };
        let placing = began.speeds().map(|of_now| (of_now.relative.clone(), of_now.rates.clone()));
        save(main, saving, &schedule, &described, placing)?;
        drive(main, (started, began), &config, (source, is_quiet), &described, readings)
    });
    let mut timeline = timeline.unwrap_or_else(|| Timeline::new(command_started));
    timeline.finished.get_or_insert_with(Instant::now);
    timeline.remarks.extend(hub.found());
    timeline.balancing = (!hub.info().balance.is_empty()).then(|| hub.balancing_cost());
    // The failure of the run explains the driver's error better than the driver can.
    let error = job.finish().or(driven.err());
    Finished { info: hub.info(), timeline, error, viewers: Some(viewers) }
}

/// What ends a run that may have failed before a file of it could not be written; that is told in any case.
fn first_of(error: Option<Failure>, written: Result<(), Failure>) -> Option<Failure> {
    match (error, written) {
        (Some(error), Err(unwritten)) => {
            warn(&unwritten.sentence);
            Some(error)
        }
        (error, written) => error.or(written.err()),
    }
}

/// When a run began.
enum Began {
    Now,
    /// It goes on: with the speeds of now, if its chares are placed by them.
    Before(Option<PeSpeeds>),
}

impl Began {
    /// Speeds of now, by which chares are placed where the run goes on.
    fn speeds(&self) -> Option<&PeSpeeds> {
        match self {
            Self::Now => None,
            Self::Before(speeds) => speeds.as_ref(),
        }
    }
}

/// The speeds of PEs by which chares are placed where a run goes on, found before anything of the run is done again.
fn speeds_of_now(
    main: &mut Driver,
    (source, started): (SpeedSource, &Started),
    config: &ClusterConfig,
    hub: &Hub,
) -> Result<PeSpeeds, RunError> {
    let (info, asked) = (hub.info(), Instant::now());
    let found = speeds::find(main, source, &SpeedQuery::new(&info, config, &started.kernel))?;
    main.outcome().speeds = asked.elapsed();
    Ok(found)
}

/// Has checkpoints taken, and goes on from one, as far as that is wanted.
fn save(
    main: &mut Driver,
    saving: Saving,
    schedule: &Schedule,
    hub: &Arc<Hub>,
    placing: Option<(Vec<f64>, Vec<f64>)>,
) -> Result<(), RunError> {
    let Saving { from, store, version, line, schemas } = saving;
    if let Some(store) = store {
        main.keep_checkpoints(Box::new(StoreKeeper::new(store, schedule, (hub, version, line), schemas)));
    }
    let Some(from) = from else { return Ok(()) };
    from.fits_on(&hub.info()).map_err(RunError::Ended)?;
    let Origin { mut go_on, name, mapping, away, .. } = from;
    let started = Instant::now();
    main.outcome().from_checkpoint = Some(name);
    let (hub, is_quiet) = (Arc::clone(hub), schedule.is_quiet);
    let tell = move |text: String| {
        tracing::info!("{text}");
        if !is_quiet {
            hub.note(text);
        }
    };
    let tell_placed = tell.clone();
    // Of chares that are made later there is nothing to place.
    let tell_placed = Box::new(move |placed: &Placed| {
        if placed.chares > 0 {
            tell_placed(placed.to_string());
        }
    });
    go_on.placing = placing.map(|(speeds, rates)| {
        let rates = (!rates.is_empty()).then_some(rates);
        Placing { mapping, speeds, rates, tell: tell_placed }
    });
    go_on.tell = Box::new(move |restored: &Restored| {
        tell(restored.to_string());
        if let Some(away) = &away {
            tell(away.told(started));
        }
    });
    main.go_on_from(go_on)
}

/// Measures speeds, unless those of now are known, then runs the application's driver.
fn drive(
    main: &mut Driver,
    (started, began): (Started, Began),
    config: &ClusterConfig,
    (speed, is_quiet): (SpeedSource, bool),
    hub: &Arc<Hub>,
    clock_readings: u32,
) -> Result<(), RunError> {
    let info = hub.info();
    let query = SpeedQuery::new(&info, config, &started.kernel);
    let asked = Instant::now();
    let found = main.once("the speeds of PEs", |main| speeds::find(main, speed, &query))?;
    if let Began::Now = began {
        main.outcome().speeds = asked.elapsed();
    }
    // A run that goes on gets the speeds of then again, by which it is divided; its nodes have those of now, if they are known.
    let shown = began.speeds().unwrap_or(&found);
    let took = main.outcome().speeds;
    let is_news = matches!(began, Began::Now | Began::Before(Some(_)));
    if let Some(origin) = shown.origin(took).filter(|_| is_news && !is_quiet) {
        hub.note(origin);
    }
    main.outcome().speed_source = Some(shown.source.name());
    main.outcome().earlier_speeds = shown.earlier;
    main.outcome().speeds_taken = shown.taken;
    let (mut speeds_now, rates_now) = (shown.relative.clone(), shown.rates.clone());
    let PeSpeeds { rates, relative, again, .. } = found;
    let cpu_rates = main.cpu_rates().unwrap_or_default();
    speeds_now.resize(info.nodes.iter().map(|node| node.pe_count as usize).sum(), 1.0);
    hub.describe(|info| {
        for node in &mut info.nodes {
            let range = node.pes();
            let of_cores = rates_now.get(range.clone()).zip(cpu_rates.get(range.clone()));
            node.pe_parts = of_cores.map_or_else(Vec::new, |(wall, cpu)| parts(wall, cpu, node.cpu_share));
            node.pe_speeds = speeds_now.get(range).map(<[f64]>::to_vec).unwrap_or_default();
        }
    });
    // Shares of the PEs with which the run began say nothing of the nodes that it has now.
    let is_placed_anew = began.speeds().is_some();
    tell_viewers(main, hub, is_placed_anew);
    // As one wait, so that a run goes on though it is recorded where it was not then, or the other way round.
    let start = main.once("counters", |main| {
        (1..clock_readings).try_for_each(|_| snapshots(main, hub).map(drop))?;
        snapshots(main, hub)
    })?;
    let is_measured = !rates.is_empty();
    // A run that goes on is divided as it was when it began.
    let nodes = main.once("the nodes", |_| Ok(info.nodes.clone()))?;
    main.set_machines(machines(&nodes, &start, if is_measured { &rates } else { &relative }, is_measured));
    main.outcome().start = start;
    main.outcome().driven = Some(Instant::now());
    if started.kernel.number.is_none() && speed.is_measured() {
        main.advise_if_by_speed(NO_SPEEDS);
    }
    let result = (started.drive)(main)
        .and_then(|()| main.has_caught_up())
        .and_then(|()| finish_keeping(main, hub, is_quiet));
    if is_placed_anew {
        main.outcome().shares(Vec::new());
    }
    // Rates of the machines on which the run began say nothing of others.
    if let (Ok(()), Some(again), false) = (&result, again, main.has_gone_on() || main.has_other_nodes()) {
        speeds::confirm(main, &query, again)?;
    }
    if !main.has_other_nodes() {
        speeds::correct(main, &query);
    }
    main.outcome().finished = Some(Instant::now());
    // A run that has failed has no last counters; why it failed is in the result, or the launcher knows.
    for _ in 0..clock_readings {
        main.outcome().end = snapshots(main, hub).unwrap_or_default();
    }
    result
}

/// Waits for a checkpoint that is still being kept, and says so if that is long.
fn finish_keeping(main: &mut Driver, hub: &Hub, is_quiet: bool) -> Result<(), RunError> {
    if !main.finish_keeping_within(KEEPING_UNSEEN)? && !is_quiet {
        hub.note("the work is done; a checkpoint that had begun is still being written".into());
    }
    main.finish_keeping()
}

/// The viewers learn what the driver says of shares, and see what it shows.
fn tell_viewers(main: &mut Driver, hub: &Arc<Hub>, is_placed_anew: bool) {
    let viewers = Arc::clone(hub);
    main.on_shares(move |shares, holdings| {
        tracing::info!("shares of the PEs in the data: {shares:.4?}");
        if is_placed_anew {
            return;
        }
        viewers.describe(|info| {
            for (place, node) in info.nodes.iter_mut().enumerate() {
                node.holds = holdings.get(place).cloned().unwrap_or_default();
                node.share = shares.get(node.pes()).map(|part| part.iter().sum());
            }
        });
    });
    let advised = Arc::clone(hub);
    main.on_advice(move |text| {
        advised.publish(MonitorEvent::Remark(Remark { is_advice: true, text: text.into() }));
    });
    let (asked, told) = (Arc::clone(hub), Arc::clone(hub));
    main.on_maps(move || asked.shows_maps(), move |map| told.publish(MonitorEvent::Map(map)));
}

/// The part of the time that PEs with a `cpu_share` were on their cores when they were not asleep for it, by their rates per
/// second of the wall's clock and of processor time.
fn parts(wall: &[f64], cpu: &[f64], cpu_share: f64) -> Vec<f64> {
    wall.iter().zip(cpu).map(|(wall, cpu)| (wall / cpu / cpu_share).min(1.0)).collect()
}

/// Counters of all nodes, now; the viewers are told them, and how the clocks of the nodes stand.
fn snapshots(main: &mut Driver, hub: &Hub) -> Result<Vec<NodeSnapshot>, RunError> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let (asked_ns, asked) = (nanos(hub.now()), Instant::now());
    let snapshots = main.snapshots()?;
    let gone: Vec<u16> =
        hub.info().nodes.iter().filter(|node| node.left.is_some()).map(|node| node.node).collect();
    for snapshot in snapshots.iter().filter(|snapshot| snapshot.node != 0 && !gone.contains(&snapshot.node)) {
        hub.publish(MonitorEvent::Snapshot(snapshot.clone()));
        // Each of its own: with one for all, a node that is far would make the clocks of those uncertain that are near.
        let took = main
            .answered(snapshot.node)
            .map_or_else(|| asked.elapsed(), |at| at.saturating_duration_since(asked));
        let uptimes = vec![(snapshot.node, snapshot.uptime_ns)];
        let answered_ns = asked_ns.saturating_add(nanos(took));
        hub.publish(MonitorEvent::Clocks(ClockReading { asked_ns, answered_ns, uptimes }));
    }
    Ok(snapshots)
}

/// What work is divided by: the nodes and the launcher as they are now, and the rates of all PEs.
fn machines(nodes: &[NodeInfo], now: &[NodeSnapshot], rates: &[f64], is_measured: bool) -> Machines {
    let machine = |node: &NodeInfo| {
        let now = now.iter().find(|snapshot| snapshot.node == node.node);
        Machine {
            name: node.name.clone(),
            host: node.host.clone(),
            rates: rates.get(node.pes()).map(<[f64]>::to_vec).unwrap_or_default(),
            memory: Memory {
                limit_bytes: node.memory_limit_bytes,
                taken_bytes: now.map_or(0, |now| now.memory_bytes),
                host_bytes: now.map(|now| now.host_memory_bytes).filter(|&bytes| bytes > 0),
            },
        }
    };
    let launcher = NodeInfo { name: "launcher".into(), host: "localhost".into(), ..NodeInfo::default() };
    let nodes = nodes.iter().map(machine).collect();
    Machines { nodes, launcher: machine(&launcher), is_measured, ..Machines::default() }
}
