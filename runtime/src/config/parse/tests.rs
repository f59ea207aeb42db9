//! What is understood, and what is said about what is not.

use super::*;
use crate::config::NetworkConfig;
use crate::transport::quic::Congestion;

const GOOD: &str = r#"
[defaults]
user = "ann"
memory = "8GiB"

[[node]]
name = "fast"
host = "fast.example"
pes = 16
env = { RUST_LOG = "debug" }

[[node]]
name = "here"
speed = 0.5
cpu_share = 0.5
memory = "512 MB"
address = "127.0.0.1"

[binaries]
aarch64-linux = "arm/metachare"
"#;

#[test]
fn a_file_is_understood() {
    let config = ClusterConfig::parse(GOOD, "nodes.toml").unwrap();
    let [fast, here] = &config.nodes[..] else { panic!("two nodes") };
    assert_eq!((fast.launch, fast.pes, fast.user.as_deref()), (LaunchMethod::Ssh, Some(16), Some("ann")));
    assert_eq!(fast.memory_bytes, Some(8 << 30));
    assert_eq!(fast.env["RUST_LOG"], "debug");
    assert_eq!((here.launch, here.pes, here.host.as_str()), (LaunchMethod::Local, None, "localhost"));
    assert_eq!((here.speed, here.cpu_share, here.memory_bytes), (Some(0.5), Some(0.5), Some(512_000_000)));
    assert_eq!(config.binaries["aarch64-linux"], PathBuf::from("arm/metachare"));
    assert!(config.table().contains("fast.example"));
}

#[test]
fn every_mistake_has_its_line_and_a_mend() {
    let cases = [
        ("", "1: there is no node"),
        ("[[node]]\nname = \"a\"\npe = 3", "3: node \"a\" has no key `pe`; did you mean `pes`?"),
        ("nodes = 3", "1: the nodes file has no key `nodes`; did you mean `node`?"),
        ("[[node]]\nname = \"a\"\n\n[[node]]\nname = \"a\"", "4: there are two nodes called \"a\""),
        ("[[node]]\nhost = \"a\"", "1: a node needs a `name`"),
        (
            "[[node]]\npes = 2\nnmae = \"a\"",
            "3: a node without a `name` has no key `nmae`; did you mean `name`?",
        ),
        ("[[node]]\nname = \"a b\"", "2: \"a b\" is no node name"),
        ("[[node]]\nname = \"a\"\npes = 0", "3: node \"a\": `pes` must be a whole number from 1"),
        ("[[node]]\nname = \"a\"\npes = \"4\"", "3: node \"a\": `pes` must be"),
        ("[[node]]\nname = \"a\"\nspeed = nan", "3: node \"a\": `speed` must be a number over 0"),
        ("[[node]]\nname = \"a\"\nspeed = -1", "`speed` must be"),
        ("[[node]]\nname = \"a\"\nspeed = 0", "`speed` must be"),
        (
            "[[node]]\nname = \"a\"\naddress = \"0.0.0.0\"",
            "3: node \"a\": `address` must be an IP address of the node",
        ),
        ("[[node]]\nname = \"a\"\naddress = \"::\"", "`address` must be"),
        ("[[node]]\nname = \"a\"\nspeed = 1e308", "`speed` must be a number over 0, at most 1000000"),
        (
            "[[node]]\nname = \"a\"\nhost = \"b\"\nlaunch = \"local\"",
            "3: node \"a\": a local node is on this machine",
        ),
        (
            "[defaults]\nlaunch = \"local\"\n[[node]]\nname = \"a\"\nhost = \"10.0.0.5\"",
            "5: node \"a\": a local node",
        ),
        ("[[node]]\nname = \"a\"\ncpu_share = 1.5", "`cpu_share` must be"),
        ("[[node]]\nname = \"a\"\nport = 70000", "`port` must be"),
        (
            "[[node]]\nname = \"a\"\nhost = \"b\"\nkey = \"/no/such/key\"",
            "4: node \"a\": `key` names a file that cannot be read: /no/such/key",
        ),
        (
            "[[node]]\nname = \"a\"\nhost = \"b\\u001b[31m\"",
            "`host` must be text in quotes, not empty and without",
        ),
        ("[[node]]\nname = \"a\"\n\"key\\u001b[31m\" = 1", "has no key `key\\u{1b}[31m`; it knows name"),
        ("[[node]]\nname = \"a\"\nmemory = \"lots\"", "`memory` must be a size"),
        ("[[node]]\nname = \"a\"\nmemory = 5", "`memory` must be a size"),
        ("[[node]]\nname = \"a\"\naddress = \"here\"", "`address` must be an IP address"),
        ("[[node]]\nname = \"a\"\nlaunch = \"rsh\"", "`launch` must be \"local\" or \"ssh\""),
        ("[[node]]\nname = \"a\"\nlaunch = \"ssh\"", "needs a `host`"),
        ("[[node]]\nname = \"a\"\nhost = \"-oProxyCommand=x\"", "`host` is no host name"),
        ("[[node]]\nname = \"a\"\nenv = { A = 1 }", "`env` must be a table of texts"),
        ("[[node]]\nname = \"a\"\nname = \"b\"", "3: "),
        ("[defaults]\nname = \"a\"\n[[node]]\nname = \"b\"", "2: `name` and `host` cannot have a default"),
        ("[[node]\n", "1: "),
    ];
    for (text, expected) in cases {
        let error = ClusterConfig::parse(text, "nodes.toml").unwrap_err().to_string();
        assert!(error.starts_with("nodes.toml:") && error.contains(expected), "{text:?} gave {error:?}");
        assert!(!error.contains('\n'), "one sentence: {error}");
    }
}

