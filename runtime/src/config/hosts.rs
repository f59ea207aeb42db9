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

/// Words that host files may have and that say nothing to us: limits, network interfaces, bindings.
const PASSED_OVER: [&str; 4] = ["max_slots", "max-slots", "ifname", "binding"];
/// Qualifiers of nodelists that say nothing to us: how Charm++ starts and finds its programs.
const QUALIFIERS_PASSED_OVER: [&str; 8] =
    ["passwd", "shell", "debugger", "xterm", "pathfix", "ext", "setup", "home"];
/// The group of a nodelist whose hosts are used, as by Charm++ where nobody names another.
const GROUP: &str = "main";

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

    /// Nodes from a host file, one host in each line, as Open MPI (`a slots=2`), MPICH (`a:2`) and batch systems (`a` as
    /// often as it has PEs) write them, or from a nodelist of Charm++ (`host a ++cpus 2`), whose group `main` is used.
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
        let said = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let lines: Vec<Vec<&str>> = said.map(|line| line.split_whitespace().collect()).collect();
        let mut nodelist = lines.iter().any(|words| begins_nodelist(words)).then(Nodelist::default);
        let mut named = Vec::new();
        for (at, words) in lines.iter().enumerate() {
            let host = match &mut nodelist {
                Some(nodelist) => nodelist.read(words),
                None => of_line(words),
            };
            named.extend(host.map_err(|sentence| wrong(at + 1, sentence))?);
        }
        let place = if nodelist.is_some() { "in its group `main`" } else { "one in each line" };
        Self::of_nodes(nodes(named, own), source)
            .ok_or_else(|| wrong(1, format!("there must be 1 to {NODES_MAX} hosts, {place}")))
    }

    fn of_nodes(nodes: Vec<NodeConfig>, source: &str) -> Option<Self> {
        (1..=NODES_MAX).contains(&nodes.len()).then(|| Self {
            nodes,
            binaries: BTreeMap::new(),
            network: NetworkConfig::default(),
            source: source.into(),
            pe_parts: BTreeMap::new(),
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
    if !is_word(host) || user.is_some_and(|user| !is_word(user)) {
        return Err("it is no host name; write HOST, HOST:PES or USER@HOST:PES".into());
    }
    let pes = number.map(pes).transpose()?;
    Ok(Named { host: host.into(), user: user.map(Into::into), pes, speed: None })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.contains(|c: char| c.is_control() || "=/".contains(c))
}

fn pes(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| (1..=PES_MAX).contains(&i64::from(*n)));
    number.ok_or_else(|| format!("{text:?} is no number of PEs; give 1 to {PES_MAX}"))
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| format!("{text:?} is no speed; give a number over 0"))
}

fn user(text: &str) -> Result<String, String> {
    let user = Some(text).filter(|text| is_word(text) && !text.contains(['@', ':']));
    user.map(Into::into).ok_or_else(|| format!("{text:?} is no name of a user"))
}

/// What a line says that is a host and what holds for it; nothing if it is empty.
fn of_line(words: &[&str]) -> Result<Option<Named>, String> {
    let [first, rest @ ..] = words else { return Ok(None) };
    let mut named = host(first)?;
    for word in rest {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "slots" => named.pes = Some(pes(value)?),
            "user" => named.user = Some(user(value)?),
            _ if PASSED_OVER.contains(&key) => {}
            _ => {
                return Err(format!("{word:?} is not known here; write HOST, HOST:PES or HOST slots=PES"));
            }
        }
    }
    Ok(Some(named))
}

/// Whether a line is one that only nodelists of Charm++ have.
fn begins_nodelist(words: &[&str]) -> bool {
    matches!(words, ["group" | "host", name, ..] if !name.contains('='))
}

/// A nodelist of Charm++, line by line: hosts in groups, and qualifiers that hold for one host, or for all that follow in
/// their group.
struct Nodelist {
    /// Whether hosts that follow are in the group that is used.
    is_used: bool,
    /// What holds for them.
    usual: Named,
}

impl Default for Nodelist {
    /// Hosts before the first group are in the one that is used.
    fn default() -> Self {
        Self { is_used: true, usual: Named::default() }
    }
}

impl Nodelist {
    /// The host of a line, if it has one that is used.
    fn read(&mut self, words: &[&str]) -> Result<Option<Named>, String> {
        match words {
            [] => Ok(None),
            ["group", name, qualifiers @ ..] => {
                *self = Self { is_used: *name == GROUP, usual: Named::default() };
                qualify(&mut self.usual, qualifiers).map(|()| None)
            }
            ["host", name, qualifiers @ ..] => {
                let Named { host, user, pes, .. } = host(name)?;
                let usual = self.usual.clone();
                let mut named = Named { host, user: user.or(usual.user), pes: pes.or(usual.pes), ..usual };
                qualify(&mut named, qualifiers)?;
                Ok(self.is_used.then_some(named))
            }
            [name, values @ ..] => set(&mut self.usual, name, values).map(|()| None),
        }
    }
}

