//! The log: what a process notices while it works, for whoever looks for the reason of something.
//!
//! Warnings and errors go to standard error, and what `RUST_LOG` asks for. With `--log-dir` the launcher and each node have
//! a file of their own besides, with what is of information. A node on another host knows no folder of the launcher's: it
//! writes the lines for its file to its standard error, each behind [`LOG_MARK`], and the launcher puts them into the file.
//!
//! In the format `json` each line of standard error is one object, also where a node or the launcher has a sentence for
//! people, so that whatever collects logs need not know which lines are of the log.

use crate::named_file::NamedFile;
use crate::output::{fresh_file, unwritable};
use clap::{Args, ValueEnum};
use runtime::config::{ClusterConfig, NodeConfig};
use runtime::failure::Failure;
use runtime::launch::{LOG_MARK, LogLine};
use runtime::monitor::text::clean_line;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{FmtSpan, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The variable by which the launcher tells a node how to write its log: the format, and whether it has a file.
const NODE_LOG: &str = "METACHARE_NODE_LOG";
/// Follows the format in [`NODE_LOG`] if the node's log has a file.
const WITH_FILE: &str = "+file";
/// The variable that says which lines are wanted, in the notation of the crate `tracing-subscriber`.
const WANTED: &str = "RUST_LOG";
/// Of sentences that are written to standard error by themselves and belong into the file of the log too.
const SENTENCE: &str = "command::sentence";
/// The launcher's name, which no node of a run with a log has.
const LAUNCHER: &str = "launcher";

/// Characters of a line that are kept.
const LINE_MAX: usize = 64 << 10;

/// How lines are written to standard error by this process.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

// How the log of a run is written, and where.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogOptions {
    /// How lines of the log are written to standard error and to the files of --log-dir
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Write the log of the launcher and of each node to a file of its own in this folder
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
}

/// How lines of the log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// An object a line
    Json,
}

impl LogFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl LogOptions {
    /// The files that the log of a run on these nodes is written to.
    pub(crate) fn files(&self, config: &ClusterConfig) -> Vec<NamedFile> {
        let Some(folder) = &self.log_dir else { return Vec::new() };
        let of_node = |node: &NodeConfig| {
            NamedFile::written(&format!("the log of node {:?}", node.name), &path(folder, &node.name))
        };
        let of_launcher = NamedFile::written("the launcher's log", &path(folder, LAUNCHER));
        config.nodes.iter().map(of_node).chain([of_launcher]).collect()
    }

    /// Begins the log of the launcher and of the nodes of `config`, which are told by their environment. Without a folder
    /// for it there are no files.
    ///
    /// # Errors
    /// Which file cannot be written.
    pub(crate) fn begin(&self, config: &mut ClusterConfig) -> Result<Option<NodeLogs>, Failure> {
        // Over ssh a node is told its environment before it goes on, which it need not wait for where all is as usual.
        let is_usual = self.log_format == LogFormat::Text && self.log_dir.is_none();
        let told = self.log_format.name().to_string() + if self.log_dir.is_some() { WITH_FILE } else { "" };
        for node in &mut config.nodes {
            if !is_usual {
                node.env.entry(NODE_LOG.into()).or_insert_with(|| told.clone());
            }
            if let Ok(wanted) = std::env::var(WANTED) {
                node.env.entry(WANTED.into()).or_insert(wanted);
            }
        }
        let Some(folder) = &self.log_dir else {
            set_up(self.log_format, None);
            return Ok(None);
        };
        std::fs::create_dir_all(folder).map_err(|e| unwritable("folder of the log", folder, &e))?;
        let open = |name: &str| {
            let path = path(folder, name);
            fresh_file(&path).map_err(|e| unwritable("log", &path, &e)).map(|file| (path, file))
        };
        let of_node = |node: &NodeConfig| Ok((node.name.clone(), open(&node.name)?));
        let files = config.nodes.iter().map(of_node).collect::<Result<BTreeMap<_, _>, Failure>>()?;
        set_up(self.log_format, Some(BoxMakeWriter::new(Mutex::new(open(LAUNCHER)?.1))));
        let (lines, told) = channel();
        let writer = std::thread::Builder::new().name("log".into()).spawn(move || write(files, &told));
        let writer = writer.map_err(|e| unwritable("log", folder, &e))?;
        Ok(Some(NodeLogs { lines, writer }))
    }
}

/// From now on standard error of this process has the format that its command line asks for, even where the rest of that
/// makes no sense.
pub(crate) fn choose_format(line: &[OsString]) {
    // A process has one run.
    let _ = FORMAT.set(format_in(line));
}

/// The format that a command line asks for, if it is of a run.
fn format_in(line: &[OsString]) -> LogFormat {
    let mut words = line.iter().filter_map(|word| word.to_str()).skip(1).take_while(|word| *word != "--");
    let is_run = words.next().is_some_and(|word| ["run", "demo", "restart"].contains(&word));
    let mut format = LogFormat::Text;
    while let Some(word) = words.next().filter(|_| is_run) {
        let value = if word == "--log-format" { words.next() } else { word.strip_prefix("--log-format=") };
        format = value.and_then(|value| LogFormat::from_str(value, false).ok()).unwrap_or(format);
    }
    format
}

/// Where the log of a node goes, or the launcher's.
fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// The files of nodes' logs, and the thread that writes them.
pub(crate) struct NodeLogs {
    lines: Sender<LogLine>,
    writer: JoinHandle<Result<(), Failure>>,
}

