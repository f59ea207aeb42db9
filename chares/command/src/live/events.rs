//! `--events`: what viewers of a run are told, each event as one line of JSON.

use runtime::monitor::wire::MonitorEvent;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::time::Duration;

/// Writes events as lines.
pub(crate) struct EventLines<W> {
    out: W,
    names: Names,
}

/// What numbers in events stand for. A program has many names, of which a run uses few: each is told where it is used.
#[derive(Debug, Default)]
struct Names {
    entries: Vec<String>,
    chare_types: Vec<String>,
}

impl<W: Write> EventLines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, names: Names::default() }
    }

    /// Writes one event that the launcher learned of so long after the run's start.
    pub(crate) fn take(&mut self, at: Duration, event: &MonitorEvent) -> io::Result<()> {
        if let MonitorEvent::Run(run) = event {
            self.names = Names { entries: run.entry_names.clone(), chare_types: run.chare_types.clone() };
        }
        let mut line = line(at, event)?;
        self.names.put_into(&mut line);
        writeln!(self.out, "{line}")
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Names {
    /// Puts names in the place of their numbers, and takes the lists of all names away.
    fn put_into(&self, line: &mut Value) {
        if let Some(fields) = line.as_object_mut() {
            fields.remove("entry_names");
            fields.remove("chare_types");
        }
        put(line.pointer_mut("/profile/entries"), "name", &self.entries);
        put(line.pointer_mut("/profile/chares"), "chare_type", &self.chare_types);
        put(line.pointer_mut("/ran"), "name", &self.entries);
        put(line.pointer_mut("/gathered"), "chare_type", &self.chare_types);
    }
}

fn put(list: Option<&mut Value>, key: &str, names: &[String]) {
    for one in list.and_then(Value::as_array_mut).into_iter().flatten() {
        let number = one[key].as_u64().and_then(|number| usize::try_from(number).ok());
        if let Some(name) = number.and_then(|number| names.get(number)) {
            one[key] = name.as_str().into();
        }
    }
}

/// `at_s` and `event`, beside what the event holds under the names of its fields.
fn line(at: Duration, event: &MonitorEvent) -> io::Result<Value> {
    let mut object = match serde_json::to_value(event)? {
        Value::Object(of_kind) => match of_kind.into_iter().next() {
            Some((_, Value::Object(fields))) => fields,
            Some((_, value @ Value::String(_))) => Map::from_iter([("text".to_string(), value)]),
            Some((_, value)) => Map::from_iter([("count".to_string(), value)]),
            None => Map::new(),
        },
        _ => Map::new(),
    };
    object.insert("at_s".into(), at.as_secs_f64().into());
    object.insert("event".into(), name(event).into());
    Ok(Value::Object(object))
}

fn name(event: &MonitorEvent) -> &'static str {
    match event {
        MonitorEvent::Run(_) => "run",
        MonitorEvent::Snapshot(_) => "snapshot",
        MonitorEvent::Phase(_) => "phase",
        MonitorEvent::Output(_) => "output",
        MonitorEvent::NodeLost { .. } => "node_lost",
        MonitorEvent::Dropped(_) => "dropped",
        MonitorEvent::Clocks(_) => "clocks",
        MonitorEvent::Samples(_) => "samples",
        MonitorEvent::Ended { .. } => "ended",
        MonitorEvent::At(_) => "at",
        MonitorEvent::Result(_) => "result",
        MonitorEvent::Map(_) => "map",
        MonitorEvent::Remark(_) => "remark",
        MonitorEvent::Heaviest(_) => "heaviest",
        MonitorEvent::Saving(_) => "saving",
        MonitorEvent::Collectives(_) => "collectives",
        MonitorEvent::NotSaved(_) => "not_saved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::monitor::profile::{ChareCount, EntryTime, Profile};
    use runtime::monitor::samples::{Ran, Samples};
    use runtime::monitor::wire::{NodeSnapshot, PeSnapshot, Phase, RunInfo};

    #[test]
    fn names_stand_where_they_are_used_and_not_all_of_them_in_the_first_line() {
        let entry_names = ["Row: Pivot", "Row: Go"].map(String::from).to_vec();
        let run = RunInfo { entry_names, chare_types: vec!["Row".into()], ..RunInfo::default() };
        let profile = Profile {
            entries: vec![EntryTime { name: 1, ..EntryTime::default() }],
            chares: vec![ChareCount::default()],
            ..Profile::default()
        };
        let ran = [1, 7].map(|name| Ran { name, ..Ran::default() }).to_vec();
        let events = [
            MonitorEvent::Run(run),
            MonitorEvent::Snapshot(NodeSnapshot { profile: Some(profile), ..NodeSnapshot::default() }),
            MonitorEvent::Samples(Samples { ran, ..Samples::default() }),
        ];
        let mut lines = EventLines::new(Vec::new());
        events.iter().for_each(|event| lines.take(Duration::ZERO, event).unwrap());
        let text = String::from_utf8(lines.out).unwrap();
        let read: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!text.contains("Pivot"), "{text}");
        let profile = &read[1]["profile"];
        assert_eq!(
            (&profile["entries"][0]["name"], &profile["chares"][0]["chare_type"]),
            (&"Row: Go".into(), &"Row".into())
        );
        assert_eq!((&read[2]["ran"][0]["name"], &read[2]["ran"][1]["name"]), (&"Row: Go".into(), &7.into()));
    }

    #[test]
    fn each_event_is_a_line_with_its_time_kind_and_fields() {
        let pe = PeSnapshot { pe: 3, compute_ns: 7, ..PeSnapshot::default() };
        let events = [
            MonitorEvent::Run(RunInfo { app: "gauss".into(), ..RunInfo::default() }),
            MonitorEvent::Snapshot(NodeSnapshot { node: 2, pes: vec![pe], ..NodeSnapshot::default() }),
            MonitorEvent::Phase(Phase { name: "two\nlines".into(), done: 1, total: 9, ..Phase::default() }),
            MonitorEvent::NodeLost { node: 2, reason: "gone".into() },
            MonitorEvent::Dropped(5),
            MonitorEvent::Ended { code: 69, summary: "lost".into() },
        ];
        let mut lines = EventLines::new(Vec::new());
        events.iter().for_each(|event| lines.take(Duration::from_millis(1500), event).unwrap());
        let text = String::from_utf8(lines.out).unwrap();
        let read: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<&str> = read.iter().filter_map(|line| line["event"].as_str()).collect();
        assert_eq!(kinds, ["run", "snapshot", "phase", "node_lost", "dropped", "ended"]);
        assert!(read.iter().all(|line| line["at_s"] == 1.5));
        assert_eq!((&read[0]["app"], &read[1]["pes"][0]["compute_ns"]), (&"gauss".into(), &7.into()));
        assert_eq!((&read[2]["name"], &read[2]["done"]), (&"two\nlines".into(), &1.into()));
        assert_eq!((&read[4]["count"], &read[5]["code"]), (&5.into(), &69.into()));
    }
}
