//! The first words between a launcher and a node process, over the process's standard input and output.

use super::identity::{clock_s, hex};
use crate::architecture::Architecture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// First words of the line that a node answers with.
pub(super) const READY: &str = "metachare-node-ready 1 ";
/// The longest first message to a node. It has the application's arguments in it, with what stands in files that only the
/// launcher has: tables, or a list of atoms.
const BLOB_MAX_BYTES: u32 = 1 << 30;

/// Why a node process does not understand its launcher.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Nothing, or too little, came.
    #[error("the launcher said too little: {0}; this command is only for launchers")]
    Short(#[from] io::Error),
    /// Too much was announced.
    #[error("the launcher announced {0} bytes, which is too much; this command is only for launchers")]
    Long(u32),
}

/// What a node tells its launcher once it listens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Wire version of the node.
    pub version: u16,
    /// Where its endpoint listens.
    pub addr: SocketAddr,
    /// Its process.
    pub pid: u32,
    /// Cores that it may use.
    pub cores: u32,
    /// Which ones those are among, as the system lists them, e.g. `0-3,8`; a quota may let it use fewer at a time.
    pub allowed_cores: String,
    /// CPU model as the system names it.
    pub cpu_model: String,
    /// Clock of the fastest of those cores, MHz; 0 where the system does not tell.
    pub clock_mhz: u32,
    /// What kind of machine it runs on.
    pub architecture: Architecture,
    /// Memory of the host.
    pub memory_bytes: u64,
    /// Its clock, seconds since 1970.
    pub clock_s: u64,
    /// [Fingerprint](crate::proto::membership::fingerprint) of its program.
    pub program: u64,
}

impl Ready {
    /// This process, listening at `addr`, with a program of that fingerprint.
    #[must_use]
    pub fn here(addr: SocketAddr, program: u64) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
        Self {
            version: crate::codec::WIRE_VERSION,
            addr,
            pid: std::process::id(),
            cores,
            allowed_cores: from_proc("/proc/self/status", "Cpus_allowed_list").unwrap_or_default(),
            cpu_model: from_proc("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".into()),
            clock_mhz: crate::node::processors::clock_now_mhz(),
            architecture: Architecture::here(),
            memory_bytes: memory_bytes(),
            clock_s: clock_s(),
            program,
        }
    }

    pub(super) fn to_line(&self) -> io::Result<String> {
        to_line(READY, self)
    }

    /// The answer in a line, if it is one.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        from_line(READY, line)
    }
}

/// A value as a line of text between a launcher and a node.
pub(super) fn to_line(first_words: &str, value: &impl Serialize) -> io::Result<String> {
    let bytes = postcard::to_stdvec(value).map_err(io::Error::other)?;
    Ok(format!("{first_words}{}\n", hex(&bytes)))
}

/// The value in a line, if it is one of these.
pub(super) fn from_line<T: DeserializeOwned>(first_words: &str, line: &str) -> Option<T> {
    let text = line.trim_end().strip_prefix(first_words)?;
    let digits: Option<Vec<u8>> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    postcard::from_bytes(&digits?).ok()
}

/// Reads what the launcher says first.
///
/// # Errors
/// If that is not a message of a launcher.
pub fn read_bootstrap(input: &mut impl Read) -> Result<Vec<u8>, BootstrapError> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > BLOB_MAX_BYTES {
        return Err(BootstrapError::Long(length));
    }
    // Takes memory only for what has come, whatever length is announced.
    let mut blob = Vec::new();
    input.take(u64::from(length)).read_to_end(&mut blob)?;
    if blob.len() < length as usize {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(blob)
}

/// Tells the launcher that this node listens.
///
/// # Errors
/// If standard output is closed.
pub fn announce_ready(ready: &Ready) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(ready.to_line()?.as_bytes())?;
    out.flush()
}

