//! Runs over several processes of this machine: results, reports, failures, and that nothing is left.

mod drained;
mod ending;
mod foreign;
mod imbalance;
mod limits;
mod log;
mod measuring;
mod migrated;
mod packed;
mod remote;
mod restarted;
mod shared;
mod speeds;
mod unused;
mod window;

use harness::{Done, after, is_alive, local_nodes, signal, start, wait_for, wait_for_work, write};
use runtime::checkpoint::{About, Store};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const STENCIL: &str = env!("CARGO_BIN_EXE_stencil2d");
const MISBEHAVING: &str = env!("CARGO_BIN_EXE_misbehaving");
const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");
/// A run whose node is lost, or that is told to end, has ended within this.
const END: Duration = Duration::from_secs(5);

fn command(program: &str, folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).env_remove("METACHARE_NODES");
    command.env("XDG_CACHE_HOME", folder).env("XDG_RUNTIME_DIR", folder);
    command
}

fn run(program: &str, folder: &Path, words: &[&str]) -> Done {
    start(&mut command(program, folder, words)).done()
}

/// A run that goes on until it is ended.
const LONG: [&str; 8] = ["run", "--nodes", "nodes.toml", "--steps", "10000000", "--cells", "32", "--quiet"];

#[test]
fn the_stencil_gives_the_same_on_any_mix() {
    let mut results = Vec::new();
    for pes in [&[1][..], &[2, 1], &[1, 2, 1, 1]] {
        let folder = tempfile::tempdir().unwrap();
        local_nodes(folder.path(), pes);
        let done = run(STENCIL, folder.path(), &["run", "--steps", "60", "--report", "run.json"]);
        assert_eq!(done.code, 0, "{done:?}");
        results.push(after(&done.stdout, "step 60: ").unwrap().to_string());
        let report = std::fs::read(folder.path().join("run.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["nodes"].as_array().unwrap().len(), pes.len());
    }
    assert!(results.iter().all(|r| *r == results[0]), "{results:?}");
}

#[test]
fn every_algorithm_is_verified_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    for algorithm in ["conventional", "cannon", "fox", "fox-hey-otto"] {
        for (rows, inner, n, dtype) in [("64", "64", "64", "f64"), ("37", "51", "5", "f32")] {
            let words = [
                "run",
                "matmul",
                "--algorithm",
                algorithm,
                "--rows",
                rows,
                "--inner",
                inner,
                "--n",
                n,
                "--dtype",
                dtype,
                "--q",
                "5",
                "--verify",
                "--out",
                "c.npy",
                "--report",
                "run.json",
                "--speed",
                "cached",
            ];
            let done = run(METACHARE, folder.path(), &words);
            assert_eq!(done.code, 0, "{algorithm}: {done:?}");
            let report = std::fs::read(folder.path().join("run.json")).unwrap();
            let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
            assert_eq!(report["verified"], true, "{report}");
            for key in ["schema", "app", "max_error", "timed_s", "total_s", "equivalents", "efficiency"] {
                assert!(!report[key].is_null(), "{key} is missing: {report}");
            }
            for key in ["name", "speed", "share", "pes"] {
                assert!(!report["nodes"][0][key].is_null(), "nodes[].{key} is missing: {report}");
            }
        }
    }
}

#[test]
fn deterministic_products_are_the_same_bits_on_any_mix() {
    for algorithm in ["conventional", "cannon", "fox", "fox-hey-otto"] {
        let mut products = Vec::new();
        for pes in [&[1][..], &[3], &[2, 1, 1]] {
            let folder = tempfile::tempdir().unwrap();
            local_nodes(folder.path(), pes);
            let words =
                ["run", "matmul", "--algorithm", algorithm, "--n", "90", "--out", "c.npy", "--deterministic"];
            let done = run(METACHARE, folder.path(), &words);
            assert_eq!(done.code, 0, "{done:?}");
            products.push(std::fs::read(folder.path().join("c.npy")).unwrap());
        }
        assert!(products.iter().all(|p| *p == products[0]), "{algorithm}");
    }
}

#[test]
fn a_killed_node_ends_the_run_by_name_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1, 1]);
    let running = start(&mut command(STENCIL, folder.path(), &LONG));
    let nodes = running.nodes(3);
    signal(nodes[1], "KILL");
    let killed = Instant::now();
    let done = running.done();
    assert!(killed.elapsed() < END, "{:?}", killed.elapsed());
    assert_eq!(done.code, 69, "{done:?}");
    assert!(done.last_error().contains("was killed by signal 9"), "{done:?}");
    assert!(["\"a\"", "\"b\"", "\"c\""].iter().any(|name| done.last_error().contains(name)), "{done:?}");
    assert!(nodes.iter().all(|&node| !is_alive(node)));
}

