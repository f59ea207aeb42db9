//! How nodes are named, reached and checked, with a program in ssh's place: what it cannot do without a second
//! machine is tested with `hosts`.

use harness::terminal::Terminal;
use harness::{Done, Running, nodes_at, start, wait_for, write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Plays ssh: each host has a home of its own, and its shell sees the connection that a real one would. Host names
/// mean nothing to the resolver of this machine, like an alias of ~/.ssh/config.
const SSH: &str = r#"#!/bin/sh
here=$(dirname "$0")
while [ "$1" != -- ]; do shift; done
export HOME="$here/home-$2" SSH_CONNECTION='127.0.0.1 4242 127.0.0.1 22'
unset XDG_CACHE_HOME
mkdir -p "$HOME"
exec sh -c "$3"
"#;

/// A folder with the program, whose path is this test's own, and the ssh.
struct Bed {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Bed {
    fn new(program: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        write(folder.path(), "ssh", SSH);
        let name = Path::new(program).file_name().expect("a program has a name");
        let bed = Self { program: folder.path().join(name), folder };
        bed.make(&format!("cp {program:?} {:?}", bed.program));
        bed
    }

    fn stencil() -> Self {
        Self::new(env!("CARGO_BIN_EXE_stencil2d"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        write(self.folder.path(), name, text)
    }

    /// Makes a program by a command: what this process itself has open for writing, a child of another test's could
    /// hold open, and then it cannot be run.
    fn make(&self, command: &str) {
        let done = start(Command::new("sh").args(["-c", command]).current_dir(self.folder.path())).done();
        assert_eq!(done.code, 0, "{command}: {done:?}");
    }

    fn command(&self, words: &[&str]) -> Command {
        let folder = self.folder.path();
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(folder).env_remove("METACHARE_NODES").env_remove("SSH_CONNECTION");
        command.env("XDG_CACHE_HOME", folder).env("XDG_RUNTIME_DIR", folder);
        command.env("METACHARE_SSH", format!("sh {}", folder.join("ssh").display()));
        command
    }

    fn start(&self, words: &[&str]) -> Running {
        start(&mut self.command(words))
    }

    fn run(&self, words: &[&str]) -> Done {
        self.start(words).done()
    }
}

/// Addresses of the UDP sockets of a process, by their inodes.
fn udp_addresses(pid: i32) -> Vec<String> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = folder.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    let links: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let tables = ["udp", "udp6"].map(|name| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")));
    let mut found = Vec::new();
    for line in tables.iter().flatten().flat_map(|table| table.lines().skip(1)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if links.contains(&format!("socket:[{}]", words[9])) {
            found.extend(words[1].split_once(':').map(|(address, _)| address.to_string()));
        }
    }
    found
}

const ALIAS: &str =
    "[[node]]\nname = \"there\"\nhost = \"an-alias-of-ssh\"\npes = 1\n[[node]]\nname = \"here\"\npes = 1\n";

#[test]
fn nodes_behind_an_alias_and_on_this_machine_reach_each_other_and_listen_on_no_other_address() {
    const LOOPBACK: &str = "0100007F";
    let bed = Bed::stencil();
    bed.write("nodes.toml", ALIAS);
    let running = bed.start(&["run", "--steps", "10000000", "--cells", "24", "--quiet"]);
    let part = bed.folder.path().to_string_lossy().into_owned();
    let nodes = wait_for("two nodes", || <[i32; 2]>::try_from(nodes_at(&part)).ok());
    for pid in [running.pid(), nodes[0], nodes[1]] {
        let addresses = wait_for("its port", || Some(udp_addresses(pid)).filter(|found| !found.is_empty()));
        assert_eq!(addresses, [LOOPBACK], "of process {pid} of {} and {nodes:?}", running.pid());
    }
    harness::signal(running.pid(), "INT");
    assert_eq!(running.done().code, 130);
    let done = bed.run(&["run", "--steps", "30", "--quiet"]);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn a_node_that_cannot_know_its_address_asks_for_one() {
    let bed = Bed::stencil();
    bed.write("ssh", &SSH.replace("SSH_CONNECTION='127.0.0.1 4242 127.0.0.1 22'", "SSH_CONNECTION="));
    bed.write("nodes.toml", ALIAS);
    let done = bed.run(&["run", "--steps", "3"]);
    assert!(done.code == 69 && done.last_error().contains("set `address` of this node"), "{done:?}");
    bed.write("nodes.toml", &ALIAS.replacen("pes", "address = \"127.0.0.1\"\npes", 1));
    let done = bed.run(&["run", "--steps", "3", "--quiet"]);
    assert_eq!(done.code, 0, "{done:?}");
}

/// The lines of a check that are about a node: from its name to the next one's.
fn about<'a>(done: &'a Done, name: &str) -> Vec<&'a str> {
    let mut lines = done.stdout.lines().skip_while(|line| !line.starts_with(&format!("{name} ")));
    let first = lines.next().unwrap_or_default();
    std::iter::once(first).chain(lines.take_while(|line| line.starts_with(' '))).collect()
}

/// A node over ssh on a host of its own.
fn remote(name: &str, keys: &str) -> String {
    format!("[[node]]\nname = {name:?}\nhost = \"host-of-{name}\"\npes = 1\n{keys}\n")
}

#[test]
fn a_check_finds_what_a_run_would_find() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_metachare-under-test"));
    let stencil = env!("CARGO_BIN_EXE_stencil2d");
    let nodes = [
        remote("good", ""),
        remote("own", &format!("binary = {:?}\nworkdir = {:?}", bed.program, bed.folder.path())),
        remote("other", &format!("binary = {stencil:?}")),
        remote("closed", "workdir = \"/proc\""),
        remote("nowhere", "workdir = \"/no/such/folder\""),
        remote("absent", "binary = \"/no/such/program\""),
        remote("huge", "memory = \"1000TiB\""),
        "[[node]]\nname = \"here\"\npes = 1\n".into(),
    ];
    bed.write("nodes.toml", &nodes.concat());
    let done = bed.run(&["nodes", "check"]);
    assert_eq!(done.code, 69, "{done:?}");
    assert_eq!(done.last_error(), "error: 5 of 8 nodes cannot be used");
    for name in ["good", "own", "here"] {
        let lines = about(&done, name);
        assert!(lines.len() == 1 && lines[0].contains(" ok "), "{lines:?}: {done:?}");
    }
    let wrong = [
        ("other", "other chares or entry methods", "put the same build there"),
        ("closed", "/proc cannot be written", "`workdir`"),
        ("nowhere", "no folder /no/such/folder", "`workdir`"),
        ("absent", "/no/such/program is not there", "`binary`"),
        ("huge", "`memory` is 1048576000 MiB", "set `memory`"),
    ];
    for (name, reason, mend) in wrong {
        let lines = about(&done, name);
        assert_eq!(lines.len(), 2, "{lines:?}: {done:?}");
        assert!(lines[0].contains(" FAIL ") && lines[0].contains(reason), "{lines:?}");
        assert!(lines[1].contains("mend: ") && lines[1].contains(mend), "{lines:?}");
    }
}

#[test]
fn a_check_warns_of_what_a_run_puts_up_with() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_metachare-under-test"));
    let another = bed.folder.path().join("another");
    bed.make(&format!("cp {:?} another; echo of another day >> another", bed.program));
    let nodes = [
        remote("another", &format!("binary = {another:?}")),
        remote("crowded", "").replace("pes = 1", "pes = 4096"),
    ];
    bed.write("nodes.toml", &nodes.concat());
    let done = bed.run(&["nodes", "check"]);
    assert_eq!(done.code, 0, "{done:?}");
    for (name, reason, mend) in [
        ("another", "another build of this program", "put the same build there"),
        ("crowded", "`pes` asks for 4096", "set pes = "),
    ] {
        let lines = about(&done, name);
        assert!(lines.len() == 3 && lines[0].contains(" ok "), "{lines:?}: {done:?}");
        assert!(lines[1].contains(" warn ") && lines[1].contains(reason), "{lines:?}");
        assert!(lines[2].contains("mend: ") && lines[2].contains(mend), "{lines:?}");
    }
}

#[test]
fn a_check_tries_the_way_between_all_nodes() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return println!("skipped: this machine has no IPv6, which keeps nodes apart here");
    }
    let bed = Bed::new(env!("CARGO_BIN_EXE_metachare-under-test"));
    let nodes = [remote("old", ""), remote("new", "address = \"::1\""), remote("too", "")];
    bed.write("nodes.toml", &nodes.concat());
    let done = bed.run(&["nodes", "check"]);
    assert_eq!(done.code, 69, "{done:?}");
    let lines = |name| about(&done, name).join(" ");
    assert!(
        lines("old").contains("datagrams from it (127.0.0.1) to \"new\" (::1) do not come back"),
        "{done:?}"
    );
    assert!(lines("too").contains("to \"new\" (::1) do not"), "{done:?}");
    assert!(lines("new").contains("to \"old\" (127.0.0.1), \"too\" (127.0.0.1) do not"), "{done:?}");
    let done = bed.run(&["nodes", "check", "--only", "old,too"]);
    assert_eq!((done.code, done.stdout.matches(" ok ").count()), (0, 2), "{done:?}");
}

