//! The nodes file: which machines a run uses and how they are reached.

mod hosts;
mod network;
mod parse;

pub use network::{NetworkConfig, Transport};

use crate::ownership::{is_own, others_may_write};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What nodes that no file names are said to be of.
const BUILT_IN: &str = "built-in default";
/// More PEs than any machine has.
const PES_MAX: i64 = 4096;
const NODES_MAX: usize = 4095;
/// Characters of a node's name.
const NAME_MAX: usize = 64;

/// The nodes of a run, in order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterConfig {
    /// The nodes.
    pub nodes: Vec<NodeConfig>,
    /// Executables for other architectures, e.g. `aarch64-linux`.
    pub binaries: BTreeMap<String, PathBuf>,
    /// What nodes do on the network.
    pub network: NetworkConfig,
    /// Where this was read from, for people.
    pub source: String,
    /// Of nodes that have been given more PEs than they have themselves, by name: the part of one of their own that each is
    /// worth.
    #[serde(skip)]
    pub pe_parts: BTreeMap<String, f64>,
}

/// How a node's process is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchMethod {
    /// As a child of the launcher.
    Local,
    /// Through the system's `ssh`.
    Ssh,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeConfig {
    /// Its name, unique.
    pub name: String,
    /// Host as `ssh` knows it.
    pub host: String,
    /// How it is started.
    pub launch: LaunchMethod,
    /// PEs; all cores of the host if absent.
    pub pes: Option<u32>,
    /// Relative speed of a PE, for `--speed file`.
    pub speed: Option<f64>,
    /// PEs use at most this share of their cores, more than 0 to 1.
    pub cpu_share: Option<f64>,
    /// User for ssh.
    pub user: Option<String>,
    /// Port of sshd.
    pub port: Option<u16>,
    /// Key file for ssh.
    pub key: Option<PathBuf>,
    /// Where it listens and is reached by other nodes; if absent, the address that ssh arrived at, or of a local
    /// node the one that packets to the nodes of other hosts leave from.
    pub address: Option<IpAddr>,
    /// Directory to work in.
    pub workdir: Option<PathBuf>,
    /// The executable there; copied there if absent.
    pub binary: Option<PathBuf>,
    /// Environment of the process.
    pub env: BTreeMap<String, String>,
    /// The run ends when the process needs more memory than this.
    pub memory_bytes: Option<u64>,
}

/// What is wrong with a nodes file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It cannot be read.
    #[error("the nodes file {path:?} cannot be read: {source}; give its path with --nodes")]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another user may have put it there for whoever comes by.
    #[error(
        "{path} belongs to another user (uid {uid}), and others may write its folder: its `binary` would be run as you; if \
         you trust it, say --nodes {path}"
    )]
    Foreign {
        /// The path.
        path: String,
        /// Its owner.
        uid: u32,
    },
    /// A host file cannot be read.
    #[error("the host file {path:?} cannot be read: {source}; give its path with --hostfile")]
    Hostfile {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A word names no host.
    #[error("--hosts: {word:?}: {sentence}")]
    Hosts {
        /// The word.
        word: String,
        /// What is wrong and how to mend it.
        sentence: String,
    },
    /// A line is wrong.
    #[error("{file}:{line}: {sentence}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong and how to mend it.
        sentence: String,
    },
    /// A node was asked for that is not there.
    #[error("there is no node {name:?} in {file}; it has {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The file.
        file: String,
        /// What there is.
        known: String,
    },
}

impl NodeConfig {
    /// A local node with defaults.
    #[must_use]
    pub fn local(name: &str, pes: u32) -> Self {
        Self {
            name: name.into(),
            host: "localhost".into(),
            launch: LaunchMethod::Local,
            pes: Some(pes),
            speed: None,
            cpu_share: None,
            user: None,
            port: None,
            key: None,
            address: None,
            workdir: None,
            binary: None,
            env: BTreeMap::new(),
            memory_bytes: None,
        }
    }
}

impl ClusterConfig {
    /// Reads `path`; without one the first of `usual` that there is, and if there is none, gives the built-in local nodes.
    ///
    /// # Errors
    /// If the file cannot be read or a line of it is wrong, or if nobody named it and another user may have put it there.
    pub fn load(path: Option<&Path>, usual: &[PathBuf]) -> Result<Self, ConfigError> {
        let is_named = path.is_some();
        let Some(path) = path.or_else(|| usual.iter().map(PathBuf::as_path).find(|path| path.exists()))
        else {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            return Ok(Self::embedded(u32::try_from(cores).unwrap_or(u32::MAX)));
        };
        let read = || {
            let mut file = File::open(path)?;
            // Of the file that is read, and not of one that has its name a moment later.
            let uid = if is_named { None } else { foreign_owner(path, &file)? };
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Ok((uid, text))
        };
        let (uid, text) = read().map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
        match uid {
            Some(uid) => Err(ConfigError::Foreign { path: path.display().to_string(), uid }),
            None => Self::parse(&text, &path.display().to_string()),
        }
    }

