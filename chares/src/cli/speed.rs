//! `nodes speed`: measures the nodes with the kernel of one application, or of each.

use super::options::{NodesOptions, SpeedSource};
use super::{Ended, copies, say, speeds};
use crate::driver::Driver;
use crate::program::{Program, RunError, Started};
use crate::timeline::Timeline;
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use runtime::config::ClusterConfig;
use runtime::job::{Job, JobPlan};
use runtime::monitor::wire::RunInfo;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// The command: with an application's name, its arguments too.
pub(crate) fn command(program: &Program) -> Command {
    let about = "Measure the nodes with the kernel of each application, or of one with its arguments";
    let all = NodesOptions::augment_args(Command::new("speed").about(about));
    let apps = program.apps.iter().filter(|app| app.kernel.is_some());
    apps.fold(all.args_conflicts_with_subcommands(true), |all, app| {
        all.subcommand(NodesOptions::augment_args(app.command.clone()))
    })
}

/// An application that is measured.
struct Subject {
    name: &'static str,
    started: Started,
}

/// Measures and prints a table; the exit code.
pub(crate) fn speed(program: Program, matches: &ArgMatches, started_at: Instant) -> Result<u8, Ended> {
    let (only, matches) = match matches.subcommand() {
        Some((name, of_app)) => (Some(name), of_app),
        None => (None, matches),
    };
    let options = NodesOptions::from_arg_matches(matches).map_err(|e| Ended::new(64, e))?;
    let config = options.load()?;
    let mut subjects = Vec::new();
    for app in program.apps.iter().filter(|app| app.kernel.is_some() && only.is_none_or(|n| n == app.name)) {
        let started = match only {
            Some(_) => (app.start)(matches),
            None => {
                let defaults = app.command.clone().try_get_matches_from([app.name]);
                let needs = |_| RunError::Input(format!("it needs arguments: `nodes speed {} …`", app.name));
                defaults.map_err(needs).and_then(|defaults| (app.start)(&defaults))
            }
        };
        let started = started.map_err(|e| Ended::new(e.exit_code(), format!("{}: {e}", app.name)))?;
        subjects.push(Subject { name: app.name, started });
    }
    if subjects.is_empty() {
        return Err(Ended::new(64, format!("no application of {} has a kernel to measure", program.name)));
    }
    let mut plan = JobPlan {
        app: only.unwrap_or(program.name).into(),
        program: Arc::new(program.table),
        arguments: Vec::new(),
        kernel_arguments: Vec::new(),
        launch: options.launch(&config)?,
        config: config.clone(),
        always_pup: false,
        timeout: None,
    };
    let job = copies::shown(true, |copies| {
        plan.launch.copies = copies;
        Job::start(plan)
    });
    let mut job = job.map_err(|e| Ended::new(e.exit_code(), e))?;
    let events = job.take_events().ok_or_else(|| Ended::new(70, "the run has no driver"))?;
    let info = job.hub().info();
    let mut main = Driver::new(job.node(), events, Timeline::new(started_at));
    let found = measure(&mut main, &subjects, &info, &config);
    let failure = job.finish();
    let found = found.map_err(|e| match failure {
        Some(failure) => Ended::new(failure.exit_code, failure),
        None => Ended::new(e.exit_code(), e),
    })?;
    say(&table(&info, &subjects, &found))?;
    Ok(0)
}

/// One after the other, on the same nodes.
fn measure(
    main: &mut Driver,
    subjects: &[Subject],
    info: &RunInfo,
    config: &ClusterConfig,
) -> Result<Vec<speeds::Found>, RunError> {
    let hash = runtime::launch::hello_line();
    let found = subjects.iter().map(|Subject { started, .. }| {
        let subject = speeds::Subject {
            info,
            config,
            kernel: started.kernel,
            arguments: &started.packed,
            kernel_key: &started.kernel_key,
            work: started.work,
            program_hash: &hash,
        };
        speeds::find(main, SpeedSource::Measured, &subject)
    });
    found.collect()
}

fn table(info: &RunInfo, subjects: &[Subject], found: &[speeds::Found]) -> String {
    let mut text = format!("{:<12} {:>4}", "node", "PEs");
    for Subject { name, .. } in subjects {
        let _ = write!(text, " {:>14} {:>14} {:>8}", format!("{name}/PE"), format!("{name}/node"), "speed");
    }
    text.push('\n');
    for node in &info.nodes {
        let range = node.first_pe as usize..(node.first_pe + node.pe_count) as usize;
        let sum = |of: &[f64]| of.get(range.clone()).map_or(0.0, |part| part.iter().sum::<f64>());
        let _ = write!(text, "{:<12} {:>4}", node.name, node.pe_count);
        for found in found {
            let (rate, speed) = (sum(&found.rates), sum(&found.relative));
            let each = rate / f64::from(node.pe_count.max(1));
            let _ = write!(text, " {each:>14.4e} {rate:>14.4e} {speed:>8.3}");
        }
        text.push('\n');
    }
    text.push_str("rates are units of the application's work per second; speed 1.0 is the fastest PE\n");
    text
}