#[test]
fn a_name_that_is_too_long_is_cut_and_the_limit_is_said() {
    let named = |name: &str| ClusterConfig::parse(&format!("[[node]]\nname = \"{name}\""), "nodes.toml");
    assert!(named(&"n".repeat(64)).is_ok());
    let error = named(&"n".repeat(300)).unwrap_err().to_string();
    assert!(error.contains("n…\" is no node name: use 1 to 64 letters") && error.len() < 200, "{error}");
}

#[test]
fn the_loopback_address_is_this_machine() {
    let text = "[[node]]\nname = \"a\"\nhost = \"127.0.0.1\"\nlaunch = \"local\"";
    assert_eq!(ClusterConfig::parse(text, "nodes.toml").unwrap().nodes[0].launch, LaunchMethod::Local);
}

#[test]
fn the_table_says_of_each_node_which_executable_it_runs() {
    let text = "[[node]]\nname = \"here\"\n[[node]]\nname = \"there\"\nhost = \"there\"\n\
                [[node]]\nname = \"own\"\nbinary = \"/opt/p\"";
    let table = ClusterConfig::parse(text, "nodes.toml").unwrap().table();
    let says = |name: &str, what: &str| table.lines().any(|l| l.starts_with(name) && l.contains(what));
    assert!(says("here", " this one "), "{table}");
    assert!(says("there", " staged ") && says("own", " /opt/p "), "{table}");
}

#[test]
fn mutilated_files_never_panic() {
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..10_000 {
        let mut bytes = GOOD.as_bytes().to_vec();
        for _ in 0..=random(6) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = u8::try_from(random(256)).unwrap(),
                1 => drop(bytes.drain(at..(at + random(20)).min(bytes.len()))),
                _ => bytes.insert(at, b"[]{}=\"\n9"[random(8)]),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let _ = ClusterConfig::parse(&String::from_utf8_lossy(&bytes), "mutilated");
    }
}

