//! Reports of runs that end before they begin, because the command line, the input or the nodes are wrong. Without them
//! the report of an earlier run would stay at its place, and be taken for that of the last one.

use super::report::{Report, Sources, unix_ms};
use super::{output, sentence_of};
use crate::command_line::CommandLine;
use chares::Timeline;
use runtime::failure::{Failure, Kind};
use runtime::monitor::wire::RunInfo;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How every report begins, without spaces.
const REPORT: &[u8] = b"{\"schema\":\"metachare-run/";
/// So much of a file shows whether it is a report.
const HEAD_BYTES: u64 = 256;

/// What is known of a run that has not begun.
#[derive(Clone, Debug)]
pub(crate) struct Unstarted {
    pub(crate) info: RunInfo,
    version: &'static str,
    pub(crate) command_started: Instant,
}

impl Unstarted {
    pub(crate) fn new(program: &CommandLine, app: &str, line: Vec<String>, command_started: Instant) -> Self {
        let info = RunInfo {
            program: program.name.into(),
            app: app.into(),
            arguments: line,
            started_unix_ms: unix_ms(),
            ..RunInfo::default()
        };
        Self { info, version: program.version, command_started }
    }

    /// Writes the report of the run that this has become. What else of the user's may be in that file is not known yet:
    /// only an older report gives way.
    ///
    /// # Errors
    /// If another file is there, or it cannot be written.
    pub(crate) fn report(&self, path: &Path, why: &Failure) -> Result<(), Failure> {
        let is_free = match fs::metadata(path) {
            Ok(old) if old.is_file() => {
                is_report(path).map_err(|e| output::unwritable("report", path, &e))?
            }
            _ => true,
        };
        if !is_free {
            let path = path.display();
            let sentence =
                format!("the report {path} is not written: another file is there, which is no report");
            return Err(Failure::new(Kind::Output, sentence));
        }
        let sources = Sources {
            info: &self.info,
            version: self.version,
            arguments: Value::Null,
            exit_code: why.exit_code(),
            error: Some(why.sentence.clone()),
        };
        write(path, &Report::new(sources, &Timeline::new(self.command_started)))
    }

    /// Puts a report that says so in the place of an older one, while the run goes on: a run that is killed leaves
    /// that.
    pub(crate) fn begin(&self, path: &Path) {
        let is_old = fs::metadata(path).is_ok_and(|old| old.is_file()) && is_report(path).unwrap_or(false);
        if is_old {
            let why = Failure::new(Kind::Failed, "the run has not ended yet, or it was killed");
            // Where this cannot be written the end of the run cannot either, and that is said.
            let _ = self.report(path, &why);
        }
    }
}

/// Writes a report, also to a terminal.
pub(crate) fn write(path: &Path, report: &Report) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(report).map_err(|e| Failure::new(Kind::Failed, e))? + "\n";
    output::write("report", path, runtime::monitor::text::clean_lines(&text).as_bytes())
}

/// Reports of a run whose command line was not understood, where it says clearly enough where they go.
pub(crate) fn report_usage(
    program: &CommandLine,
    line: &[OsString],
    error: &clap::Error,
    command_started: Instant,
) {
    let words: Vec<String> = line.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let named = words.get(2).and_then(|word| program.apps.iter().find(|app| app.name == word));
    let app = match words.get(1).map(String::as_str) {
        Some("run") if program.is_single() => program.name,
        Some("run") => named.map_or("", |app| app.name),
        Some("demo") => program.demo.map_or("", |demo| demo.app),
        _ => return,
    };
    let why = Failure::new(Kind::Usage, sentence_of(error));
    let unstarted = Unstarted::new(program, app, words, command_started);
    for path in reports_in(line) {
        if let Err(unwritten) = unstarted.report(&path, &why) {
            super::warn(&unwritten.sentence);
        }
    }
}

/// The files that a command line names as reports.
fn reports_in(line: &[OsString]) -> Vec<PathBuf> {
    let mut words = line.iter().take_while(|word| *word != "--");
    let mut reports = Vec::new();
    while let Some(word) = words.next() {
        let value = match word.to_str() {
            Some("--report") => words.next().cloned(),
            Some(word) => word.strip_prefix("--report=").map(OsString::from),
            None => None,
        };
        let is_path = |value: &OsString| !value.is_empty() && !value.to_string_lossy().starts_with("--");
        reports.extend(value.filter(is_path).map(PathBuf::from));
    }
    reports
}

/// Whether a file is empty or begins as a report does.
fn is_report(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    head.retain(|byte| !byte.is_ascii_whitespace());
    Ok(head.is_empty() || head.starts_with(REPORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_found_on_a_command_line_that_is_wrong() {
        let found = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            reports_in(&words).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found("m run x --n abc --report a.json"), ["a.json"]);
        assert_eq!(found("m run x --report=a.json --report b.json --bogus"), ["a.json", "b.json"]);
        assert_eq!(found("m run x --report --quiet --reports c --report= --report"), [""; 0]);
        assert_eq!(found("m run x -- --report a.json"), [""; 0]);
    }

    #[test]
    fn only_an_older_report_gives_way_before_the_other_files_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let program = CommandLine::new(chares::Program::new("metachare", "0.1.0"));
        let unstarted = Unstarted::new(&program, "gauss", vec!["metachare".into()], Instant::now());
        let why = Failure::new(Kind::Input, "n is no number");
        let old = r#"{ "schema": "metachare-run/1", "verified": true }"#;
        for (name, before) in [("absent", None), ("empty", Some("")), ("old", Some(old))] {
            let path = folder.path().join(name);
            if let Some(text) = before {
                fs::write(&path, text).unwrap();
            }
            unstarted.begin(&path);
            assert_eq!(path.exists(), before.is_some());
            unstarted.report(&path, &why).unwrap();
            let report: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let said = (&report["exit_code"], &report["error"], &report["verified"], &report["app"]);
            assert_eq!(said, (&65.into(), &"n is no number".into(), &Value::Null, &"gauss".into()));
        }
        for text in ["\u{93}NUMPY", "{ \"links\": [] }"] {
            let path = folder.path().join("data");
            fs::write(&path, text).unwrap();
            unstarted.begin(&path);
            let unwritten = unstarted.report(&path, &why).unwrap_err();
            assert!(
                unwritten.kind == Kind::Output && unwritten.sentence.contains("another file is there"),
                "{unwritten:?}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(unstarted.report(Path::new("/no/such/folder/r"), &why).unwrap_err().kind, Kind::Output);
        assert_eq!(unstarted.report(folder.path(), &why).unwrap_err().kind, Kind::Output);
        unstarted.begin(Path::new("/dev/full"));
        assert_eq!(unstarted.report(Path::new("/dev/full"), &why).unwrap_err().kind, Kind::Output);
    }
}