#[test]
fn nodes_end_when_their_launcher_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let running = start(&mut command(STENCIL, folder.path(), &LONG));
    let nodes = running.nodes(2);
    signal(running.pid(), "KILL");
    let killed = Instant::now();
    wait_for("the orphans to end", || nodes.iter().all(|&node| !is_alive(node)).then_some(()));
    assert!(killed.elapsed() < END);
}

#[test]
fn a_time_limit_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let words: Vec<&str> = LONG.iter().copied().chain(["--timeout", "1"]).collect();
    let done = run(STENCIL, folder.path(), &words);
    assert_eq!(done.code, 110, "{done:?}");
    assert!(done.last_error().contains("time limit"), "{done:?}");
}

#[test]
fn a_lost_run_says_that_nothing_of_it_was_saved() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    // What another run has left there says nothing of this one.
    let before = Store::create(&folder.path().join("saved")).unwrap();
    before.begin(About::default()).unwrap().commit().unwrap();
    drop(before);
    let words: Vec<&str> = LONG.iter().copied().chain(["--checkpoint", "saved"]).collect();
    let running = start(&mut command(STENCIL, folder.path(), &words));
    wait_for_work(folder.path());
    signal(running.nodes(2)[0], "KILL");
    let done = running.done();
    assert_eq!(done.code, 69, "{done:?}");
    let sentence =
        "note: no checkpoint had been taken: nothing is left of the run, and its command begins it anew";
    assert!(done.stderr.lines().any(|line| line == sentence), "{done:?}");
}

#[test]
fn a_run_is_watched_from_outside_without_harm() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    let running = start(&mut command(STENCIL, folder.path(), &LONG));
    let watch = |words: &[&str]| run(STENCIL, folder.path(), words);
    let runs = wait_for("the run to be listed", || {
        let listed = watch(&["watch", "--list"]).stdout;
        (!listed.is_empty()).then_some(listed)
    });
    assert!(runs.starts_with("stencil2d-"), "{runs}");
    let screen = watch(&["watch", "--once"]);
    assert!(screen.code == 0 && screen.stdout.contains("stencil2d"), "{screen:?}");
    let none = watch(&["watch", "--once", "no-such-run"]);
    assert_eq!(none.code, 66, "{none:?}");
    let sentence = "error: no run here is called \"no-such-run\"; the only one is stencil2d-";
    assert!(none.last_error().starts_with(sentence), "{none:?}");
    assert!(is_alive(running.pid()));
    signal(running.pid(), "TERM");
    assert_eq!(running.done().code, 143);
}

#[test]
fn mistakes_get_one_clear_sentence_and_their_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write(path, "typo.toml", "[[node]]\nname = \"a\"\npess = 1\n");
    write(path, "gone.toml", "[[node]]\nname = \"a\"\nbinary = \"/no/such/program\"\n");
    write(path, "short.npy", "\u{93}NUMPY");
    let matmul = |words: &[&str]| run(METACHARE, path, &[&["run", "matmul"], words].concat());
    let cases = [
        (
            run(STENCIL, path, &["run", "--nodes", "typo.toml"]),
            78,
            "typo.toml:3: node \"a\" has no key `pess`",
        ),
        (run(STENCIL, path, &["run", "--nodes", "none.toml"]), 78, "none.toml"),
        (run(STENCIL, path, &["run", "--only", "x", "--built-in-nodes"]), 78, "there is no node \"x\""),
        (run(STENCIL, path, &["run", "--nodes", "gone.toml"]), 69, "node \"a\" on localhost was not started"),
        (run(STENCIL, path, &["run", "--stepps", "3"]), 64, "--steps"),
        (run(STENCIL, path, &["run", "--report", "no/folder/run.json"]), 73, "no/folder/run.json"),
        (matmul(&["--a", "short.npy", "--b", "short.npy"]), 65, "short.npy"),
        (matmul(&["--a", "none.npy", "--b", "short.npy"]), 65, "none.npy"),
        (matmul(&["--q", "0"]), 65, "--q 0"),
        (matmul(&["--n", "0"]), 65, "sides must be"),
        (matmul(&["--out", "no/folder/c.npy"]), 73, "no/folder"),
    ];
    for (done, code, words) in cases {
        assert!(done.code == code && done.stderr.contains(words), "wanted {code}, {words:?}: {done:?}");
    }
}

