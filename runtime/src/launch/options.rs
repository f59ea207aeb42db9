//! How nodes are started, as whoever starts them says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// How nodes are started.
#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// The ssh program and its first arguments.
    pub ssh: Vec<String>,
    /// How long one node may be silent while it starts; while the executable is copied, how long nothing may arrive.
    pub start_deadline: Duration,
    /// How many are started at once.
    pub parallel: usize,
    /// Executables for other architectures, e.g. `aarch64-linux`.
    pub binaries: BTreeMap<String, PathBuf>,
    /// Who is told how far copies of the executable are.
    pub copies: Option<Sender<Copying>>,
    /// Who gets the lines of nodes' logs that are for files; without anybody they count as output.
    pub log: Option<Sender<LogLine>>,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            ssh: vec!["ssh".into()],
            start_deadline: Duration::from_secs(30),
            parallel: 8,
            binaries: BTreeMap::new(),
            copies: None,
            log: None,
        }
    }
}

/// How far the copy of the executable to a node's host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copying {
    /// The node's name.
    pub node: String,
    /// Bytes of the executable that are there.
    pub done_bytes: u64,
    /// Its length.
    pub total_bytes: u64,
}

/// A line of a node's log, without the mark before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The node's name.
    pub node: String,
    /// What it wrote.
    pub text: String,
}