#[test]
fn the_network_is_as_said_or_as_usual() {
    let parse = |table: &str| ClusterConfig::parse(&format!("{table}\n[[node]]\nname = \"a\""), "nodes.toml");
    let usual = parse("").unwrap();
    assert_eq!(usual.network, NetworkConfig::default());
    assert!(!usual.table().contains("network"), "{}", usual.table());
    let said = "[network]\ntransport = \"quic\"\ncongestion = \"bbr\"\ndatagram = 1452\nwindow = \"16MiB\"\nspin = \"0us\"";
    let config = parse(&format!("{said}\nclose_idle = \"2min\"\nports = \"40000-40100\"")).unwrap();
    let network = &config.network;
    assert_eq!((network.congestion, network.datagram_bytes), (Congestion::Bbr, 1452));
    assert_eq!((network.window_bytes, network.spin_us, network.close_idle_s), (16 << 20, 0, Some(120)));
    assert!(network.is_sound());
    assert!(usual.network.links().shares_memory && !network.links().shares_memory);
    let line = "network: transport quic, congestion bbr, datagram 1452, window 16384 KiB, spin 0 us, close_idle 120 s, \
                ports 40000-40100\n";
    assert!(config.table().ends_with(line), "{}", config.table());
    let links = network.links();
    assert_eq!((links.datagram_max_bytes, links.stream_window_bytes), (1452, 16 << 20));
    assert_eq!(links.close_idle_after, Some(std::time::Duration::from_secs(120)));
    let never = parse("[network]\nclose_idle = \"never\"").unwrap();
    assert_eq!((never.network.close_idle_s, never.network.links().close_idle_after), (None, None));
}

#[test]
fn what_the_nodes_file_says_of_the_network_holds_without_it() {
    let file = include_str!("../../../../nodes.toml");
    let network = file.lines().skip_while(|line| !line.starts_with("# [network]"));
    let said: String = network
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| line.starts_with('[') || line.contains(" = ") && !line.starts_with("ports"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(said.lines().count() >= 7, "{said}");
    let config = ClusterConfig::parse(&format!("{said}[[node]]\nname = \"a\""), "nodes.toml").unwrap();
    assert_eq!(config.network, NetworkConfig::default());
}

#[test]
fn every_mistake_about_the_network_has_its_line_and_a_mend() {
    for (said, sentence) in [
        ("network = 3", "1: `network` must be a table: write [network]"),
        ("[network]\nwindows = 3", "2: [network] has no key `windows`; did you mean `window`?"),
        ("[network]\ntransport = \"tcp\"", "2: [network]: `transport` must be \"auto\" or \"quic\""),
        ("[network]\n\ncongestion = \"reno\"", "3: [network]: `congestion` must be \"auto\", \"cubic\""),
        ("[network]\ncongestion = 1", "2: [network]: `congestion` must be"),
        ("[network]\ndatagram = 9000", "2: [network]: `datagram` must be a whole number of bytes from 1200"),
        ("[network]\ndatagram = 1199", "`datagram` must be"),
        ("[network]\nwindow = 4", "2: [network]: `window` must be a size from 64 KiB to 1 GiB"),
        ("[network]\nwindow = \"2GiB\"", "`window` must be"),
        ("[network]\nspin = 50", "2: [network]: `spin` must be a time of at most 1 s, such as \"10ms\""),
        ("[network]\nspin = \"2s\"", "`spin` must be"),
        ("[network]\nspin = \"99999999999999999999us\"", "`spin` must be"),
        (
            "[network]\nclose_idle = \"500ms\"",
            "2: [network]: `close_idle` must be \"never\" or a time from 1 s",
        ),
        ("[network]\nclose_idle = \"99999999999999999min\"", "`close_idle` must be"),
        (
            "[network]\nports = \"9-8\"",
            "2: [network]: `ports` must be ports from 1 to 65535, such as \"40000-40100\"",
        ),
        ("[network]\nports = 40000", "`ports` must be"),
    ] {
        let text = format!("{said}\n[[node]]\nname = \"a\"");
        let error = ClusterConfig::parse(&text, "nodes.toml").unwrap_err().to_string();
        assert!(error.contains(sentence), "{said}: {error}");
    }
}

#[test]
fn a_key_that_is_there_or_that_only_ssh_can_find_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("id");
    std::fs::write(&path, "").unwrap();
    for key in [path.display().to_string().as_str(), "~other/.ssh/id", "/keys/%h"] {
        let text = format!("[[node]]\nname = \"a\"\nhost = \"b\"\nkey = {key:?}");
        let config = ClusterConfig::parse(&text, "nodes.toml").unwrap();
        assert_eq!(config.nodes[0].key.as_deref(), Some(std::path::Path::new(key)));
    }
}