/// Takes qualifiers that stand in a line with a host or group: `++cpus 4`, with all words up to the next one.
fn qualify(named: &mut Named, mut words: &[&str]) -> Result<(), String> {
    while let [word, rest @ ..] = words {
        let Some(name) = word.strip_prefix("++") else {
            return Err(format!("{word:?} is not known here; qualifiers begin with ++, such as ++cpus 4"));
        };
        let count = rest.iter().take_while(|word| !word.starts_with("++")).count();
        let (values, rest) = rest.split_at(count);
        set(named, name, values)?;
        words = rest;
    }
    Ok(())
}

/// Takes one qualifier of a nodelist; a star stands for what holds without it.
fn set(named: &mut Named, name: &str, values: &[&str]) -> Result<(), String> {
    let value = || match values {
        ["*"] => Ok(None),
        [value] => Ok(Some(*value)),
        _ => Err(format!("{name:?} has one word behind it")),
    };
    match name {
        "login" => named.user = value()?.map(user).transpose()?,
        "cpus" => named.pes = value()?.map(pes).transpose()?,
        "speed" => named.speed = value()?.map(speed).transpose()?,
        _ if QUALIFIERS_PASSED_OVER.contains(&name) => {}
        _ => return Err(format!("{name:?} is not known here; write host HOST ++cpus PES")),
    }
    Ok(())
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
        assert_eq!(of("a\na\nb\nb\n").unwrap(), ["a ssh a Some(2)", "b ssh b Some(2)"]);
        for (text, sentence) in [
            ("a\nb slots=many\n", "hosts:2: \"many\" is no number of PEs"),
            ("a pes=4\n", "hosts:1: \"pes=4\" is not known here; write HOST, HOST:PES or HOST slots=PES"),
            ("# nothing\n", "hosts:1: there must be 1 to 4095 hosts, one in each line"),
            ("a user=\n", "hosts:1: \"\" is no name of a user"),
        ] {
            let said = of(text).unwrap_err().to_string();
            assert!(said.contains(sentence), "{said}");
        }
    }

    #[test]
    fn a_nodelist_of_charm_has_groups_and_qualifiers() {
        let of =
            |text: &str| ClusterConfig::parse_hostfile(text, "hosts", "desk").map(|config| shown(&config));
        let charm = "group main ++shell ssh\n  host a ++cpus 4 ++speed 0.5\n  host desk\n";
        assert_eq!(of(charm).unwrap(), ["a ssh a Some(4)", "desk local localhost None"]);
        let groups = "host z\ngroup sun ++cpus 1\n host s\ngroup main ++cpus 4 ++login ann\n host a\n host b ++cpus 2\n\
                      group sol\n host t ++cpus 8\n";
        assert_eq!(of(groups).unwrap(), ["z ssh z None", "a ssh ann@a Some(4)", "b ssh ann@b Some(2)"]);
        let lines = "cpus 2\nlogin ann\nspeed 2\npathfix /a /b\nsetup cd /tmp ; ulimit -c 0\nhost a\ncpus *\n\
                     host b ++login * ++pathfix /a /b ++cpus 3 ++shell ssh -x ++ext .exe\nhost c\n";
        assert_eq!(of(lines).unwrap(), ["a ssh ann@a Some(2)", "b ssh b Some(3)", "c ssh ann@c None"]);
        let speeds = ClusterConfig::parse_hostfile("host a\nspeed 0.5\nhost b\n", "hosts", "desk").unwrap();
        assert_eq!(speeds.nodes.iter().map(|node| node.speed).collect::<Vec<_>>(), [None, Some(0.5)]);
        // Hosts may have the names of Charm++'s words.
        let plain = "host slots=2\ngroup\nlogin\n";
        let named = ["host ssh host Some(2)", "group ssh group None", "login ssh login None"];
        assert_eq!(of(plain).unwrap(), named);
        for (text, sentence) in [
            ("group sun\nhost a\n", "hosts:1: there must be 1 to 4095 hosts, in its group `main`"),
            (
                "host a cpus 1\n",
                "hosts:1: \"cpus\" is not known here; qualifiers begin with ++, such as ++cpus 4",
            ),
            ("host a\nb\n", "hosts:2: \"b\" is not known here; write host HOST ++cpus PES"),
            ("host a ++cpus\n", "hosts:1: \"cpus\" has one word behind it"),
            ("host a ++cpus 4 5\n", "hosts:1: \"cpus\" has one word behind it"),
            ("host a ++cpus x\n", "hosts:1: \"x\" is no number of PEs"),
            ("group main ++speed 0\nhost a\n", "hosts:1: \"0\" is no speed; give a number over 0"),
            ("host a ++login -x\n", "hosts:1: \"-x\" is no name of a user"),
        ] {
            let said = of(text).unwrap_err().to_string();
            assert!(said.contains(sentence), "{said}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_nodes_of_different_names_or_a_sentence(text in "(host |group |group main |\\+\\+cpus |[ab@:=+*#\\[\\] \nhostgrup1-9é-]){0,60}") {
            if let Ok(config) = ClusterConfig::parse_hostfile(&text, "hosts", "desk") {
                let names: std::collections::BTreeSet<_> = config.nodes.iter().map(|node| &node.name).collect();
                prop_assert_eq!(names.len(), config.nodes.len());
                prop_assert!(config.nodes.iter().all(|node| node.pes.is_none_or(|pes| pes > 0) && !node.host.starts_with('-')));
            }
        }
    }
}
