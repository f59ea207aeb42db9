//! `--record`, `--events` and `--load`: a thread that keeps what the viewers of a run are told. It is one of them: when the disk is
//! slow it misses events and says how many, and the run goes on.
use super::live::events::EventLines;
use super::live::load::LoadTable;
use super::output::{fresh_file, unwritable};
use runtime::failure::Failure;
use runtime::monitor::hub::Hub;
use runtime::monitor::recording::Recorder;
use runtime::monitor::wire::MonitorEvent;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a killed launcher may have heard and not recorded.
const FLUSH: Duration = Duration::from_millis(500);

/// In which form events are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For `replay`.
    Recording,
    /// One line of JSON for each.
    Lines,
    /// A table of what PEs did.
    Table,
}

impl Form {
    /// What the file is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Lines => "file of events",
            Self::Table => "table of the load",
        }
    }

    /// The events that it is made of.
    fn of(self, hub: &Hub) -> Receiver<MonitorEvent> {
        match self {
            Self::Recording | Self::Lines => hub.subscribe_to_maps(),
            Self::Table => hub.subscribe(),
        }
    }

    /// The option that names the file.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Recording => "--record",
            Self::Lines => "--events",
            Self::Table => "--load",
        }
    }
}

/// Where events go.
enum Sink {
    Recorder(Recorder<BufWriter<File>>),
    Lines(EventLines<BufWriter<File>>),
    Table(LoadTable<BufWriter<File>>),
}

impl Sink {
    fn begin(form: Form, file: File) -> io::Result<Self> {
        let out = BufWriter::new(file);
        Ok(match form {
            Form::Recording => Self::Recorder(Recorder::begin(out)?),
            Form::Lines => Self::Lines(EventLines::new(out)),
            Form::Table => Self::Table(LoadTable::begin(out)?),
        })
    }

    fn take(&mut self, at: Duration, event: &MonitorEvent) -> io::Result<()> {
        match self {
            Self::Recorder(recorder) => recorder.take(at, event),
            Self::Lines(lines) => lines.take(at, event),
            Self::Table(table) => table.take(at, event),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Recorder(recorder) => recorder.flush(),
            Self::Lines(lines) => lines.flush(),
            Self::Table(table) => table.flush(),
        }
    }
}

/// A recording under way, or another file of events.
pub(crate) struct Recording {
    path: PathBuf,
    form: Form,
    thread: JoinHandle<io::Result<()>>,
}

impl Recording {
    /// Begins to record the run of `hub`; an old file of that name is replaced.
    pub(crate) fn start(hub: &Arc<Hub>, path: &Path, form: Form) -> Result<Self, Failure> {
        let file = fresh_file(path).map_err(|e| unwritable(form.name(), path, &e))?;
        let (events, clock) = (form.of(hub), Arc::clone(hub));
        let thread = std::thread::Builder::new().name("recorder".into());
        let thread = thread
            .spawn(move || record(&events, &clock, Sink::begin(form, file)?))
            .map_err(|e| unwritable(form.name(), path, &e))?;
        Ok(Self { path: path.to_owned(), form, thread })
    }

    /// Waits until the end of the run is written, which must have been published.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let written = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the recorder panicked")));
        // Where it was removed meanwhile nobody will find it.
        let there = written.and_then(|()| fs::metadata(&self.path).map(drop));
        there.map_err(|e| unwritable(self.form.name(), &self.path, &e))
    }
}

fn record(events: &Receiver<MonitorEvent>, hub: &Hub, mut sink: Sink) -> io::Result<()> {
    let mut flushed = Duration::ZERO;
    loop {
        match events.recv_timeout(FLUSH) {
            Ok(event) => {
                sink.take(hub.now(), &event)?;
                if matches!(event, MonitorEvent::Ended { .. }) {
                    return sink.flush();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Too slow to hear of the end, which a new viewer is told.
            Err(RecvTimeoutError::Disconnected) => {
                hub.subscribe_to_maps().iter().try_for_each(|event| sink.take(hub.now(), &event))?;
                return sink.flush();
            }
        }
        if hub.now() >= flushed + FLUSH {
            sink.flush()?;
            flushed = hub.now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::failure::Kind;
    use runtime::monitor::recording::Recording as Read;
    use runtime::monitor::wire::{Phase, RunInfo};

    fn ended() -> MonitorEvent {
        MonitorEvent::Ended { code: 3, summary: "badly".into() }
    }

    #[test]
    fn a_recording_has_what_a_viewer_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.mcr");
        let hub = Arc::new(Hub::new(RunInfo { app: "gauss".into(), ..RunInfo::default() }));
        let recording = Recording::start(&hub, &path, Form::Recording).unwrap();
        hub.count("column".into(), 9, 0);
        hub.publish(ended());
        recording.finish().unwrap();
        let read = Read::read(&mut File::open(&path).unwrap()).unwrap();
        let events: Vec<_> = read.events.into_iter().map(|recorded| recorded.event).collect();
        let phase = MonitorEvent::Phase(Phase { name: "column".into(), total: 9, ..Phase::default() });
        assert!(matches!(&events[0], MonitorEvent::Run(info) if info.app == "gauss"));
        assert_eq!(events[1..], [phase, ended()]);
    }

    #[test]
    fn the_old_recording_is_replaced_and_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["run.mcr", "other"].map(|name| folder.path().join(name));
        fs::write(&other, "precious").unwrap();
        fs::hard_link(&other, &path).unwrap();
        let hub = Arc::new(Hub::new(RunInfo::default()));
        let recording = Recording::start(&hub, &path, Form::Recording).unwrap();
        hub.publish(ended());
        recording.finish().unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        assert!(Read::read(&mut File::open(&path).unwrap()).is_ok());
    }

    #[test]
    fn events_are_kept_to_the_end_as_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let hub = Arc::new(Hub::new(RunInfo::default()));
        let lines = Recording::start(&hub, &path, Form::Lines).unwrap();
        hub.publish(ended());
        lines.finish().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.lines().last().is_some_and(|line| line.contains("\"event\":\"ended\"")), "{text}");
    }

    #[test]
    fn a_recorder_too_slow_for_the_end_still_records_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.mcr");
        let hub = Hub::new(RunInfo::default());
        let events = hub.subscribe();
        for _ in 0..10_000 {
            hub.publish(MonitorEvent::Phase(Phase::default()));
        }
        hub.publish(ended());
        let sink = Sink::begin(Form::Recording, File::create(&path).unwrap()).unwrap();
        record(&events, &hub, sink).unwrap();
        let read = Read::read(&mut File::open(&path).unwrap()).unwrap();
        assert_eq!(read.broken, None);
        assert_eq!(read.events.last().map(|last| &last.event), Some(&ended()));
    }

    #[test]
    fn a_recording_that_cannot_be_written_is_an_error_of_the_run() {
        let hub = Arc::new(Hub::new(RunInfo::default()));
        let error =
            Recording::start(&hub, Path::new("/no/such/folder/run.mcr"), Form::Recording).err().unwrap();
        assert!(error.kind == Kind::Output && error.sentence.contains("/no/such/folder/run.mcr"));
        let folder = tempfile::tempdir().unwrap();
        let gone = Recording::start(&hub, &folder.path().join("run.mcr"), Form::Recording).unwrap();
        folder.close().unwrap();
        hub.publish(ended());
        assert_eq!(gone.finish().unwrap_err().kind, Kind::Output);
        let full = Recording::start(&hub, Path::new("/dev/full"), Form::Recording).unwrap();
        hub.publish(ended());
        assert_eq!(full.finish().unwrap_err().kind, Kind::Output);
    }
}
