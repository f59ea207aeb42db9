//! All applications over test hosts whose network is disturbed.

use harness::testbed::Testbed;
use harness::{Done, Running, copy_program, is_alive, let_pass, nodes_at, start, wait_for, write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Hosts `a`, `b` and so on, a folder, and a copy of the program whose path is this test's own.
pub(super) struct Applications {
    pub(super) bed: Testbed,
    folder: tempfile::TempDir,
    program: PathBuf,
    hosts: Vec<String>,
}

impl Applications {
    pub(super) fn new(name: &str, hosts: &[&str]) -> Option<Self> {
        let spec = |host: &&str| format!("[[host]]\nname = {host:?}\ncpu = 1.0\ncores = 1\n");
        let bed = Testbed::up(name, &hosts.iter().map(spec).collect::<String>())?;
        let folder = tempfile::tempdir().expect("a folder for the test");
        // Not `metachare`: a run makes a folder of that name for its socket.
        let program = copy_program(env!("CARGO_BIN_EXE_metachare-under-test"), folder.path(), "program");
        let hosts = hosts.iter().map(ToString::to_string).collect();
        Some(Self { bed, folder, program, hosts })
    }

    /// Starts an application on the first `count` hosts.
    pub(super) fn start(&self, count: usize, words: &str) -> Running {
        let speed = if words.contains("--speed") { "" } else { " --speed equal" };
        self.command(count, &format!("run {words}{speed}"))
    }

    /// Goes on on the first `count` hosts with the run that was saved in a folder.
    pub(super) fn restart(&self, count: usize, saved: &str) -> Done {
        self.command(count, &format!("restart {saved}")).done()
    }

    fn command(&self, count: usize, words: &str) -> Running {
        let node = |host: &String| {
            format!(
                "[[node]]\nname = {host:?}\nhost = {host:?}\npes = 1\nbinary = {:?}\n",
                self.program.display().to_string()
            )
        };
        let nodes: String = self.hosts[..count].iter().map(node).collect();
        write(self.folder.path(), "nodes.toml", &nodes);
        let mut command = self.bed.on_launcher(&self.program.to_string_lossy());
        command.args(words.split(' ')).args(["--nodes", "nodes.toml"]);
        command.current_dir(self.folder.path()).env("XDG_RUNTIME_DIR", self.folder.path());
        start(command.env("XDG_CACHE_HOME", self.folder.path()))
    }

    /// The same of all hosts, from start to end.
    fn run(&self, words: &str) -> Done {
        self.start(self.hosts.len(), words).done()
    }

    /// What the program says in the launching host, such as `watch --once`.
    pub(super) fn says(&self, words: &str) -> String {
        let mut command = self.bed.on_launcher(&self.program.to_string_lossy());
        command.args(words.split(' ')).current_dir(self.folder.path());
        start(command.env("XDG_RUNTIME_DIR", self.folder.path())).done().stdout
    }

    pub(super) fn netem(&self, how: &[&str]) {
        for host in &self.hosts {
            self.bed.act(&[&["netem", host.as_str()][..], how].concat());
        }
    }

    /// A file of the runs' folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a run has written.
    pub(super) fn read_json(&self, name: &str) -> serde_json::Value {
        let text = std::fs::read_to_string(self.folder.path().join(name)).expect("the run has written it");
        serde_json::from_str(&text).expect("it is JSON")
    }

    pub(super) fn wait_for_work(&self) {
        let part = self.folder.path().to_string_lossy();
        wait_for("all nodes", || (nodes_at(&part).len() == self.hosts.len()).then_some(()));
        harness::wait_for_work(self.folder.path());
    }

    pub(super) fn assert_nothing_left(&self) {
        let part = self.folder.path().to_string_lossy();
        wait_for("the nodes to end", || nodes_at(&part).is_empty().then_some(()));
    }
}

/// Each of them checks its own result.
pub(super) const ALL: [&str; 16] = [
    "matmul --n 200 --verify --algorithm cannon",
    "matmul --n 200 --verify --algorithm fox",
    "matmul --n 200 --verify --algorithm fox-hey-otto",
    "matmul --n 200 --verify --algorithm conventional",
    "gauss --n 200 --verify --algorithm blocked",
    "gauss --n 120 --verify --algorithm columns",
    "jacobi --n 200 --verify",
    "apsp --n 200 --verify --algorithm dijkstra",
    "apsp --n 150 --verify --algorithm floyd-warshall",
    "statics --size 6 --max-force 1e-3 --shake 0.05",
    "mis --vertices 150 --density 0.2 --verify",
    "mis --vertices 300 --density 0.5 --lim 4,2,1 --adjacency partitioned --verify",
    "imbalance --chares 24 --steps 50 --work 20000 --verify",
    "netbench --sizes 1,64 --repeats 2 --warm-up 0",
    "fem --elements 40 --coarsest 200 --verify",
    "pic --particles 4000 --cells 32x8 --steps 30 --grid distributed --verify",
];

#[test]
fn applications_end_right_over_lines_that_delay_reorder_and_lose() {
    let Some(bed) = Applications::new("v", &["a", "b", "c"]) else { return };
    bed.netem(&["delay=5ms", "jitter=3ms", "loss=1%"]);
    for words in ALL {
        let done = bed.run(words);
        assert_eq!(done.code, 0, "{words}: {done:?}");
    }
    bed.assert_nothing_left();
}

/// Seconds of work for three hosts whose packets are under way for a while.
const LONG: [&str; 2] = ["gauss --n 2000 --verify", "statics --size 14 --max-force 1e-5 --shake 0.05"];

#[test]
fn applications_end_right_though_a_host_was_frozen() {
    let Some(bed) = Applications::new("z", &["a", "b", "c"]) else { return };
    bed.netem(&["delay=5ms"]);
    for words in LONG {
        let running = bed.start(3, words);
        bed.wait_for_work();
        bed.bed.act(&["freeze", "b"]);
        let_pass(Duration::from_millis(1500));
        assert!(is_alive(running.pid()), "{words}: it was over before the host was frozen");
        bed.bed.act(&["thaw", "b"]);
        let done = running.done();
        assert_eq!(done.code, 0, "{words}: {done:?}");
    }
    bed.assert_nothing_left();
}

#[test]
fn applications_name_a_host_that_dies_and_end() {
    let Some(bed) = Applications::new("y", &["a", "b", "c"]) else { return };
    bed.netem(&["delay=5ms"]);
    for (words, blow) in LONG.iter().zip(["kill", "crash"]) {
        let running = bed.start(3, words);
        bed.wait_for_work();
        bed.bed.act(&[blow, "c"]);
        let struck = Instant::now();
        let done = running.done();
        assert!(struck.elapsed() < super::END, "{words}, {blow}: {:?}", struck.elapsed());
        assert_eq!(done.code, 69, "{words}, {blow}: {done:?}");
        assert!(done.last_error().contains("\"c\""), "{words}, {blow}: {done:?}");
        bed.assert_nothing_left();
        bed.bed.act(&["boot", "c"]);
    }
}
