//! Nodes that are named without a nodes file: on a command line, or in the host files of other systems.

use super::{ClusterConfig, ConfigError, LaunchMethod, NetworkConfig, NodeConfig};
use super::{NAME_MAX, NODES_MAX, PES_MAX};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What a line of a host file says.
#[derive(Clone, Debug, Default, PartialEq)]
struct Named {
    host: String,
    user: Option<String>,
    pes: Option<u32>,
    speed: Option<f64>,
}

/// Words that host files may have and that say nothing to us: limits, network interfaces, bindings, other shells.
const PASSED_OVER: [&str; 8] =
    ["max_slots", "max-slots", "ifname", "binding", "++shell", "++pathfix", "++setup", "++home"];

impl ClusterConfig {
    /// Nodes from words such as `a`, `b:2` (with two PEs) and `ann@c:4`. `localhost` and `own`, the name of this machine,
    /// are local nodes, others are reached by ssh. A host that is named several times is one node with as many PEs; one that
    /// is named once has a PE for each core unless a number says otherwise.
    ///
    /// # Errors
    /// The first word that is no host.
    pub fn of_hosts(words: &[String], own: &str) -> Result<Self, ConfigError> {
        let named = words.iter().map(|word| {
            let wrong = |sentence| ConfigError::Hosts { word: word.clone(), sentence };
            if word.trim().contains(char::is_whitespace) {
                return Err(wrong("it has a blank inside; write commas between hosts".into()));
            }
            host(word.trim()).map_err(wrong)
        });
        let nodes = nodes(named.collect::<Result<_, _>>()?, own);
        Self::of_nodes(nodes, "--hosts").ok_or_else(|| ConfigError::Hosts {
            word: words.join(","),
            sentence: format!("there must be 1 to {NODES_MAX} hosts"),
        })
    }

    /// Nodes from a host file, one host in each line, as Open MPI (`a slots=2`), MPICH (`a:2`), Charm++ (`host a ++cpus 2`)
    /// and batch systems (`a` as often as it has PEs) write them.
    ///
    /// # Errors
    /// If it cannot be read, or the first line that is none of these.
    pub fn of_hostfile(path: &Path, own: &str) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Hostfile { path: path.to_path_buf(), source })?;
        Self::parse_hostfile(&text, &path.display().to_string(), own)
    }

    /// Understands the text of a host file; `source` names it in errors.
    ///
    /// # Errors
    /// The first line that says no host.
    pub fn parse_hostfile(text: &str, source: &str, own: &str) -> Result<Self, ConfigError> {
        let wrong = |line, sentence| ConfigError::Line { file: source.into(), line, sentence };
        let mut named = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            named.extend(of_line(&words).map_err(|sentence| wrong(at + 1, sentence))?);
        }
        Self::of_nodes(nodes(named, own), source)
            .ok_or_else(|| wrong(1, format!("there must be 1 to {NODES_MAX} hosts, one in each line")))
    }

    fn of_nodes(nodes: Vec<NodeConfig>, source: &str) -> Option<Self> {
        (1..=NODES_MAX).contains(&nodes.len()).then(|| Self {
            nodes,
            binaries: BTreeMap::new(),
            network: NetworkConfig::default(),
            source: source.into(),
        })
    }
}

/// `host`, `user@host`, either with `:PES`; an address of several colons stands in brackets.
fn host(word: &str) -> Result<Named, String> {
    let (user, rest) = match word.split_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, word),
    };
    let (host, number) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => (address, Some(rest.strip_prefix(':').ok_or("write [ADDRESS]:PES")?)),
        None => match rest.split_once(':') {
            Some((_, more)) if more.contains(':') => return Err("write an address as [ADDRESS]:PES".into()),
            Some((host, number)) => (host, Some(number)),
            None => (rest, None),
        },
    };
    let is_word = |text: &str| {
        !text.is_empty()
            && !text.starts_with('-')
            && !text.contains(|c: char| c.is_control() || "=/".contains(c))
    };
    if !is_word(host) || user.is_some_and(|user| !is_word(user)) {
        return Err("it is no host name; write HOST, HOST:PES or USER@HOST:PES".into());
    }
    let pes = number.map(pes).transpose()?;
    Ok(Named { host: host.into(), user: user.map(Into::into), pes, speed: None })
}

