//! `--metrics`: the state of a run as OpenMetrics text, for Prometheus and what reads the same.

use runtime::failure::{Failure, Kind};
use runtime::monitor::hub::Hub;
use runtime::monitor::wire::{MonitorEvent, NodeInfo, NodeSnapshot, PeSnapshot, Phase, RunInfo};
use std::fmt::{self, Write as _};
use std::io::{self, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long whoever asks may take to do so, and how much he may say.
const PATIENCE: Duration = Duration::from_secs(2);
const REQUEST_MAX_BYTES: usize = 8 << 10;
/// Where the text is.
const PATH: &str = "/metrics";

/// An address from the command line: of this machine alone where only a port is given.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse().ok();
    let here = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    here.or_else(|| text.parse().ok()).ok_or_else(|| "give ADDRESS:PORT, or a port of this machine".into())
}

/// Where whoever asks will be answered.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        let sentence = format!("--metrics cannot listen on {address}: {error}; give another address or port");
        Failure::new(Kind::Unavailable, sentence)
    })
}

/// Answers whoever asks for as long as this process lives.
pub(crate) fn serve(hub: &Arc<Hub>, listener: TcpListener) {
    let hub = Arc::clone(hub);
    let answering = move || {
        for stream in listener.incoming() {
            match stream {
                // Whoever leaves early has what he wanted.
                Ok(stream) => drop(answer(stream, &hub)),
                // Most likely too many files are open, and the next try would fail as fast.
                Err(_) => std::thread::sleep(PATIENCE),
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("metrics".into()).spawn(answering) {
        crate::warn(&format!("the system has no thread to tell metrics: {error}"));
    }
}

fn answer(mut stream: TcpStream, hub: &Hub) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX_BYTES {
        match stream.read(&mut piece)? {
            0 => break,
            count => request.extend(&piece[..count]),
        }
    }
    let text = String::from_utf8_lossy(&request);
    let mut words = text.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some(PATH)) => ("200 OK", text_of(&hub.subscribe().try_iter().collect::<Vec<_>>())),
        (Some("GET"), Some(_)) => ("404 Not Found", format!("it is at {PATH}\n")),
        _ => ("405 Method Not Allowed", "only GET is answered\n".into()),
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// What a new viewer is told, as metrics.
fn text_of(events: &[MonitorEvent]) -> String {
    let (mut run, mut phase, mut snapshots) = (&RunInfo::default(), None, Vec::new());
    for event in events {
        match event {
            MonitorEvent::Run(info) => run = info,
            MonitorEvent::Snapshot(snapshot) => snapshots.push(snapshot),
            MonitorEvent::Phase(now) => phase = Some(now),
            _ => {}
        }
    }
    let mut page = Page::default();
    of_run(&mut page, run, phase);
    of_nodes(&mut page, run, &snapshots);
    of_pes(&mut page, run, &snapshots);
    page.text + "# EOF\n"
}

/// The text, family by family.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// A family of values of one `kind`, each with its labels.
    fn family<V: fmt::Display>(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        values: impl IntoIterator<Item = (Labels, V)>,
    ) {
        let end = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# TYPE metachare_{name} {kind}\n# HELP metachare_{name} {help}");
        for (Labels(labels), value) in values {
            let _ = writeln!(self.text, "metachare_{name}{end}{{{labels}}} {value}");
        }
    }
}

/// Labels of a value, as they are written.
#[derive(Clone)]
struct Labels(String);

impl Labels {
    fn new(all: &[(&str, &str)]) -> Self {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let one = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        Self(all.iter().map(one).collect::<Vec<_>>().join(","))
    }

    fn and(&self, name: &str, value: &str) -> Self {
        let Self(more) = Self::new(&[(name, value)]);
        Self(format!("{},{more}", self.0))
    }
}

fn of_run(page: &mut Page, run: &RunInfo, phase: Option<&Phase>) {
    let labels = Labels::new(&[("run", &run.run_id), ("app", &run.app), ("program", &run.program)]);
    page.family(("run", "info", "Which run this is."), [(labels, 1)]);
    let here = |of: fn(&Phase) -> u64| phase.map(|phase| (Labels::new(&[("phase", &phase.name)]), of(phase)));
    page.family(("phase_units_done", "gauge", "Units of work done in this phase."), here(|phase| phase.done));
    page.family(
        ("phase_units", "gauge", "Units of work in this phase; 0 if unknown."),
        here(|phase| phase.total),
    );
    let saved = run.saved.map(|saved| (Labels::new(&[]), saved));
    page.family(
        ("checkpoint_bytes", "gauge", "Size of the last checkpoint."),
        saved.clone().map(|(none, saved)| (none, saved.bytes)),
    );
    page.family(
        (
            "checkpoint_timestamp_seconds",
            "gauge",
            "When the last checkpoint was complete, in seconds since 1970.",
        ),
        saved.map(|(none, saved)| (none, run.started_unix_ms as f64 / 1e3 + saved.at_s)),
    );
}

fn of_nodes(page: &mut Page, run: &RunInfo, snapshots: &[&NodeSnapshot]) {
    let named = |info: &NodeInfo| Labels::new(&[("node", &info.name)]);
    let infos = run.nodes.iter().map(|info| (named(info).and("host", &info.host).and("cpu", &info.cpu), 1));
    page.family(("node", "info", "The nodes of the run."), infos);
    let shares = run.nodes.iter().filter_map(|info| Some((named(info), info.share?)));
    page.family(("node_share_ratio", "gauge", "Part of the data that the node holds."), shares);
    let each = |of: fn(&NodeSnapshot) -> f64| {
        snapshots.iter().filter_map(move |one| Some((named(info_of(run, one.node)?), of(one))))
    };
    let mut family =
        |name, kind, help, of: fn(&NodeSnapshot) -> f64| page.family((name, kind, help), each(of));
    family("node_memory_bytes", "gauge", "Memory that the node's process has taken.", |one| {
        one.memory_bytes as f64
    });
    family("node_sent_bytes", "counter", "Bytes of messages to other nodes.", |one| one.sent_bytes as f64);
    family("node_received_bytes", "counter", "Bytes of messages from other nodes.", |one| {
        one.received_bytes as f64
    });
    family("node_sent_messages", "counter", "Messages to other nodes.", |one| one.sent_messages as f64);
    family("node_received_messages", "counter", "Messages from other nodes.", |one| {
        one.received_messages as f64
    });
}

fn of_pes(page: &mut Page, run: &RunInfo, snapshots: &[&NodeSnapshot]) {
    let pes: Vec<(Labels, &PeSnapshot, &NodeInfo)> = snapshots
        .iter()
        .filter_map(|one| Some((info_of(run, one.node)?, one)))
        .flat_map(|(info, one)| one.pes.iter().map(move |pe| (info, pe)))
        .map(|(info, pe)| (Labels::new(&[("node", &info.name), ("pe", &pe.pe.to_string())]), pe, info))
        .collect();
    let times = pes.iter().flat_map(|(labels, pe, _)| {
        states(pe).map(|(state, ns)| (labels.and("state", state), ns as f64 / 1e9))
    });
    page.family(("pe_seconds", "counter", "What the PE's time went into."), times);
    let speeds = pes.iter().filter_map(|(labels, pe, info)| {
        let speed = info.pe_speeds.get((pe.pe.checked_sub(info.first_pe)?) as usize)?;
        Some((labels.clone(), *speed))
    });
    page.family(
        ("pe_speed_ratio", "gauge", "Measured speed, relative to the fastest PE; 0 until measured."),
        speeds,
    );
    let each = |of: fn(&PeSnapshot) -> u64| pes.iter().map(move |(labels, pe, _)| (labels.clone(), of(pe)));
    let mut family = |name, kind, help, of: fn(&PeSnapshot) -> u64| page.family((name, kind, help), each(of));
    family("pe_entries", "counter", "Entry methods run.", |pe| pe.entries);
    family("pe_sent_messages", "counter", "Messages sent by its chares, to anywhere.", |pe| pe.sent_messages);
    family("pe_migrations", "counter", "Chares that have moved from here.", |pe| pe.migrations);
    family("pe_progress_units", "counter", "Units of work that its chares have done.", |pe| pe.progress);
    family("pe_chares", "gauge", "Chares that live here.", |pe| pe.chares);
    family("pe_queue_messages", "gauge", "Messages that wait here.", |pe| pe.queue_messages);
    family("pe_queue_bytes", "gauge", "Bytes that wait here.", |pe| pe.queue_bytes);
}

fn states(pe: &PeSnapshot) -> [(&'static str, u64); 7] {
    [
        ("compute", pe.compute_ns),
        ("init", pe.init_ns),
        ("overhead", pe.overhead_ns),
        ("idle", pe.idle_ns),
        ("core_wait", pe.core_wait_ns),
        ("quota", pe.quota_ns),
        ("throttled", pe.throttled_ns),
    ]
}

fn info_of(run: &RunInfo, node: u16) -> Option<&NodeInfo> {
    run.nodes.iter().find(|info| info.node == node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::monitor::wire::SavedAt;

    fn info() -> RunInfo {
        let node = NodeInfo {
            node: 1,
            name: "fa\"st".into(),
            host: "h".into(),
            first_pe: 4,
            pe_count: 1,
            pe_speeds: vec![0.5],
            ..NodeInfo::default()
        };
        RunInfo { run_id: "gauss-1".into(), app: "gauss".into(), nodes: vec![node], ..RunInfo::default() }
    }

    fn snapshot() -> MonitorEvent {
        let pe = PeSnapshot { pe: 4, compute_ns: 1_500_000_000, entries: 7, ..PeSnapshot::default() };
        MonitorEvent::Snapshot(NodeSnapshot {
            node: 1,
            memory_bytes: 9,
            pes: vec![pe],
            ..NodeSnapshot::default()
        })
    }

    #[test]
    fn the_text_is_as_openmetrics_has_it() {
        let phase = Phase { name: "column".into(), done: 2, total: 9, ..Phase::default() };
        let saved = Some(SavedAt { number: 1, at_s: 2.5, bytes: 64 });
        let info = RunInfo { started_unix_ms: 1_700_000_000_250, saved, ..info() };
        let text = text_of(&[MonitorEvent::Run(info), snapshot(), MonitorEvent::Phase(phase)]);
        for line in [
            "# TYPE metachare_run info",
            "metachare_run_info{run=\"gauss-1\",app=\"gauss\",program=\"\"} 1",
            "metachare_phase_units_done{phase=\"column\"} 2",
            "# TYPE metachare_pe_seconds counter",
            "metachare_pe_seconds_total{node=\"fa\\\"st\",pe=\"4\",state=\"compute\"} 1.5",
            "metachare_pe_entries_total{node=\"fa\\\"st\",pe=\"4\"} 7",
            "metachare_pe_speed_ratio{node=\"fa\\\"st\",pe=\"4\"} 0.5",
            "metachare_node_memory_bytes{node=\"fa\\\"st\"} 9",
            "metachare_checkpoint_bytes{} 64",
            "metachare_checkpoint_timestamp_seconds{} 1700000002.75",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
        let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let mut once = families.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(families.len(), once.len());
    }

    #[test]
    fn whoever_asks_for_the_metrics_gets_them_and_nothing_else_is_answered() {
        let hub = Arc::new(Hub::new(info()));
        hub.publish(snapshot());
        let listener = listen(address("0").unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(&hub, listener);
        let ask = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let page = ask("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("# EOF\n"), "{page}");
        assert!(page.contains("state=\"compute\"} 1.5"), "{page}");
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        let taken = listen(address).unwrap_err();
        assert!(taken.sentence.contains("give another address or port"), "{taken}");
    }

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        assert_eq!(address(":9100").unwrap().to_string(), "127.0.0.1:9100");
        assert_eq!(address("9100").unwrap().to_string(), "127.0.0.1:9100");
        assert_eq!(address("0.0.0.0:9100").unwrap().to_string(), "0.0.0.0:9100");
        for text in ["", "here:9100", "99999", "1.2.3.4"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
