//! Runs over several hosts, by ssh, with the network and the hosts disturbed.

mod applications;
mod balance;
mod narrow;
mod restarted;
mod slow;

use harness::testbed::Testbed;
use harness::{Done, Running, after, copy_program, is_alive, let_pass, nodes_at, start, wait_for, write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A run that has lost a host has ended within this: 3.75 s of silence, and a second to end.
const END: Duration = Duration::from_secs(6);
const HOSTS: &str = r#"
[defaults]
cores = 1
delay = "0.1ms"
rate = "1gbit"
[[host]]
name = "fast"
cpu = 1.0
[[host]]
name = "mid"
cpu = 0.55
[[host]]
name = "slow"
cpu = 0.25
"#;

struct Bed {
    bed: Testbed,
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Bed {
    /// Hosts, a folder, and a copy of the program whose path is this test's own.
    fn new(name: &str) -> Option<Self> {
        let bed = Testbed::up(name, HOSTS)?;
        let folder = tempfile::tempdir().expect("a folder for the test");
        let program = copy_program(env!("CARGO_BIN_EXE_stencil2d"), folder.path(), "stencil2d");
        let node = |host: &str| {
            format!(
                "[[node]]\nname = \"{host}\"\nhost = \"{host}\"\npes = 1\nbinary = {:?}\n",
                program.display().to_string()
            )
        };
        write(folder.path(), "nodes.toml", &["fast", "mid", "slow"].map(node).concat());
        Some(Self { bed, folder, program })
    }

    fn start(&self, words: &[&str]) -> Running {
        let mut command = self.bed.on_launcher(&self.program.to_string_lossy());
        command.args(words).current_dir(self.folder.path()).env("XDG_RUNTIME_DIR", self.folder.path());
        start(&mut command)
    }

    fn run(&self, words: &[&str]) -> Done {
        self.start(words).done()
    }

    fn part(&self) -> String {
        self.folder.path().to_string_lossy().into_owned()
    }

    fn wait_for_work(&self) {
        wait_for("three nodes", || (nodes_at(&self.part()).len() == 3).then_some(()));
        harness::wait_for_work(self.folder.path());
    }

    fn assert_nothing_left(&self) {
        wait_for("the nodes to end", || nodes_at(&self.part()).is_empty().then_some(()));
    }
}

const SHORT: [&str; 6] = ["run", "--steps", "300", "--cells", "24", "--quiet"];
/// Long enough to be frozen on its way.
const LONGER: [&str; 6] = ["run", "--steps", "3000", "--cells", "24", "--quiet"];
const LONG: [&str; 6] = ["run", "--steps", "10000000", "--cells", "24", "--quiet"];

fn result(done: &Done) -> String {
    assert_eq!(done.code, 0, "{done:?}");
    let (_, result) = done.stdout.split_once(" change in step ").expect("the program prints its result");
    after(result, ": ").expect("a number").to_string()
}

#[test]
fn a_run_over_ssh_gives_the_same_on_a_bad_network_and_with_a_frozen_node() {
    let Some(bed) = Bed::new("n") else { return };
    let calm = result(&bed.run(&SHORT));
    for host in ["fast", "mid", "slow"] {
        bed.bed.act(&["netem", host, "delay=10ms", "jitter=2ms", "loss=1%"]);
    }
    assert_eq!(result(&bed.run(&SHORT)), calm);
    for host in ["fast", "mid", "slow"] {
        bed.bed.act(&["netem", host, "none"]);
    }
    let calm = result(&bed.run(&LONGER));
    let running = bed.start(&LONGER);
    bed.wait_for_work();
    bed.bed.act(&["freeze", "mid"]);
    let_pass(Duration::from_secs(3));
    assert!(is_alive(running.pid()), "it was over before the node was frozen");
    bed.bed.act(&["thaw", "mid"]);
    assert_eq!(result(&running.done()), calm);
    bed.assert_nothing_left();
}

#[test]
fn a_host_that_only_ssh_knows_by_name_works_with_a_local_node() {
    let Some(bed) = Bed::new("a") else { return };
    let known = start(bed.bed.on_launcher("getent").args(["hosts", "mid"])).done();
    let address = known.stdout.split_whitespace().next().expect("the bed's hosts know each other");
    let config = format!("Host far\n  HostName {address}\nInclude /etc/ssh/ssh_config\n");
    let config = write(bed.folder.path(), "config", &config);
    let far = format!("[[node]]\nname = \"far\"\nhost = \"far\"\npes = 1\nbinary = {:?}\n", bed.program);
    write(bed.folder.path(), "nodes.toml", &(far + "[[node]]\nname = \"here\"\npes = 1\n"));
    let mut command = bed.bed.on_launcher(&bed.program.to_string_lossy());
    command.args(SHORT).current_dir(bed.folder.path());
    let done = start(command.env("METACHARE_SSH", format!("ssh -F {}", config.display()))).done();
    result(&done);
    bed.assert_nothing_left();
}

#[test]
fn a_host_that_dies_is_named_and_ends_the_run() {
    let Some(bed) = Bed::new("d") else { return };
    for blow in ["kill", "crash"] {
        let running = bed.start(&LONG);
        bed.wait_for_work();
        bed.bed.act(&[blow, "slow"]);
        let struck = Instant::now();
        let done = running.done();
        assert!(struck.elapsed() < END, "{blow}: {:?}", struck.elapsed());
        assert_eq!(done.code, 69, "{blow}: {done:?}");
        assert!(done.last_error().contains("\"slow\""), "{blow}: {done:?}");
        bed.assert_nothing_left();
        bed.bed.act(&["boot", "slow"]);
    }
}

#[test]
fn no_node_outlives_its_launcher_or_its_network() {
    let Some(bed) = Bed::new("o") else { return };
    let running = bed.start(&LONG);
    bed.wait_for_work();
    harness::signal(running.pid(), "KILL");
    let killed = Instant::now();
    bed.assert_nothing_left();
    assert!(killed.elapsed() < END, "{:?}", killed.elapsed());
    let running = bed.start(&LONG);
    bed.wait_for_work();
    bed.bed.act(&["cut", "mid"]);
    let done = running.done();
    assert_eq!(done.code, 69, "{done:?}");
    assert!(done.last_error().contains("\"mid\""), "{done:?}");
    bed.assert_nothing_left();
}

#[test]
fn checking_names_what_is_wrong_and_the_program_is_copied_once() {
    let Some(bed) = Bed::new("c") else { return };
    let done = bed.run(&["nodes", "check"]);
    assert!(done.code == 0 && done.stdout.matches(" ok ").count() == 3, "{done:?}");
    let node = |name: &str, host: &str| format!("[[node]]\nname = \"{name}\"\nhost = \"{host}\"\npes = 1\n");
    let all = [node("fast", "fast"), node("ghost", "no-such-host"), node("gone", "slow")].concat();
    write(bed.folder.path(), "mixed.toml", &all);
    bed.bed.act(&["cut", "slow"]);
    let done = bed.run(&["nodes", "check", "--nodes", "mixed.toml"]);
    assert_eq!(done.code, 69, "{done:?}");
    assert!(done.stdout.contains("fast         ok"), "{done:?}");
    assert!(done.stdout.contains("correct the name of the host"), "{done:?}");
    assert_eq!(done.stdout.matches("mend:").count(), 2, "{done:?}");
    // `fast` has no `binary` in this file, so the check has copied the program there.
    let staged = staged_copies(&bed.program);
    assert_eq!(staged.len(), 1, "{staged:?}");
    let written = staged[0].metadata().unwrap().modified().unwrap();
    let words = ["run", "--nodes", "mixed.toml", "--only", "fast", "--steps", "5", "--quiet"];
    assert_eq!(bed.run(&words).code, 0);
    assert_eq!(staged[0].metadata().unwrap().modified().unwrap(), written, "it was copied again");
}

/// The launching host keeps the files of its control group, where others of the bed only feel what they do.
#[test]
fn threads_under_a_quota_of_half_a_core_sleep_at_once() {
    let Some(bed) = Testbed::up("q", "[[host]]\nname = \"ctl\"\ncpu = 0.5\n") else { return };
    let folder = tempfile::tempdir().expect("a folder for the test");
    write(folder.path(), "nodes.toml", "[[node]]\nname = \"a\"\npes = 1\n");
    let mut command = bed.on_launcher(env!("CARGO_BIN_EXE_stencil2d"));
    command.args(SHORT).args(["--report", "run.json"]).current_dir(folder.path());
    let done = start(command.env("XDG_RUNTIME_DIR", folder.path())).done();
    result(&done);
    let report = std::fs::read(folder.path().join("run.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["nodes"][0]["spins"], false, "{report}");
}

/// Copies of a program in the cache of this user, which all hosts of the bed share.
fn staged_copies(program: &Path) -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
        .expect("a cache folder");
    let bytes = std::fs::read(program).expect("the program can be read");
    let folders = std::fs::read_dir(cache.join("metachare/bin")).into_iter().flatten().flatten();
    let files = folders.map(|folder| folder.path().join("stencil2d"));
    files.filter(|file| std::fs::read(file).is_ok_and(|copy| copy == bytes)).collect()
}
