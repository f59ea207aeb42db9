//! Text to nodes, with one clear sentence and a line for everything that is wrong.

mod network;

use super::{ClusterConfig, ConfigError, LaunchMethod, NAME_MAX, NODES_MAX, NodeConfig, PES_MAX};
use crate::size::Size;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const TOP: [&str; 4] = ["node", "defaults", "binaries", "network"];
const KEYS: [&str; 14] = [
    "name",
    "host",
    "launch",
    "pes",
    "speed",
    "cpu_share",
    "user",
    "port",
    "key",
    "address",
    "workdir",
    "binary",
    "env",
    "memory",
];
const SPEED_MAX: f64 = 1e6;

type Key<'a> = (&'a Spanned<std::borrow::Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

/// Where errors are: the file and its text.
struct File<'a> {
    name: &'a str,
    text: &'a str,
}

impl File<'_> {
    fn error(&self, at: usize, sentence: impl Into<String>) -> ConfigError {
        let before = self.text.as_bytes().get(..at.min(self.text.len())).unwrap_or_default();
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        ConfigError::Line { file: self.name.into(), line, sentence: sentence.into() }
    }
}

pub(super) fn parse(text: &str, source: &str) -> Result<ClusterConfig, ConfigError> {
    let file = File { name: source, text };
    let table = DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        file.error(at, e.message().replace('\n', "; "))
    })?;
    let top = table.get_ref();
    for (key, _) in top {
        known(&file, key, &TOP, "the nodes file")?;
    }
    let mut defaults = NodeConfig::local("", 1);
    defaults.pes = None;
    let mut default_launch = None;
    if let Some(value) = top.get("defaults") {
        let Some(table) = value.get_ref().as_table() else {
            return Err(file.error(value.span().start, "`defaults` must be a table: write [defaults]"));
        };
        for entry in table {
            if entry.0.get_ref() == "name" || entry.0.get_ref() == "host" {
                return Err(file.error(entry.0.span().start, "`name` and `host` cannot have a default"));
            }
            set(&file, &mut defaults, &mut default_launch, "defaults", entry)?;
        }
    }
    let binaries = binaries(&file, top.get("binaries"))?;
    let network = network::network(&file, top.get("network"))?;
    let Some(list) = top.get("node") else {
        return Err(file.error(0, "there is no node: write a [[node]] table for each"));
    };
    let Some(array) = list.get_ref().as_array() else {
        return Err(file.error(list.span().start, "`node` must be a list of tables: write [[node]] for each"));
    };
    if array.is_empty() || array.len() > NODES_MAX {
        return Err(file.error(list.span().start, format!("there must be 1 to {NODES_MAX} nodes")));
    }
    let (mut nodes, mut names) = (Vec::new(), BTreeSet::new());
    for item in array.iter() {
        let node = node(&file, item, &defaults, default_launch)?;
        if !names.insert(node.name.clone()) {
            let at = item.span().start;
            return Err(file.error(at, format!("there are two nodes called {:?}; rename one", node.name)));
        }
        nodes.push(node);
    }
    Ok(ClusterConfig { nodes, binaries, network, source: source.into(), pe_parts: BTreeMap::new() })
}

