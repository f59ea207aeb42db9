//! A link between two hosts, measured: round trips of short and long frames, and bandwidth one way with the time of
//! processors that it takes at both ends.
//!
//! `wire [--auto|--cubic|--bbr] [--window MIB] [--datagram BYTES] [--spin MICROSECONDS] -- COMMAND…` starts itself again by COMMAND, such as `ssh other`,
//! tells it on its standard input who it is, and talks with it. The executable must be in the same place there, and
//! WIRE_ADDRESS is the address of this host that the other reaches.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use runtime::buffer::Buffer;
use runtime::config::NetworkConfig;
use runtime::frame::{Class, Fabric, Frame, Receiver};
use runtime::ids::NodeId;
use runtime::spin::Spin;
use runtime::transport::quic::{Congestion, LinkSettings, QuicFabric};
use runtime::transport::tls::{NodeIdentity, RunAuthority};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Events, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(120);
/// Frames from here on are not sent back.
const LARGE_BYTES: usize = 2 << 20;
const BULK_FRAMES: usize = 2048;

type Failed = Box<dyn Error>;
type End = (Arc<QuicFabric>, Arc<Ear>, Events<()>);

struct Ear {
    heard: Sender<()>,
    echo: OnceLock<Arc<QuicFabric>>,
    /// Of all frames that came.
    bytes: AtomicUsize,
}

impl Receiver for Ear {
    fn receive(&self, from: NodeId, class: Class, frame: Frame) {
        self.bytes.fetch_add(frame.len_bytes(), Ordering::Relaxed);
        match self.echo.get() {
            Some(fabric) if frame.len_bytes() < LARGE_BYTES => {
                let _ = fabric.send(from, class, frame);
            }
            Some(_) => {}
            None => drop(self.heard.send(())),
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

fn end(identity: NodeIdentity, me: u16, ip: std::net::IpAddr, words: &[String]) -> Result<End, Failed> {
    let (settings, spin) = settings(words)?;
    let (heard, events) = channel();
    let ear = Arc::new(Ear { heard, echo: OnceLock::new(), bytes: AtomicUsize::new(0) });
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
    fabric.stay_awake_for(&Spin::new(spin));
    Ok((fabric, ear, events))
}

/// What the links do, and how long their thread stays awake after traffic.
fn settings(words: &[String]) -> Result<(LinkSettings, Duration), Failed> {
    let (mut settings, mut spin) = (LinkSettings::default(), NetworkConfig::default().spin());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--auto" => settings.congestion = Congestion::Auto,
            "--cubic" => settings.congestion = Congestion::Cubic,
            "--bbr" => settings.congestion = Congestion::Bbr,
            "--window" => settings.stream_window_bytes = value()?.parse::<u32>()? << 20,
            "--spin" => spin = Duration::from_micros(value()?.parse()?),
            "--datagram" => settings.datagram_max_bytes = value()?.parse()?,
            _ => return Err(format!("{word} is not known").into()),
        }
    }
    Ok((settings, spin))
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
    let (fabric, ear, _heard) = end(identity, 1, probe.local_addr()?.ip(), words)?;
    ear.echo.get_or_init(|| Arc::clone(&fabric));
    fabric.set_addresses(vec![Some(near), None]);
    println!("{}", fabric.local_addr());
    while input.read_exact(&mut [0]).is_ok() {
        println!("{} {}", processor_us()?, ear.bytes.load(Ordering::Relaxed));
    }
    Ok(())
}

/// What this process has used since it began, microseconds.
fn processor_us() -> Result<i64, Failed> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
}

fn frame(len: usize) -> (Class, Frame) {
    if len < 4096 {
        return (Class::Small, Frame { body: vec![7; len].into(), attachments: Vec::new() });
    }
    (Class::Large, Frame { body: vec![7; 16].into(), attachments: vec![Buffer::zeroed(len)] })
}

fn near(words: &[String], command: &[String]) -> Result<(), Failed> {
    let authority = RunAuthority::new("wire")?;
    let listen = std::env::var("WIRE_ADDRESS")
        .map_err(|_| "WIRE_ADDRESS: the address of this host that the other reaches")?;
    let listen = listen.parse()?;
    let (fabric, _ear, heard) = end(authority.issue(NodeId(0))?, 0, listen, words)?;
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
    let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
    output.read_line(&mut line)?;
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
        let (class, frame) = frame(LARGE_BYTES);
        fabric.send(NodeId(1), class, frame)?;
    }
    // What has arrived there, and what both have used.
    let mut look = || -> Result<(Instant, [i64; 3]), Failed> {
        stdin.write_all(&[0])?;
        stdin.flush()?;
        line.clear();
        output.read_line(&mut line)?;
        let (far_us, bytes) = line.trim().split_once(' ').ok_or("no answer")?;
        Ok((Instant::now(), [bytes.parse()?, processor_us()?, far_us.parse()?]))
    };
    let mut before = look()?;
    for pause in [500, 1000, 2000, 4000] {
        std::thread::sleep(Duration::from_millis(pause));
        let after = look()?;
        let per_us = |of: usize| {
            (after.1[of] - before.1[of]) as f64 / after.0.duration_since(before.0).as_micros() as f64
        };
        let (rate, here, there) = (per_us(0), per_us(1), per_us(2));
        println!(
            "one way, in the next {:.1} s: {rate:.1} MB/s with {here:.2} of a core here and {there:.2} there",
            after.0.duration_since(before.0).as_secs_f64()
        );
        before = after;
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