#[test]
fn the_environment_names_a_nodes_file_unless_it_is_empty_or_the_built_in_nodes_are_wanted() {
    let bed = Bed::stencil();
    bed.write("named.toml", "[[node]]\nname = \"named\"\npes = 1\n");
    let listed = |environment: &str, words: &[&str]| {
        let mut command = bed.command(&[&["nodes", "list"], words].concat());
        start(command.env("METACHARE_NODES", environment)).done()
    };
    assert!(listed("named.toml", &[]).stdout.contains("\nnamed "));
    for (environment, words) in
        [("", &[][..]), ("named.toml", &["--built-in-nodes"]), ("none", &["--built-in-nodes"])]
    {
        let done = listed(environment, words);
        assert!(done.code == 0 && done.stdout.starts_with("nodes of built-in default\n"), "{done:?}");
    }
    let gone = listed("none.toml", &[]);
    assert!(gone.code == 78 && gone.stderr.contains("none.toml"), "{gone:?}");
}

#[test]
fn options_without_sense_are_refused_before_anything_starts() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_metachare-under-test"));
    let stencil = Bed::stencil();
    bed.write("nodes.toml", "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n");
    let seconds = "give seconds, more than 0 and at most";
    let cases: [(&Bed, &[&str], &str); 11] = [
        (&bed, &["run", "matmul", "--timeout", "0"], seconds),
        (&bed, &["run", "matmul", "--timeout", "-1"], seconds),
        (&bed, &["run", "matmul", "--timeout", "1e300"], seconds),
        (&bed, &["run", "matmul", "--start-timeout", "-0.5"], seconds),
        (&bed, &["nodes", "check", "--start-timeout", "nan"], seconds),
        (&bed, &["demo", "--speed", "file"], "no node of built-in default has a `speed`"),
        (&bed, &["run", "matmul", "--speed", "file"], "no node of nodes.toml has a `speed`"),
        (&bed, &["run", "matmul", "--nodes", "nodes.toml", "--built-in-nodes"], "cannot be used with"),
        (&bed, &["watch", "--list", "--once"], "cannot be used with"),
        (&bed, &["nodes", "list", "--start-timeout", "5"], "unexpected argument '--start-timeout'"),
        (&stencil, &["run", "--speed", "measured"], "no kernel to measure"),
    ];
    for (bed, words, sentence) in cases {
        let done = bed.run(words);
        assert_eq!(done.code, 64, "{words:?}: {done:?}");
        assert!(done.stderr.starts_with("error: ") && done.stderr.contains(sentence), "{words:?}: {done:?}");
        assert_eq!(done.stdout, "", "{words:?}");
    }
}