#[test]
fn garbage_at_a_nodes_port_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let words = ["run", "--steps", "3000", "--cells", "16", "--quiet"];
    let undisturbed = run(STENCIL, folder.path(), &words);
    let running = start(&mut command(STENCIL, folder.path(), &words));
    let ports: Vec<u16> = running.nodes(2).into_iter().flat_map(udp_ports).collect();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for n in 0..5_000u32 {
        let noise: Vec<u8> =
            (0..(n % 1300)).map(|i| (n.wrapping_mul(2_654_435_761) >> (i % 24)) as u8).collect();
        for &port in &ports {
            let _ = socket.send_to(&noise, ("127.0.0.1", port));
        }
    }
    let done = running.done();
    assert_eq!((done.code, done.stdout), (0, undisturbed.stdout));
}

/// UDP ports of a process, by the inodes of its sockets.
fn udp_ports(pid: i32) -> Vec<u16> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let sockets: Vec<String> = folder
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .filter_map(|link| {
            link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(ToString::to_string)
        })
        .collect();
    let table = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines
        .filter(|words| words.get(9).is_some_and(|inode| sockets.iter().any(|socket| socket == inode)))
        .filter_map(|words| u16::from_str_radix(words[1].split_once(':')?.1, 16).ok())
        .collect()
}

#[test]
fn no_file_is_written_over_another_that_the_same_command_names() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    write(folder.path(), "g.gr", "p sp 2 1\na 1 2 3\n");
    std::os::unix::fs::symlink("g.gr", folder.path().join("link.json")).unwrap();
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let before = ["g.gr", "nodes.toml"].map(text);
    let cases: [(&[&str], &str); 10] = [
        (&["run", "apsp", "--graph", "g.gr", "--report", "link.json"], "--graph and --report"),
        (&["run", "apsp", "--graph", "g.gr", "--statistics", "./g.gr"], "--graph and --statistics"),
        (&["run", "apsp", "--out", "x.npy", "--predecessors", "x.npy"], "--out and --predecessors"),
        (&["run", "gauss", "--out", "x.npy", "--report", "x.npy"], "--out and --report"),
        (&["run", "jacobi", "--out", "x.npy", "--record", "./x.npy"], "--out and --record"),
        (&["run", "netbench", "--json", "x.json", "--report", "x.json"], "--json and --report"),
        (&["run", "matmul", "--report", "nodes.toml"], "the nodes file and --report"),
        (&["compare", "--csv", "x", "--json", "x", "gauss"], "--csv and --json"),
        (&["plan", "--json", "g.gr", "apsp", "--graph", "g.gr"], "--graph and --json"),
        (&["replay", "g.gr", "--svg", "g.gr"], "--svg and the recording"),
    ];
    for (words, both) in cases {
        let done = run(METACHARE, folder.path(), words);
        assert_eq!((done.code, done.stderr.lines().count()), (64, 1), "{words:?}: {done:?}");
        let sentence = done.last_error();
        assert!(sentence.starts_with(&format!("error: {both} are both ")), "{words:?}: {sentence}");
        assert!(sentence.ends_with(": give each a file of its own"), "{words:?}: {sentence}");
    }
    assert_eq!(["g.gr", "nodes.toml"].map(text), before);
    assert!(!folder.path().join("x.npy").exists());
}