fn node(
    file: &File<'_>,
    item: &Spanned<DeValue<'_>>,
    defaults: &NodeConfig,
    default_launch: Option<LaunchMethod>,
) -> Result<NodeConfig, ConfigError> {
    let at = item.span().start;
    let Some(table) = item.get_ref().as_table() else {
        return Err(file.error(at, "a node must be a table: write [[node]]"));
    };
    let name = match table.get("name") {
        Some(value) => value
            .get_ref()
            .as_str()
            .map(ToString::to_string)
            .ok_or_else(|| file.error(value.span().start, "`name` must be text in quotes"))?,
        None => {
            // A mistyped `name` is an unknown key, and that sentence tells how to mend it.
            table.iter().try_for_each(|entry| known(file, entry.0, &KEYS, "a node without a `name`"))?;
            return Err(file.error(at, "a node needs a `name`"));
        }
    };
    let is_name = !name.is_empty()
        && name.len() <= NAME_MAX
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if !is_name {
        let at = table.get("name").map_or(at, |v| v.span().start);
        let shown: String = name.chars().take(NAME_MAX).collect();
        let more = if shown.len() < name.len() { "…" } else { "" };
        let sentence = format!(
            "\"{}{more}\" is no node name: use 1 to {NAME_MAX} letters, digits, '.', '_', '-'",
            shown.escape_debug()
        );
        return Err(file.error(at, sentence));
    }
    let mut node = NodeConfig { name: name.clone(), host: String::new(), ..defaults.clone() };
    let mut launch = None;
    for entry in table {
        if entry.0.get_ref() != "name" {
            set(file, &mut node, &mut launch, &name, entry)?;
        }
    }
    let wants_ssh = !matches!(node.host.as_str(), "" | "localhost");
    let natural = if wants_ssh { LaunchMethod::Ssh } else { LaunchMethod::Local };
    node.launch = launch.or(default_launch).unwrap_or(natural);
    if node.host.is_empty() {
        if node.launch == LaunchMethod::Ssh {
            return Err(
                file.error(at, format!("node {name:?}: a node that is started by ssh needs a `host`"))
            );
        }
        node.host = "localhost".into();
    }
    let is_here = node.host == "localhost" || node.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if node.launch == LaunchMethod::Local && !is_here {
        let at = table.get("host").map_or(at, |v| v.span().start);
        let sentence = format!(
            "node {name:?}: a local node is on this machine, not on {:?}; leave out `host`, or set launch = \"ssh\"",
            node.host
        );
        return Err(file.error(at, sentence));
    }
    Ok(node)
}

/// Sets one key of a node.
fn set(
    file: &File<'_>,
    node: &mut NodeConfig,
    launch: &mut Option<LaunchMethod>,
    name: &str,
    (key, value): Key<'_>,
) -> Result<(), ConfigError> {
    let whose = if name == "defaults" { "[defaults]".to_string() } else { format!("node {name:?}") };
    known(file, key, &KEYS, &whose)?;
    let wrong = |what: &str| file.error(value.span().start, format!("{whose}: `{}` {what}", key.get_ref()));
    let text = || match value.get_ref().as_str() {
        Some(text) if !text.is_empty() && !text.contains(char::is_control) => Ok(text.to_string()),
        _ => Err(wrong("must be text in quotes, not empty and without control characters")),
    };
    match key.get_ref().as_ref() {
        "host" => {
            node.host = text()?;
            if node.host.starts_with('-') || node.host.contains(char::is_whitespace) {
                return Err(wrong("is no host name"));
            }
        }
        "launch" => {
            *launch = Some(match text()?.as_str() {
                "local" => LaunchMethod::Local,
                "ssh" => LaunchMethod::Ssh,
                _ => return Err(wrong("must be \"local\" or \"ssh\"")),
            });
        }
        "pes" => {
            let pes = integer(value).filter(|n| (1..=PES_MAX).contains(n));
            let pes = pes
                .ok_or_else(|| wrong("must be a whole number from 1 to 4096; leave it out for all cores"))?;
            node.pes = u32::try_from(pes).ok();
        }
        "speed" => {
            let speed = number(value).filter(|s| s.is_finite() && *s > 0.0 && *s <= SPEED_MAX);
            let range = format!("must be a number over 0, at most {SPEED_MAX}, such as 0.5");
            node.speed = Some(speed.ok_or_else(|| wrong(&range))?);
        }
        "cpu_share" => {
            let share = number(value).filter(|s| *s >= 0.01 && *s <= 1.0);
            node.cpu_share = Some(share.ok_or_else(|| wrong("must be a number from 0.01 to 1"))?);
        }
        "user" => {
            node.user = Some(text()?);
            if node.user.as_ref().is_some_and(|u| u.starts_with('-') || u.contains(char::is_whitespace)) {
                return Err(wrong("is no user name"));
            }
        }
        "port" => {
            let port = integer(value).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
            node.port = Some(port.ok_or_else(|| wrong("must be a whole number from 1 to 65535"))?);
        }
        "key" => node.key = Some(key_file(text()?).map_err(|what| wrong(&what))?),
        "workdir" => node.workdir = Some(text()?.into()),
        "binary" => node.binary = Some(text()?.into()),
        "address" => {
            let address =
                text()?.parse().ok().filter(|ip: &IpAddr| !ip.is_unspecified() && !ip.is_multicast());
            let address =
                address.ok_or_else(|| wrong("must be an IP address of the node, such as \"10.0.0.5\""))?;
            node.address = Some(address);
        }
        "memory" => {
            let bytes =
                value.get_ref().as_str().and_then(Size::parse).map(|size| size.0).filter(|b| *b >= 16 << 20);
            node.memory_bytes =
                Some(bytes.ok_or_else(|| wrong("must be a size of at least 16 MiB, such as \"8GiB\""))?);
        }
        "env" => environment(node, value)
            .ok_or_else(|| wrong("must be a table of texts: env = { NAME = \"value\" }"))?,
        _ => {}
    }
    Ok(())
}