fn pes(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| (1..=PES_MAX).contains(&i64::from(*n)));
    number.ok_or_else(|| format!("{text:?} is no number of PEs; give 1 to {PES_MAX}"))
}

/// What a line says; nothing if it is empty or begins a group of Charm++'s.
fn of_line(words: &[&str]) -> Result<Option<Named>, String> {
    let (first, rest) = match words {
        [] | ["group", ..] => return Ok(None),
        ["host", name, rest @ ..] => (name, rest),
        [name, rest @ ..] => (name, rest),
    };
    let mut named = host(first)?;
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, value),
            None if word.starts_with("++") => (*word, rest.next().copied().unwrap_or_default()),
            None => (*word, ""),
        };
        match key {
            "slots" | "++cpus" => named.pes = Some(pes(value)?),
            "user" | "++user" => named.user = host(value)?.host.into(),
            "++speed" => {
                let speed = value.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
                named.speed = Some(speed.ok_or_else(|| format!("++speed {value:?} is no number over 0"))?);
            }
            _ if PASSED_OVER.contains(&key) => {}
            _ => {
                return Err(format!("{word:?} is not known here; write HOST, HOST:PES or HOST slots=PES"));
            }
        }
    }
    Ok(Some(named))
}

/// One node for each host and user, in the order in which they are named first.
fn nodes(named: Vec<Named>, own: &str) -> Vec<NodeConfig> {
    let mut nodes: Vec<(NodeConfig, u32)> = Vec::new();
    for Named { host: name, user, pes, speed } in named {
        let is_local = user.is_none() && (name == "localhost" || name == own);
        let host = if is_local { "localhost".into() } else { name.clone() };
        if let Some((node, times)) = nodes.iter_mut().find(|(node, _)| node.host == host && node.user == user)
        {
            // The first one may have named no number, and counts as one then.
            let sum = node.pes.unwrap_or(*times) + pes.unwrap_or(1);
            (node.pes, *times) = (Some(sum.min(PES_MAX as u32)), *times + 1);
            continue;
        }
        let mut node = NodeConfig::local(&name_of(&name, &nodes), 1);
        node.launch = if is_local { LaunchMethod::Local } else { LaunchMethod::Ssh };
        (node.host, node.user, node.pes, node.speed) = (host, user, pes, speed);
        nodes.push((node, 1));
    }
    nodes.into_iter().map(|(node, _)| node).collect()
}

