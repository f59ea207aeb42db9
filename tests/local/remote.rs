//! Nodes on other hosts, with a program in ssh's place that plays the host: what is wrong with it is told in one
//! sentence, by a run and by a check, and nothing is left running.

use crate::{END, LONG, METACHARE, STENCIL, command};
use harness::{
    Done, is_alive, nodes_at, parent, processes_with, signal, start, wait_for, wait_for_work, write,
    write_program,
};
use runtime::buffer::Buffer;
use runtime::checkpoint::{About, Kind, Record, Store};
use runtime::envelope::Packed;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Plays ssh: the host's name says what happens. Nothing of it survives what it plays.
const FAKE_SSH: &str = r#"#!/bin/sh
here=$(dirname "$0")
while [ "$1" != -- ]; do shift; done
host=$2; command=$3
export HOME="$here/home-$host" SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'
unset XDG_CACHE_HOME
mkdir -p "$HOME"
echo "$host" >> "$here/connections"
lost() { echo "$1" >&2; exit 255; }
case $host in
refused) lost 'ssh: connect to host refused port 22: Connection refused' ;;
nowhere) lost 'ssh: Could not resolve hostname nowhere: Name or service not known' ;;
denied) lost 'ann@denied: Permission denied (publickey,password).' ;;
unseen) lost 'Host key verification failed.' ;;
changed)
  printf '%s\n' '@@@@@@@@@' '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @' '@@@@@@@@@' >&2
  lost 'Host key verification failed.' ;;
nologin) echo 'This account is currently not available.' >&2; exit 1 ;;
hangs) exec sleep 1000 ;;
late) sleep 2; exec sh -c "$command" ;;
stalls) head -c 100000 >/dev/null | sh -c "$command"; exec sleep 1000 ;;
cut) head -c 100000 | sh -c "$command"; lost 'client_loop: send disconnect: Broken pipe' ;;
vax) PATH="$here/vax:$PATH" exec sh -c "$command" ;;
full) PATH="$here/full:$PATH" exec sh -c "$command" ;;
homeless) HOME=/proc/none exec sh -c "$command" ;;
noisy) printf 'Welcome!\nYou have no mail'; echo 'motd: reboot on Sunday' >&2; exec sh -c "$command" ;;
hostile) lost "$(printf '\033]0;owned\007\033[31m\033[2J')Permission denied: go away" ;;
*) exec sh -c "$command" ;;
esac
"#;

/// What is wrong with a node: its host, keys of the nodes file, and words of the sentence.
type Fault = (&'static str, &'static str, &'static [&'static str]);

const FAULTS: [Fault; 18] = [
    ("refused", "", &["(connect)", "Connection refused", "is up and runs sshd"]),
    ("nowhere", "", &["(connect)", "Could not resolve hostname", "correct the name of the host"]),
    ("denied", "", &["(connect)", "Permission denied", "ssh-copy-id denied"]),
    ("unseen", "", &["(connect)", "verification failed", "accept its key: ssh unseen true"]),
    ("changed", "", &["(connect)", "HAS CHANGED", "ssh-keygen -R changed"]),
    ("nologin", "", &["(connect)", "not available", "allowed to run commands"]),
    ("hangs", "", &["(connect)", "no answer for 3 s", "see how long `ssh hangs true` takes"]),
    ("stalls", "", &["(stage)", "no answer for 3 s", "--start-timeout"]),
    ("cut", "", &["(stage)", "connection was lost while the program was copied", "try again"]),
    ("vax", "", &["(stage)", "architecture is vax-vms", "[binaries]"]),
    ("full", "", &["(stage)", "no room for the program", "free some there"]),
    ("homeless", "", &["(stage)", "cannot be stored", "XDG_CACHE_HOME"]),
    ("plain", "binary = \"BED/readable\"", &["(start)", "readable cannot be executed", "chmod +x"]),
    ("absent", "binary = \"/no/such/program\"", &["(start)", "/no/such/program is not there", "`binary`"]),
    ("alien", "binary = \"BED/alien\"", &["(start)", "for another architecture", "build the program for"]),
    ("other", "binary = \"/bin/true\"", &["(start)", "ended with exit code 0", "this very program"]),
    ("folder", "workdir = \"/no/such/folder\"", &["(start)", "no folder /no/such/folder", "`workdir`"]),
    ("mute", "binary = \"BED/mute\"", &["(start)", "no answer for 3 s", "--start-timeout"]),
];