impl NodeLogs {
    /// Who is to be given the lines.
    pub(crate) fn lines(&self) -> Sender<LogLine> {
        self.lines.clone()
    }

    /// Waits for the last line, which comes before the last of those who were given [`lines`](Self::lines) has gone.
    ///
    /// # Errors
    /// Which file could not be written.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        drop(self.lines);
        // A panic in it has been printed.
        self.writer.join().unwrap_or(Ok(()))
    }
}

/// Writes each line to the file of its node, until there are no more.
fn write(mut files: BTreeMap<String, (PathBuf, File)>, lines: &Receiver<LogLine>) -> Result<(), Failure> {
    let mut first_failure = Ok(());
    for LogLine { node, text } in lines {
        let Some((path, file)) = files.get_mut(&node) else { continue };
        if let Err(error) = file.write_all(format!("{text}\n").as_bytes()) {
            first_failure = first_failure.and(Err(unwritable("log", path, &error)));
            files.remove(&node);
        }
    }
    first_failure
}

/// Begins the log of a process that is no launcher, as its environment says.
pub(crate) fn begin() {
    let told = std::env::var(NODE_LOG).unwrap_or_default();
    let (format, has_file) =
        told.strip_suffix(WITH_FILE).map_or((told.as_str(), false), |format| (format, true));
    let format = LogFormat::from_str(format, false).unwrap_or(LogFormat::Text);
    set_up(format, has_file.then(|| BoxMakeWriter::new(|| Marked)));
}

fn set_up(format: LogFormat, file: Option<BoxMakeWriter>) {
    let to_people = wanted(LevelFilter::WARN).with_target(SENTENCE, LevelFilter::OFF);
    let mut layers = vec![layer(format, BoxMakeWriter::new(io::stderr), to_people)];
    layers.extend(file.map(|file| layer(format, file, wanted(LevelFilter::INFO))));
    // It is begun once.
    let _ = tracing_subscriber::registry().with(layers).try_init();
}

/// What the user wants to see, or else what is so grave.
fn wanted(unless_asked: LevelFilter) -> Targets {
    let asked_for = std::env::var(WANTED).ok().and_then(|text| text.parse::<Targets>().ok());
    asked_for.unwrap_or_else(|| Targets::new().with_default(unless_asked))
}

fn layer(
    format: LogFormat,
    to: BoxMakeWriter,
    wanted: Targets,
) -> Box<dyn Layer<Registry> + Send + Sync + 'static> {
    let lines = tracing_subscriber::fmt::layer().with_writer(to).with_span_events(FmtSpan::CLOSE);
    match format {
        LogFormat::Text => lines.with_filter(wanted).boxed(),
        LogFormat::Json => lines.json().with_filter(wanted).boxed(),
    }
}

/// Standard error, with each line marked as one for the file of the log.
struct Marked;

impl Write for Marked {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        // What an event says may have several lines.
        let text = text.trim_end_matches('\n').replace('\n', " ");
        io::stderr().lock().write_all(format!("{LOG_MARK}{text}\n").as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether each line of standard error is to be an object.
pub(crate) fn is_json() -> bool {
    FORMAT.get() == Some(&LogFormat::Json)
}

/// How grave a sentence for people is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Weight {
    Note,
    Warning,
    Error,
}

/// The line of standard error with a sentence for people, which goes to the file of the log too.
pub(crate) fn sentence(weight: Weight, sentence: &str) -> String {
    let (word, level) = match weight {
        Weight::Note => ("note", "INFO"),
        Weight::Warning => ("warning", "WARN"),
        Weight::Error => ("error", "ERROR"),
    };
    match weight {
        Weight::Note => tracing::info!(target: SENTENCE, "{sentence}"),
        Weight::Warning => tracing::warn!(target: SENTENCE, "{sentence}"),
        Weight::Error => tracing::error!(target: SENTENCE, "{sentence}"),
    }
    if is_json() {
        format!("{}\n", object(level, SENTENCE, sentence))
    } else {
        format!("{word}: {sentence}\n")
    }
}

/// A line that a node has written to standard error as an object that names the node: of the node's log, or any other one.
pub(crate) fn of_node(name: &str, line: &str) -> Value {
    let mut object = match serde_json::from_str(line) {
        Ok(Value::Object(object)) if object.contains_key("level") => Value::Object(object),
        _ => object("INFO", "stderr", &clean_line(line, LINE_MAX)),
    };
    object["node"] = name.into();
    object
}

/// As the crate `tracing-subscriber` writes events.
fn object(level: &str, target: &str, message: &str) -> Value {
    let mut now = String::new();
    // Writing to text does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut now));
    json!({ "timestamp": now, "level": level, "target": target, "fields": { "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_found_on_a_command_line_that_is_wrong() {
        let found = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            format_in(&words)
        };
        for line in [
            "m run x --n y --log-format json",
            "m restart --log-format=json",
            "m demo --bogus --log-format json",
        ] {
            assert_eq!(found(line), LogFormat::Json, "{line}");
        }
        for line in [
            "m",
            "m run x",
            "m run x --log-format",
            "m run x --log-format yaml",
            "m run x -- --log-format json",
            "m compare x --log-format json",
        ] {
            assert_eq!(found(line), LogFormat::Text, "{line}");
        }
    }
}