/// A name for a node that none has yet: its host's, without what names may not have.
fn name_of(host: &str, nodes: &[(NodeConfig, u32)]) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = host.chars().map(letter).take(NAME_MAX - 8).collect();
    let is_free = |name: &String| nodes.iter().all(|(node, _)| node.name != *name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(config: &ClusterConfig) -> Vec<String> {
        let one = |node: &NodeConfig| {
            let how = if node.launch == LaunchMethod::Local { "local" } else { "ssh" };
            let user = node.user.as_ref().map_or(String::new(), |user| format!("{user}@"));
            format!("{} {how} {user}{} {:?}", node.name, node.host, node.pes)
        };
        config.nodes.iter().map(one).collect()
    }

    fn of_words(words: &str) -> Result<ClusterConfig, String> {
        let words: Vec<String> = words.split(',').map(Into::into).collect();
        ClusterConfig::of_hosts(&words, "desk").map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_are_local_here_and_reached_by_ssh_elsewhere() {
        let config = of_words("a,b:2,ann@c.example.org:4,desk:3,[fe80::1]:2,ann@localhost").unwrap();
        assert_eq!(
            shown(&config),
            [
                "a ssh a None",
                "b ssh b Some(2)",
                "c.example.org ssh ann@c.example.org Some(4)",
                "desk local localhost Some(3)",
                "fe80--1 ssh fe80::1 Some(2)",
                "localhost ssh ann@localhost None"
            ]
        );
    }

    #[test]
    fn a_host_has_as_many_pes_as_it_is_named() {
        assert_eq!(shown(&of_words("a,b,a,a").unwrap()), ["a ssh a Some(3)", "b ssh b None"]);
        assert_eq!(shown(&of_words("a:2, a,a:4 ").unwrap()), ["a ssh a Some(7)"]);
        assert_eq!(shown(&of_words("a,ann@a").unwrap()), ["a ssh a None", "a-2 ssh ann@a None"]);
        assert_eq!(shown(&of_words("localhost:2,desk").unwrap()), ["localhost local localhost Some(3)"]);
    }

    #[test]
    fn what_is_no_host_is_refused_in_a_sentence() {
        for (words, sentence) in [
            ("a,b:x", "--hosts: \"b:x\": \"x\" is no number of PEs; give 1 to 4096"),
            ("a b", "--hosts: \"a b\": it has a blank inside; write commas between hosts"),
            ("a:0", "--hosts: \"a:0\": \"0\" is no number of PEs; give 1 to 4096"),
            ("", "--hosts: \"\": it is no host name; write HOST, HOST:PES or USER@HOST:PES"),
            ("-oProxyCommand=x", "it is no host name"),
            ("ann@", "it is no host name"),
            ("fe80::1", "write an address as [ADDRESS]:PES"),
        ] {
            let said = of_words(words).unwrap_err();
            assert!(said.contains(sentence), "{said}");
        }
    }

    #[test]
    fn the_host_files_of_others_are_understood() {
        let of =
            |text: &str| ClusterConfig::parse_hostfile(text, "hosts", "desk").map(|config| shown(&config));
        let open_mpi = "# my cluster\na slots=2 max_slots=4\n\nb\n";
        assert_eq!(of(open_mpi).unwrap(), ["a ssh a Some(2)", "b ssh b None"]);
        let mpich = "a:2 # two\nb:4 binding=user:0,1 user=ann\n";
        assert_eq!(of(mpich).unwrap(), ["a ssh a Some(2)", "b ssh ann@b Some(4)"]);
        let charm = "group main ++shell ssh\n  host a ++cpus 4 ++speed 0.5\n  host desk\n";
        assert_eq!(of(charm).unwrap(), ["a ssh a Some(4)", "desk local localhost None"]);
        assert_eq!(of("a\na\nb\nb\n").unwrap(), ["a ssh a Some(2)", "b ssh b Some(2)"]);
        for (text, sentence) in [
            ("a\nb slots=many\n", "hosts:2: \"many\" is no number of PEs"),
            ("a pes=4\n", "hosts:1: \"pes=4\" is not known here; write HOST, HOST:PES or HOST slots=PES"),
            ("# nothing\n", "hosts:1: there must be 1 to 4095 hosts, one in each line"),
            ("a ++cpus\n", "is no number of PEs"),
        ] {
            let said = of(text).unwrap_err().to_string();
            assert!(said.contains(sentence), "{said}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_nodes_of_different_names_or_a_sentence(text in "[ab@:=+#\\[\\] \nhostgrup1-9é-]{0,60}") {
            if let Ok(config) = ClusterConfig::parse_hostfile(&text, "hosts", "desk") {
                let names: std::collections::BTreeSet<_> = config.nodes.iter().map(|node| &node.name).collect();
                prop_assert_eq!(names.len(), config.nodes.len());
                prop_assert!(config.nodes.iter().all(|node| node.pes.is_none_or(|pes| pes > 0) && !node.host.starts_with('-')));
            }
        }
    }
}