/// Calls `on_lost` when standard input ends: the launcher, or the ssh connection to it, is gone.
///
/// # Errors
/// If the system has no thread for that: without a lifeline a node could outlive its launcher.
pub fn watch_lifeline(on_lost: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let watch = move || {
        let (mut input, mut bytes) = (io::stdin().lock(), [0; 64]);
        loop {
            match input.read(&mut bytes) {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => {}
            }
        }
        on_lost();
    };
    std::thread::Builder::new().name("lifeline".into()).spawn(watch).map(drop)
}

/// Calls `on_late` if what it returns is not dropped within `limit`: until it has joined, a node hears nothing from a
/// launcher that is only slow, and nothing from one that a broken line keeps from saying that it is gone.
///
/// # Errors
/// If the system has no thread for that.
pub fn watch_start(limit: Duration, on_late: impl FnOnce() + Send + 'static) -> io::Result<Sender<()>> {
    let (joined, waiting) = channel();
    let watch = move || {
        if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            on_late();
        }
    };
    std::thread::Builder::new().name("start".into()).spawn(watch)?;
    Ok(joined)
}

fn memory_bytes() -> u64 {
    let text = from_proc("/proc/meminfo", "MemTotal").unwrap_or_default();
    text.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn from_proc(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::sim::Random;

    #[test]
    fn only_a_start_that_lasts_too_long_is_late() {
        let (told, late) = channel();
        let early = told.clone();
        drop(watch_start(Duration::from_secs(3600), move || early.send("early").unwrap()).unwrap());
        let _waits = watch_start(Duration::from_millis(1), move || told.send("late").unwrap()).unwrap();
        assert_eq!(late.iter().collect::<Vec<_>>(), ["late"]);
    }

    #[test]
    fn an_answer_survives_its_line_and_noise_is_not_one() {
        let ready = Ready::here("127.0.0.1:4242".parse().unwrap(), 7);
        assert_eq!(Ready::from_line(&ready.to_line().unwrap()), Some(ready.clone()));
        for noise in
            ["", "Welcome to fast.example", READY, "metachare-node-ready 1 zz", "metachare-node-ready 1 0é"]
        {
            assert_eq!(Ready::from_line(noise), None);
        }
        assert!(ready.cores > 0 && !ready.cpu_model.is_empty());
    }

    #[test]
    fn a_first_message_is_read_whole_or_refused() {
        let good = [3, 0, 0, 0, 7, 8, 9, 1];
        assert_eq!(read_bootstrap(&mut &good[..]).unwrap(), [7, 8, 9]);
        assert!(matches!(read_bootstrap(&mut &good[..5]), Err(BootstrapError::Short(_))));
        assert!(matches!(read_bootstrap(&mut &[0xff; 9][..]), Err(BootstrapError::Long(_))));
        // As with a million atoms of a file in the arguments.
        let long = vec![7; 33_000_000];
        let said = [&33_000_000_u32.to_le_bytes()[..], &long].concat();
        assert!(read_bootstrap(&mut &said[..]).unwrap() == long);
    }

    #[test]
    fn first_words_of_any_content_are_read_or_refused() {
        let (mut random, mut read) = (Random::new(31), 0);
        for number in 0..10_000 {
            let mut said = random.bytes(64);
            if number % 2 == 0 {
                said.splice(..0, [u8::try_from(number % 50).unwrap(), 0, 0, 0]);
            }
            let Ok(blob) = read_bootstrap(&mut &said[..]) else { continue };
            read += 1;
            assert!(said[4..].starts_with(&blob) && blob.len() <= 64);
        }
        assert!(read > 500, "{read} read");
    }

    #[test]
    fn answers_of_any_content_are_read_or_ignored() {
        let good = Ready::here("[::1]:4242".parse().unwrap(), 7).to_line().unwrap();
        let (mut random, mut read) = (Random::new(32), 0);
        for number in 0..10_000 {
            let line = if number % 4 == 0 { random.bytes(300) } else { random.mutated(good.as_bytes()) };
            let line = String::from_utf8_lossy(&line);
            if let Some(ready) = Ready::from_line(&line) {
                read += 1;
                assert!(ready.cpu_model.len() < line.len() && ready.architecture.arch.len() < line.len());
            }
        }
        assert!(read > 500, "{read} read");
    }
}