/// A folder with the fake ssh in it, whose name is on the command line of all that it starts.
pub(crate) struct Bed(tempfile::TempDir);

impl Bed {
    pub(crate) fn new() -> Self {
        let bed = Self(tempfile::tempdir().expect("a folder for the test"));
        bed.executable("ssh", FAKE_SSH);
        fs::create_dir(bed.path().join("vax")).expect("a folder in it");
        bed.executable("vax/uname", "#!/bin/sh\n[ \"$1\" = -m ] && echo vax || echo VMS\n");
        fs::create_dir(bed.path().join("full")).expect("a folder in it");
        let full = "#!/bin/sh\necho \"head: error writing 'standard output': No space left on device\" >&2; exit 1\n";
        bed.executable("full/head", full);
        bed.executable("mute", "#!/bin/sh\nexec cat > /dev/null\n");
        write(bed.path(), "readable", "not to be run");
        // An executable for the AArch64, or another one where that is ours.
        let machine: &[u8] = if cfg!(target_arch = "aarch64") { &[0x3e, 0] } else { &[0xb7, 0] };
        let elf = [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[2, 0], machine, &[0; 64]].concat();
        bed.executable("alien", elf);
        bed
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn executable(&self, name: &str, content: impl AsRef<[u8]>) {
        write_program(self.path(), name, content);
    }

    /// A nodes file with one node, named as its host.
    pub(crate) fn node(&self, host: &str, keys: &str) -> String {
        let keys = keys.replace("BED", &self.path().to_string_lossy());
        format!("[[node]]\nname = \"{host}\"\nhost = \"{host}\"\nlaunch = \"ssh\"\npes = 1\n{keys}\n")
    }

    pub(crate) fn command(&self, program: &str, words: &[&str]) -> std::process::Command {
        let mut command = command(program, self.path(), words);
        command.env("METACHARE_SSH", self.path().join("ssh"));
        command
    }

    pub(crate) fn run(&self, program: &str, words: &[&str]) -> Done {
        start(&mut self.command(program, words)).done()
    }

    fn connections(&self) -> usize {
        fs::read_to_string(self.path().join("connections")).unwrap_or_default().lines().count()
    }

    pub(crate) fn assert_nothing_left(&self) {
        let part = self.path().to_string_lossy().into_owned();
        wait_for("everything to end", || processes_with(&part).is_empty().then_some(()));
    }
}

#[test]
fn a_run_says_in_one_sentence_what_is_wrong_with_a_host() {
    for (host, keys, words) in FAULTS {
        let bed = Bed::new();
        write(bed.path(), "nodes.toml", &bed.node(host, keys));
        let done = bed.run(STENCIL, &["run", "--start-timeout", "3", "--steps", "3"]);
        assert_eq!(done.code, 69, "{host}: {done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{host}: {done:?}");
        let begin = format!("error: node \"{host}\" on {host} was not started");
        assert!(done.stderr.starts_with(&begin) && done.stderr.contains("; mend: "), "{host}: {done:?}");
        assert!(words.iter().all(|word| done.stderr.contains(word)), "{words:?}: {done:?}");
        bed.assert_nothing_left();
    }
}

#[test]
fn a_check_says_the_same_of_all_hosts_side_by_side() {
    let bed = Bed::new();
    let faulty: String = FAULTS.iter().map(|(host, keys, _)| bed.node(host, keys)).collect();
    write(bed.path(), "nodes.toml", &[faulty, bed.node("good", ""), bed.node("noisy", "")].concat());
    // The good ones need longer beside so many others.
    let done = bed.run(METACHARE, &["nodes", "check", "--start-timeout", "8"]);
    assert_eq!(done.code, 69, "{done:?}");
    assert_eq!(done.last_error(), "error: 18 of 20 nodes cannot be used");
    let said: Vec<&str> = done.stdout.lines().collect();
    for (at, (host, _, words)) in FAULTS.iter().enumerate() {
        let two = said[2 * at..2 * at + 2].join("\n");
        assert!(two.starts_with(host) && two.contains("FAIL") && two.contains("mend: "), "{two}");
        let words = words.iter().map(|word| word.trim_matches(['(', ')']).replace("for 3 s", "for 8 s"));
        words.for_each(|word| assert!(two.contains(&word), "{word:?}: {two}"));
    }
    let fine = &said[2 * FAULTS.len()..];
    assert!(fine.len() == 5 && fine[0].starts_with("good         ok"), "{done:?}");
    assert!(fine[1].starts_with("noisy        ok"), "{done:?}");
    // The way between the two, both ways.
    assert!(fine[4].starts_with("good - noisy ") && fine[4].matches("B/s").count() == 2, "{done:?}");
    bed.assert_nothing_left();
}

#[test]
fn a_local_program_that_cannot_run_is_explained_too() {
    let bed = Bed::new();
    let cases = [
        ("binary = \"BED/readable\"", "chmod +x"),
        ("binary = \"BED/alien\"", "for another architecture"),
        ("binary = \"/bin/true\"", "ended with exit code 0 before it answered"),
        ("workdir = \"/no/such/folder\"", "it has no folder /no/such/folder"),
    ];
    for (keys, words) in cases {
        let keys = keys.replace("BED", &bed.path().to_string_lossy());
        write(bed.path(), "nodes.toml", &format!("[[node]]\nname = \"a\"\npes = 1\n{keys}\n"));
        for (program, command) in [(STENCIL, &["run"][..]), (METACHARE, &["nodes", "check"])] {
            let done = bed.run(program, command);
            assert_eq!(done.code, 69, "{keys}: {done:?}");
            assert!((done.stdout + &done.stderr).contains(words), "{keys}: {words:?}: {}", done.stderr);
        }
    }
}

#[test]
fn a_login_may_be_noisy_and_one_connection_does_it_all() {
    let bed = Bed::new();
    write(bed.path(), "nodes.toml", &bed.node("noisy", ""));
    for connections in 1..=2 {
        let done = bed.run(STENCIL, &["run", "--steps", "3"]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
        assert!(done.stdout.starts_with("largest change in step 3: "), "the noise is not shown: {done:?}");
        assert_eq!(bed.connections(), connections);
    }
    bed.assert_nothing_left();
}

#[test]
fn nodes_of_one_host_may_copy_the_program_at_the_same_time() {
    let bed = Bed::new();
    let node = |name: &str| bed.node("good", "").replacen("\"good\"", &format!("{name:?}"), 1);
    write(bed.path(), "nodes.toml", &["a", "b", "c"].map(node).concat());
    let done = bed.run(STENCIL, &["run", "--steps", "3"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    let staged = bed.path().join("home-good/.cache/metachare/bin");
    let builds: Vec<PathBuf> = fs::read_dir(staged).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(builds.len(), 1);
    let mut names: Vec<_> =
        fs::read_dir(&builds[0]).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["stencil2d", "stencil2d.whole"]);
}

/// A run that goes on until it is ended, with nodes `a` and `b` over the fake ssh; it and its two nodes.
fn long_run(bed: &Bed) -> (harness::Running, [i32; 2]) {
    let node = |name: &str| bed.node("good", "").replacen("\"good\"", &format!("{name:?}"), 1);
    write(bed.path(), "nodes.toml", &["a", "b"].map(node).concat());
    let running = start(&mut bed.command(STENCIL, &LONG));
    let part = bed.path().to_string_lossy().into_owned();
    let nodes = wait_for("two nodes", || <[i32; 2]>::try_from(nodes_at(&part)).ok());
    wait_for_work(bed.path());
    (running, nodes)
}

#[test]
fn a_remote_node_that_is_killed_is_named_with_the_signal() {
    for (name, number) in [("KILL", 9), ("ABRT", 6)] {
        let bed = Bed::new();
        let (running, nodes) = long_run(&bed);
        signal(nodes[1], name);
        let killed = Instant::now();
        let done = running.done();
        assert!(killed.elapsed() < END, "{:?}", killed.elapsed());
        assert_eq!(done.code, 69, "{done:?}");
        let is_named = ["a", "b"]
            .iter()
            .any(|node| done.last_error() == format!("error: node {node:?} was killed by signal {number}"));
        assert!(is_named, "{done:?}");
        bed.assert_nothing_left();
    }
}

#[test]
fn nothing_of_a_remote_node_outlives_its_ssh_or_its_launcher() {
    let bed = Bed::new();
    let (running, nodes) = long_run(&bed);
    signal(running.pid(), "KILL");
    bed.assert_nothing_left();
    wait_for("the nodes to end", || nodes.iter().all(|&node| !is_alive(node)).then_some(()));
    // The shell that waits for a node is what ssh would lose.
    let (running, nodes) = long_run(&bed);
    signal(parent(nodes[0]), "KILL");
    let done = running.done();
    assert!(done.code == 69 && done.last_error().contains("lost its ssh connection"), "{done:?}");
    bed.assert_nothing_left();
}

/// The folder of one checkpoint with several chunks.
fn saved(bed: &Bed) -> PathBuf {
    let dir = bed.path().join("saved");
    let mut writer = Store::create(&dir).expect("a folder").begin(About::default()).expect("a checkpoint");
    for n in 0..5u32 {
        // No chunk of it is shorter compressed.
        let array: Vec<u32> = (0..20_000).map(|k| (k + n * 1_000_003).wrapping_mul(0x9e37_79b9)).collect();
        let packed = Packed { body: vec![1].into(), attachments: vec![Buffer::from_slice(&array)] };
        let (kind, type_name) = (Kind::Chare, "Block".into());
        let record = Record { kind, pe: 0, type_name, collection: 1, index: [n, 0, 0], packed };
        writer.put(&record).expect("room for a record");
    }
    writer.commit().expect("room for a checkpoint");
    dir
}

#[test]
fn checkpoints_are_copied_to_hosts_and_from_there() {
    let bed = Bed::new();
    let dir = saved(&bed);
    // A host of the nodes file has the program; another one gets it.
    let nodes = bed.node("far", &format!("binary = \"{METACHARE}\""));
    write(bed.path(), "nodes.toml", &nodes);
    let checkpoint = |words: &[&str]| bed.run(METACHARE, &[&["checkpoint"], words].concat());
    let whole = "generation 1 is there and whole: 391.4 KiB in 11 chunks, of which ";
    for sent in ["11 (391.4 KiB) were sent\n", "0 (0 B) were sent\n"] {
        let done = checkpoint(&["push", "saved", "far:copies/deep"]);
        assert_eq!((done.code, done.stdout.as_str()), (0, format!("{whole}{sent}").as_str()), "{done:?}");
    }
    let there = bed.path().join("copies/deep");
    let done = checkpoint(&["pull", "far:copies/deep", "back", "--generation", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
    for name in ["chunks", "index", "MANIFEST.json", "COMMIT"] {
        let [here, there, back] = [dir.as_path(), &there, &bed.path().join("back")]
            .map(|dir| fs::read(dir.join("generation-000001").join(name)).expect("a file of the copy"));
        assert!(here == there && here == back, "{name}");
    }
    let chunks = there.join("generation-000001/chunks");
    let mut bytes = fs::read(&chunks).expect("the chunks");
    bytes[70_000] ^= 1;
    fs::write(&chunks, bytes).expect("the chunks");
    let damage = "error: far: generation 1 is damaged: copies/deep/generation-000001/chunks: the checksum of a chunk is wrong \
                  (byte 65536, ";
    for (words, code, sentence) in [
        (&["pull", "far:copies/deep", "again"][..], 65, damage),
        (&["pull", "far:none", "again"], 66, "error: far: none holds no checkpoint: it is not there"),
        (
            &["push", "saved", "refused:dir"],
            69,
            "error: node \"refused\" on refused was not started (connect)",
        ),
        (&["push", "saved", "far:/proc/none"], 73, "error: far: /proc/none cannot be written: "),
    ] {
        let done = checkpoint(words);
        assert!(done.code == code && done.stderr.starts_with(sentence), "{words:?}: {done:?}");
    }
    bed.assert_nothing_left();
}
