//! `--events`: what viewers of a run are told, each event as one line of JSON.

use runtime::monitor::wire::MonitorEvent;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::time::Duration;

/// Writes events as lines.
pub(crate) struct EventLines<W> {
    out: W,
}

impl<W: Write> EventLines<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes one event that the launcher learned of so long after the run's start.
    pub(crate) fn take(&mut self, at: Duration, event: &MonitorEvent) -> io::Result<()> {
        let line = line(at, event)?;
        writeln!(self.out, "{line}")
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
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
        MonitorEvent::Heaviest(_) => "heaviest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::monitor::wire::{NodeSnapshot, PeSnapshot, Phase, RunInfo};

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