    /// Understands the text of a nodes file; `source` names it in errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(text: &str, source: &str) -> Result<Self, ConfigError> {
        parse::parse(text, source)
    }

    /// Three local nodes of unequal size, with about as many PEs as there are cores: the third uses only
    /// half of its core, as a node would whose owner works on it.
    #[must_use]
    pub fn embedded(cores: u32) -> Self {
        let small = NodeConfig { cpu_share: Some(0.5), ..NodeConfig::local("small", 1) };
        let rest = cores.saturating_sub(1).max(3);
        let medium = (rest / 3).max(1);
        let nodes =
            vec![NodeConfig::local("large", rest - medium), NodeConfig::local("medium", medium), small];
        Self {
            nodes,
            binaries: BTreeMap::new(),
            network: NetworkConfig::default(),
            source: BUILT_IN.into(),
            pe_parts: BTreeMap::new(),
        }
    }

    /// Only the named nodes, in the file's order.
    ///
    /// # Errors
    /// If a name is not in the file.
    pub fn select(mut self, names: &[String]) -> Result<Self, ConfigError> {
        if let Some(name) = names.iter().find(|name| self.nodes.iter().all(|n| n.name != **name)) {
            let known: Vec<&str> = self.nodes.iter().map(|n| n.name.as_str()).collect();
            return Err(ConfigError::Unknown {
                name: name.clone(),
                file: self.source.clone(),
                known: known.join(", "),
            });
        }
        self.nodes.retain(|n| names.contains(&n.name));
        Ok(self)
    }

    /// Whether these are nodes of [`embedded`](Self::embedded), and not those of a file.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.source == BUILT_IN
    }

    /// Whether every node is on this machine.
    #[must_use]
    pub fn is_all_local(&self) -> bool {
        self.nodes.iter().all(|n| n.launch == LaunchMethod::Local)
    }

    /// The nodes as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = format!("nodes of {}\n", self.source);
        let _ = writeln!(
            out,
            "{:<12} {:<16} {:<6} {:>5} {:>6} {:>9} {:>9} {:<8} address",
            "name", "host", "launch", "PEs", "speed", "cpu share", "memory", "binary"
        );
        for node in &self.nodes {
            let automatic = if node.launch == LaunchMethod::Local { "this one" } else { "staged" };
            let or = |text: Option<String>, otherwise: &str| text.unwrap_or_else(|| otherwise.into());
            let _ = writeln!(
                out,
                "{:<12} {:<16} {:<6} {:>5} {:>6} {:>9} {:>9} {:<8} {}",
                node.name,
                node.host,
                if node.launch == LaunchMethod::Local { "local" } else { "ssh" },
                or(node.pes.map(|n| n.to_string()), "all"),
                or(node.speed.map(|s| s.to_string()), "-"),
                or(node.cpu_share.map(|s| s.to_string()), "1"),
                or(node.memory_bytes.map(|m| format!("{} MiB", m >> 20)), "-"),
                or(node.binary.as_ref().map(|b| b.display().to_string()), automatic),
                or(node.address.map(|a| a.to_string()), "automatic"),
            );
        }
        if self.network != NetworkConfig::default() {
            let _ = writeln!(out, "network: {}", self.network);
        }
        out
    }
}

/// The owner of an opened file, or of the link to it, if that is another user who may have put it there.
fn foreign_owner(path: &Path, file: &File) -> io::Result<Option<u32>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !others_may_write(&fs::metadata(folder)?) {
        return Ok(None);
    }
    let named = [file.metadata()?, fs::symlink_metadata(path)?];
    Ok(named.iter().find(|data| !is_own(data)).map(MetadataExt::uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs root, which can make another user's file; `tests/users` of the workspace insists on it in CI.
    #[test]
    fn a_file_of_another_user_is_foreign_where_others_may_write() {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes.toml");
        fs::write(&path, "").unwrap();
        let owner = |mode: u32| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            foreign_owner(&path, &File::open(&path).unwrap()).unwrap()
        };
        assert_eq!(owner(0o777), None, "it is ours");
        chown(&path, Some(61_234), None).unwrap();
        assert_eq!((owner(0o755), owner(0o1777), owner(0o775)), (None, Some(61_234), Some(61_234)));
        chown(folder.path(), Some(61_234), None).unwrap();
        assert_eq!(owner(0o755), Some(61_234), "and the folder is theirs");
    }

    #[test]
    fn the_default_has_three_unequal_nodes_on_any_machine() {
        for cores in [1, 2, 3, 4, 5, 8, 64, 1000] {
            let config = ClusterConfig::embedded(cores);
            let size = |n: &NodeConfig| f64::from(n.pes.unwrap()) * n.cpu_share.unwrap_or(1.0);
            let sizes: Vec<f64> = config.nodes.iter().map(size).collect();
            assert!(sizes.len() >= 3 && sizes.windows(2).all(|w| w[0] > w[1]), "{cores}: {sizes:?}");
            let pes: u32 = config.nodes.iter().filter_map(|n| n.pes).sum();
            assert!(pes <= cores.max(4), "{cores} cores, {pes} PEs");
        }
    }

    #[test]
    fn a_selection_keeps_the_order_and_names_what_is_missing() {
        let config = ClusterConfig::embedded(4);
        let names = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let some = config.clone().select(&names(&["small", "large"])).unwrap();
        assert_eq!(some.nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["large", "small"]);
        let error = config.select(&names(&["huge"])).unwrap_err().to_string();
        assert!(error.contains("\"huge\"") && error.contains("large, medium, small"), "{error}");
    }
}
