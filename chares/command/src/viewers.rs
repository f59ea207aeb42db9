//! Who watches a run in its launcher: the window or the console, files of events, and sockets for whoever comes later.

use super::live::metrics;
use super::options::RunOptions;
use super::record::{Form, Recording};
use super::{console, warn};
use runtime::failure::{Failure, Kind};
use runtime::job::{Interrupter, Job};
use runtime::monitor::hub::Hub;
use runtime::monitor::requests::RequestSocket;
use runtime::monitor::socket::MonitorSocket;
use runtime::monitor::wire::{MonitorEvent, Remark};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tui::{AtEnd, Left, WindowOptions};

/// How long a window that does not stay may take to leave when its run is over.
const LAST_PICTURE: Duration = Duration::from_secs(2);

/// All who watch a run.
pub(crate) struct Viewers {
    hub: Arc<Hub>,
    screen: Option<JoinHandle<Result<(), Failure>>>,
    recordings: Vec<Result<Recording, Failure>>,
    sockets: (Option<RequestSocket>, Option<MonitorSocket>),
    /// How long the window may stay.
    limit: Option<Duration>,
}

impl Viewers {
    /// Whoever is asked for begins to watch. What cannot be had is said, and the run goes on.
    pub(crate) fn of(job: &Job, options: &RunOptions, metrics: Option<TcpListener>) -> Self {
        let hub = Arc::clone(job.hub());
        // The screen listens before anybody can find the run and do something of which it warns: no warning is lost.
        let events = if options.shows_window() { hub.subscribe_to_maps() } else { hub.subscribe() };
        let socket =
            MonitorSocket::serve(&hub).map_err(|e| tracing::warn!("`watch` will not find this run: {e}"));
        let recordings = kept(options).map(|(path, form)| Recording::start(&hub, path, form)).collect();
        metrics.into_iter().for_each(|listener| metrics::serve(&hub, listener));
        let asked = Arc::clone(job.node());
        let requests = RequestSocket::serve(&hub.info().run_id, move |request| asked.ask_driver(request))
            .map_err(|e| tracing::warn!("nothing can be asked of this run: {e}"));
        let (viewed, interrupter, shown) = (Arc::clone(&hub), job.interrupter(), options.clone());
        let screen = std::thread::Builder::new().name("screen".into());
        let screen = screen.spawn(move || show(events, &viewed, &shown, &interrupter));
        let screen = screen.map_err(|e| warn(&format!("the system has no thread to show the run: {e}"))).ok();
        let limit = options.shows_window().then_some(LAST_PICTURE);
        Self { hub, screen, recordings, sockets: (requests.ok(), socket.ok()), limit }
    }

    /// Tells all that the run is over, how, and what it came to; nobody can come any more, and files are complete.
    ///
    /// # Errors
    /// If one of the files could not be written.
    pub(crate) fn end(
        &mut self,
        error: Option<&Failure>,
        options: &RunOptions,
        remarks: impl Iterator<Item = Remark>,
        result: &str,
    ) -> Result<(), Failure> {
        let (code, summary) = match error {
            Some(error) => (i32::from(error.exit_code()), error.sentence.clone()),
            None => (0, "finished".to_string()),
        };
        if code == 0 && at_end(options) != AtEnd::Leaves {
            self.limit = None;
        }
        remarks.for_each(|remark| self.hub.publish(MonitorEvent::Remark(remark)));
        if !result.is_empty() {
            self.hub.publish(MonitorEvent::Result(result.to_owned()));
        }
        self.hub.publish(MonitorEvent::Ended { code, summary });
        let recorded = self.recordings.drain(..).map(|recording| recording.and_then(Recording::finish));
        let recorded = recorded.fold(Ok(()), Result::and);
        self.sockets = (None, None);
        recorded
    }

    /// Waits until all is shown, and the window was left if it stays. One that does not may be held up by its terminal for
    /// ever; it gets `LAST_PICTURE`.
    ///
    /// # Errors
    /// If standard output could not be written.
    pub(crate) fn leave(self) -> Result<(), Failure> {
        let Some(screen) = self.screen else { return Ok(()) };
        let limit = self.limit.map(|limit| Instant::now() + limit);
        while limit.is_some() && !screen.is_finished() {
            if limit.is_some_and(|limit| Instant::now() > limit) {
                tui::restore_terminal();
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        screen.join().unwrap_or_else(|_| Err(Failure::new(Kind::Failed, "the window panicked")))
    }
}

/// Where events are kept, and in which form.
pub(crate) fn kept(options: &RunOptions) -> impl Iterator<Item = (&Path, Form)> {
    let recording = options.record.iter().map(|path| (path.as_path(), Form::Recording));
    let events = options.events.iter().map(|path| (path.as_path(), Form::Lines));
    recording.chain(events).chain(options.load.iter().map(|path| (path.as_path(), Form::Table)))
}

/// A window that somebody asked for stays; one that came by itself holds nobody up.
fn at_end(options: &RunOptions) -> AtEnd {
    if options.watch { AtEnd::StaysIfWell } else { AtEnd::Leaves }
}

/// Shows a run in the window or on the console, until it ends.
fn show(
    events: Receiver<MonitorEvent>,
    hub: &Hub,
    options: &RunOptions,
    interrupter: &Interrupter,
) -> Result<(), Failure> {
    if !options.shows_window() {
        return console::show(&events, hub, options);
    }
    let mut window = WindowOptions::from_env();
    window.at_end = at_end(options);
    window.colors = options.color.of(window.colors);
    match tui::run(&events, &window) {
        Ok(Left::Ended) => return Ok(()),
        Ok(Left::Detached) => {}
        Ok(Left::Interrupted) => interrupter.interrupt(),
        Ok(Left::HungUp) => {
            interrupter.hang_up();
            return Ok(());
        }
        Err(error) => warn(&format!("{error}; the run goes on without it")),
    }
    // The run goes on without the window.
    console::show(&hub.subscribe(), hub, options)
}
