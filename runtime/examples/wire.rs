//! A link between two hosts, measured: round trips of short and long frames, and bandwidth one way.
//!
//! `wire [--auto|--cubic|--bbr] [--window MIB] [--datagram BYTES] -- COMMAND…` starts itself again by COMMAND, such as `ssh other`,
//! tells it on its standard input who it is, and talks with it. The executable must be in the same place there, and
//! WIRE_ADDRESS is the address of this host that the other reaches.

use runtime::buffer::Buffer;
use runtime::frame::{Class, Fabric, Frame, Receiver};
use runtime::ids::NodeId;
use runtime::transport::quic::{Congestion, LinkSettings, QuicFabric};
use runtime::transport::tls::{NodeIdentity, RunAuthority};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver as Events, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(120);
/// Frames from here on are not sent back.
const BULK_BYTES: usize = 8 << 20;
const BULK_FRAMES: usize = 512;

type Failed = Box<dyn Error>;
type End = (Arc<QuicFabric>, Arc<Ear>, Events<usize>);

struct Ear {
    heard: Sender<usize>,
    echo: OnceLock<Arc<QuicFabric>>,
}

impl Receiver for Ear {
    fn receive(&self, from: NodeId, class: Class, frame: Frame) {
        match self.echo.get() {
            Some(fabric) if frame.len_bytes() < BULK_BYTES => {
                let _ = fabric.send(from, class, frame);
            }
            Some(_) => {}
            None => drop(self.heard.send(frame.len_bytes())),
        }
    }

    fn backlog_bytes(&self) -> u64 {
        0
    }

    fn link_lost(&self, _: NodeId, reason: String) {
        eprintln!("the link broke: {reason}");
        std::process::exit(1);
    }
}

fn end(identity: NodeIdentity, me: u16, ip: std::net::IpAddr, settings: LinkSettings) -> Result<End, Failed> {
    let (heard, events) = channel();
    let ear = Arc::new(Ear { heard, echo: OnceLock::new() });
    let (ready, made) = channel();
    let receiver = Arc::clone(&ear);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let fabric = QuicFabric::bind(SocketAddr::new(ip, 0), &identity, NodeId(me), receiver, settings);
            let _ = ready.send(fabric);
            std::future::pending::<()>().await;
        });
    });
    let fabric = made.recv_timeout(WAIT)??;
    Ok((fabric, ear, events))
}

fn settings(words: &[String]) -> Result<LinkSettings, Failed> {
    let mut settings = LinkSettings::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--auto" => settings.congestion = Congestion::Auto,
            "--cubic" => settings.congestion = Congestion::Cubic,
            "--bbr" => settings.congestion = Congestion::Bbr,
            "--window" => settings.stream_window_bytes = value()?.parse::<u32>()? << 20,
            "--datagram" => settings.datagram_max_bytes = value()?.parse()?,
            _ => return Err(format!("{word} is not known").into()),
        }
    }
    Ok(settings)
}

/// The other end: sends back what is short, until its standard input ends.
fn far(words: &[String]) -> Result<(), Failed> {
    let mut input = std::io::stdin().lock();
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let mut blob = vec![0; u32::from_le_bytes(length) as usize];
    input.read_exact(&mut blob)?;
    let (identity, near): (NodeIdentity, SocketAddr) = postcard::from_bytes(&blob)?;
    let probe = UdpSocket::bind("0.0.0.0:0")?;
    probe.connect(near)?;
    let (fabric, ear, _heard) = end(identity, 1, probe.local_addr()?.ip(), settings(words)?)?;
    ear.echo.get_or_init(|| Arc::clone(&fabric));
    fabric.set_addresses(vec![Some(near), None]);
    println!("{}", fabric.local_addr());
    let _ = input.read_to_end(&mut blob);
    Ok(())
}

fn frame(len: usize) -> (Class, Frame) {
    if len < 4096 {
        return (Class::Small, Frame { body: vec![7; len].into(), attachments: Vec::new() });
    }
    (Class::Bulk, Frame { body: vec![7; 16].into(), attachments: vec![Buffer::zeroed(len)] })
}

fn near(words: &[String], command: &[String]) -> Result<(), Failed> {
    let authority = RunAuthority::new("wire")?;
    let listen = std::env::var("WIRE_ADDRESS")
        .map_err(|_| "WIRE_ADDRESS: the address of this host that the other reaches")?;
    let listen = listen.parse()?;
    let (fabric, _ear, heard) = end(authority.issue(NodeId(0))?, 0, listen, settings(words)?)?;
    let blob = postcard::to_stdvec(&(authority.issue(NodeId(1))?, fabric.local_addr()))?;
    let [program, arguments @ ..] = command else { return Err("no command".into()) };
    let mut child = Command::new(program)
        .args(arguments)
        .arg(std::env::current_exe()?)
        .arg("--far")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or("no input")?;
    stdin.write_all(&u32::try_from(blob.len())?.to_le_bytes())?;
    stdin.write_all(&blob)?;
    stdin.flush()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    fabric.set_addresses(vec![None, Some(line.trim().parse()?)]);
    for (len, count) in [(64, 300), (64 << 10, 100), (1 << 20, 10)] {
        let mut times = Vec::new();
        for _ in 0..count {
            let (class, frame) = frame(len);
            let start = Instant::now();
            fabric.send(NodeId(1), class, frame)?;
            heard.recv_timeout(WAIT)?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let (half, most) = (times[count / 2], times[count * 95 / 100]);
        println!("round trip of {len:>8} B: median {half:>10.1?}, 95 % below {most:>10.1?}");
    }
    // More than leaves while it is watched.
    for _ in 0..BULK_FRAMES {
        let (class, frame) = frame(BULK_BYTES);
        fabric.send(NodeId(1), class, frame)?;
    }
    let queued = || fabric.stats(NodeId(1)).queued_bytes;
    for second in [1, 2, 4, 8] {
        let (before, start) = (queued(), Instant::now());
        std::thread::sleep(Duration::from_secs(second) / 2);
        let rate = (before - queued()) as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!(
            "one way, in the next {:.1} s: {rate:.1} MB/s",
            Duration::from_secs(second).as_secs_f64() / 2.0
        );
    }
    let stats = fabric.stats(NodeId(1));
    println!("round trip by QUIC {:?}, datagrams of {:?} B", stats.round_trip, stats.datagram_bytes);
    drop(stdin);
    let _ = child.wait();
    Ok(())
}

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "--far") {
        return far(&words[1..]);
    }
    let at = words.iter().position(|word| word == "--").ok_or("say: wire [options] -- COMMAND…")?;
    near(&words[..at], &words[at + 1..])
}