/// The path of a key file, if it can be read where ssh will look for it; what depends on the connection, such as `%h`,
/// only ssh knows.
fn key_file(key: String) -> Result<PathBuf, String> {
    let path = match key.strip_prefix("~/").zip(std::env::var("HOME").ok()) {
        Some((rest, home)) => format!("{home}/{rest}"),
        None => key.clone(),
    };
    let is_for_ssh = key.contains('%') || path.starts_with('~');
    if is_for_ssh || std::fs::File::open(&path).is_ok() {
        return Ok(key.into());
    }
    Err(format!("names a file that cannot be read: {path}"))
}

fn environment(node: &mut NodeConfig, value: &Spanned<DeValue<'_>>) -> Option<()> {
    for (name, value) in value.get_ref().as_table()? {
        let name = name.get_ref().to_string();
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let value = value.get_ref().as_str().filter(|v| is_name && !v.contains('\0'))?;
        node.env.insert(name, value.to_string());
    }
    Some(())
}

fn binaries(
    file: &File<'_>,
    value: Option<&Spanned<DeValue<'_>>>,
) -> Result<BTreeMap<String, PathBuf>, ConfigError> {
    let Some(value) = value else { return Ok(BTreeMap::new()) };
    let wrong =
        |at| file.error(at, "`binaries` must be a table of paths: [binaries] aarch64-linux = \"path\"");
    let table = value.get_ref().as_table().ok_or_else(|| wrong(value.span().start))?;
    let mut all = BTreeMap::new();
    for (arch, path) in table {
        let path_text = path.get_ref().as_str().filter(|p| !p.is_empty());
        let path_text = path_text.ok_or_else(|| wrong(path.span().start))?;
        all.insert(arch.get_ref().to_string(), PathBuf::from(path_text));
    }
    Ok(all)
}

fn known(
    file: &File<'_>,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    all: &[&str],
    whose: &str,
) -> Result<(), ConfigError> {
    let name = key.get_ref().as_ref();
    if all.contains(&name) {
        return Ok(());
    }
    let nearest = all.iter().min_by_key(|k| distance(k, name)).filter(|k| distance(k, name) <= 3);
    let hint = match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("it knows {}", all.join(", ")),
    };
    Err(file.error(key.span().start, format!("{whose} has no key `{}`; {hint}", name.escape_debug())))
}

fn integer(value: &Spanned<DeValue<'_>>) -> Option<i64> {
    let integer = value.get_ref().as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn number(value: &Spanned<DeValue<'_>>) -> Option<f64> {
    match value.get_ref().as_float() {
        Some(float) => float.as_str().parse().ok(),
        None => integer(value).map(|n| n as f64),
    }
}

/// Edits that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(40).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