#[test]
fn a_copy_over_a_slow_line_may_last_longer_than_silence_and_is_shown() {
    let bed = Bed::stencil();
    // So much a second, for longer than a node may be silent.
    let slow = "{ for n in 1 2 3 4 5; do head -c 200000; sleep 1; done; cat; } | sh -c \"$3\"";
    bed.write("ssh", &SSH.replace("exec sh -c \"$3\"", slow));
    bed.write("nodes.toml", &remote("far", ""));
    let terminal = Terminal::new();
    let done = terminal.start(&bed.command(&["nodes", "check", "--start-timeout", "3"])).done();
    let shown = terminal.shown();
    assert_eq!(done.code, 0, "{shown}");
    assert!(shown.contains("copying the program to far ["), "{shown}");
    let last = shown.rsplit(['\r', '\n']).find(|line| line.contains("copying") || line.contains("far   "));
    assert!(last.is_some_and(|line| line.contains(" ok ")), "the bar is gone: {shown}");
}

/// A node that sees another folder in the place of the launcher's, or none, is sent its part; one that sees a copy reads it.
#[test]
fn nodes_read_what_was_saved_where_they_see_the_same() {
    let bed = Bed::stencil();
    bed.make("mkdir apart");
    let apart = bed.folder.path().join("apart");
    let workdir = format!("workdir = {apart:?}\npes");
    bed.write("nodes.toml", &ALIAS.replacen("pes", &workdir, 1));
    let words =
        ["run", "--cells", "16", "--steps", "60", "--checkpoint", "saved", "--checkpoint-every", "0.0005"];
    let done = bed.run(&words);
    assert_eq!(done.code, 0, "{done:?}");
    // Each process has its own working folder there.
    let go_on = || {
        let words = ["restart", "/proc/self/cwd/saved", "--checkpoint", "on", "--report", "report.json"];
        let done = bed.run(&words);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.stderr.contains("read by the nodes themselves: "), "{done:?}");
        let report = std::fs::read(bed.folder.path().join("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let restored = &report["restored"];
        [&restored["read_by_nodes"], &restored["bytes"]].map(|bytes| bytes.as_u64().unwrap())
    };
    let [hidden, all] = go_on();
    assert!(0 < hidden && hidden < all, "{hidden} of {all}");
    bed.make("cp -r on apart/saved");
    assert_eq!(go_on(), [hidden, all], "another run's folder");
    bed.make("rm -r apart/saved && cp -r saved apart/saved");
    assert_eq!(go_on(), [all, all], "a copy");
}
