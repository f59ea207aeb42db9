//! `--load`: what each PE did, as a table of comma-separated values with a line for each PE and second.

use runtime::monitor::text::clean_line;
use runtime::monitor::wire::{MonitorEvent, NodeInfo, NodeSnapshot, PeSnapshot};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

/// Between two lines of a PE.
const STEP_NS: u64 = 1_000_000_000;
const TITLES: &str =
    "at_s,node,pe,compute,runtime,init,no_core,quota,share,idle,entries,chares,queue,messages,bytes";

/// Writes the table while snapshots come.
pub(crate) struct LoadTable<W> {
    out: W,
    nodes: Vec<NodeInfo>,
    /// Of each node the snapshot at its last line.
    last: BTreeMap<u16, NodeSnapshot>,
}

impl<W: Write> LoadTable<W> {
    /// Begins with the line of titles.
    pub(crate) fn begin(mut out: W) -> io::Result<Self> {
        writeln!(out, "{TITLES}")?;
        Ok(Self { out, nodes: Vec::new(), last: BTreeMap::new() })
    }

    /// Takes one event that the launcher learned of so long after the run's start.
    pub(crate) fn take(&mut self, at: Duration, event: &MonitorEvent) -> io::Result<()> {
        match event {
            MonitorEvent::Run(run) => self.nodes.clone_from(&run.nodes),
            MonitorEvent::Snapshot(snapshot) => {
                let last = self.last.entry(snapshot.node).or_default();
                if snapshot.uptime_ns.saturating_sub(last.uptime_ns) >= STEP_NS {
                    let before = std::mem::replace(last, snapshot.clone());
                    return self.lines(at, &before, snapshot);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn lines(&mut self, at: Duration, before: &NodeSnapshot, now: &NodeSnapshot) -> io::Result<()> {
        let info = self.nodes.iter().find(|info| info.node == now.node);
        let name = info.map_or_else(|| now.node.to_string(), |info| quoted(&info.name));
        let none = PeSnapshot::default();
        for pe in &now.pes {
            let earlier = before.pes.iter().find(|earlier| earlier.pe == pe.pe).unwrap_or(&none);
            let since = |of: fn(&PeSnapshot) -> u64| of(pe).saturating_sub(of(earlier));
            let times = [
                since(|pe| pe.compute_ns),
                since(|pe| pe.overhead_ns),
                since(|pe| pe.init_ns),
                since(|pe| pe.core_wait_ns),
                since(|pe| pe.quota_ns),
                since(|pe| pe.throttled_ns),
                since(|pe| pe.idle_ns),
            ];
            let all = times.iter().fold(0_u64, |sum, time| sum.saturating_add(*time)).max(1);
            write!(self.out, "{:.1},{name},{}", at.as_secs_f64(), pe.pe)?;
            for time in times {
                write!(self.out, ",{:.4}", time as f64 / all as f64)?;
            }
            writeln!(
                self.out,
                ",{},{},{},{},{}",
                since(|pe| pe.entries),
                pe.chares,
                pe.queue_messages,
                since(|pe| pe.sent_messages),
                since(|pe| pe.sent_bytes)
            )?;
        }
        Ok(())
    }
}

/// A name as one field, whatever is in it.
fn quoted(name: &str) -> String {
    let name = clean_line(name, 80);
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::monitor::wire::RunInfo;

    #[test]
    fn each_pe_has_a_line_a_second_of_what_it_did_since_the_last() {
        let info = NodeInfo { node: 2, name: "a,\"b\"".into(), ..NodeInfo::default() };
        let snapshot = |tenths: u64| {
            let ms = tenths * 100;
            let (compute, idle) =
                if ms <= 1000 { (ms, 0) } else { (1000 + (ms - 1000) / 4, (ms - 1000) * 3 / 4) };
            let pe = PeSnapshot {
                pe: 3,
                compute_ns: compute * 1_000_000,
                idle_ns: idle * 1_000_000,
                entries: tenths,
                chares: 5,
                queue_messages: 1,
                sent_messages: 2 * tenths,
                sent_bytes: 10 * tenths,
                ..PeSnapshot::default()
            };
            let uptime_ns = ms * 1_000_000;
            MonitorEvent::Snapshot(NodeSnapshot {
                node: 2,
                uptime_ns,
                pes: vec![pe],
                ..NodeSnapshot::default()
            })
        };
        let mut table = LoadTable::begin(Vec::new()).unwrap();
        table
            .take(Duration::ZERO, &MonitorEvent::Run(RunInfo { nodes: vec![info], ..RunInfo::default() }))
            .unwrap();
        for tenths in 1..=25 {
            table.take(Duration::from_millis(100 * tenths), &snapshot(tenths)).unwrap();
        }
        let text = String::from_utf8(table.out).unwrap();
        let expected = [
            TITLES,
            "1.0,\"a,\"\"b\"\"\",3,1.0000,0.0000,0.0000,0.0000,0.0000,0.0000,0.0000,10,5,1,20,100",
            "2.0,\"a,\"\"b\"\"\",3,0.2500,0.0000,0.0000,0.0000,0.0000,0.0000,0.7500,10,5,1,20,100",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
