//! Ends that users bring about: signals at any moment, closed and full outputs, a launcher that is stopped.

use crate::remote::Bed;
use crate::{END, LONG, METACHARE, MISBEHAVING, STENCIL, command, run};
use harness::{
    Done, Running, after, is_alive, let_pass, local_nodes, nodes_at, signal, start, start_into, wait_for,
    wait_for_work, write,
};
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Signals that end a run: its exit code and last words.
const SIGNALS: [(&str, i32, &str); 3] = [
    ("INT", 130, "error: interrupted"),
    ("TERM", 143, "error: ended by SIGTERM"),
    ("HUP", 129, "error: the terminal was closed (SIGHUP)"),
];

/// Whether this test runs under `nohup`: the programs that it starts are to outlive their terminal.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1)
}

fn signals() -> impl Iterator<Item = (&'static str, i32, &'static str)> {
    let is_ignored = is_hangup_ignored();
    SIGNALS.into_iter().filter(move |(name, ..)| !(is_ignored && *name == "HUP"))
}

fn wait_until_gone(nodes: &[i32]) {
    wait_for("the nodes to end", || nodes.iter().all(|&node| !is_alive(node)).then_some(()));
}

/// Sends a signal to a run; how it ends within the limit.
fn ended_by(running: Running, name: &str) -> Done {
    signal(running.pid(), name);
    let told = Instant::now();
    let done = running.done();
    assert!(told.elapsed() < END, "{name}: {:?}", told.elapsed());
    done
}

#[test]
fn a_signal_ends_a_run_that_works() {
    for (name, code, words) in signals() {
        let folder = tempfile::tempdir().unwrap();
        local_nodes(folder.path(), &[1, 1]);
        let running = start(&mut command(STENCIL, folder.path(), &LONG));
        wait_for_work(folder.path());
        let nodes = running.nodes(2);
        let done = ended_by(running, name);
        assert_eq!((done.code, done.last_error()), (code, words), "{done:?}");
        wait_until_gone(&nodes);
    }
}

#[test]
fn a_signal_ends_a_run_whose_nodes_are_still_starting() {
    for (name, code, words) in signals() {
        let bed = Bed::new();
        let hosts = ["good", "hangs", "stalls"].map(|host| bed.node(host, ""));
        write(bed.path(), "nodes.toml", &hosts.concat());
        let running = start(&mut bed.command(STENCIL, &LONG));
        let part = bed.path().to_string_lossy().into_owned();
        let nodes = wait_for("a node", || Some(nodes_at(&part)).filter(|nodes| nodes.len() == 1));
        let done = ended_by(running, name);
        assert_eq!((done.code, done.stderr.trim()), (code, words), "{done:?}");
        wait_until_gone(&nodes);
        bed.assert_nothing_left();
    }
}

#[test]
fn a_signal_ends_a_check() {
    let bed = Bed::new();
    write(bed.path(), "nodes.toml", &[bed.node("hangs", ""), bed.node("stalls", "")].concat());
    for (name, code, words) in signals() {
        let running = start(&mut bed.command(STENCIL, &["nodes", "check"]));
        wait_for("the host to be asked", || {
            let part = bed.path().join("connections");
            std::fs::read_to_string(part).is_ok_and(|text| text.contains("hangs")).then_some(())
        });
        let done = ended_by(running, name);
        assert_eq!((done.code, done.stderr.trim()), (code, words), "{done:?}");
        bed.assert_nothing_left();
        std::fs::remove_file(bed.path().join("connections")).unwrap();
    }
}

#[test]
fn a_time_limit_counts_from_the_start_of_the_nodes() {
    // They are silent before, while and after the program is copied.
    for (host, keys) in [("hangs", ""), ("stalls", ""), ("mute", "binary = \"BED/mute\"")] {
        let bed = Bed::new();
        let local = "[[node]]\nname = \"here\"\npes = 1\n";
        write(bed.path(), "nodes.toml", &[local, &bed.node(host, keys)].concat());
        let done = start(&mut bed.command(STENCIL, &["run", "--timeout", "1.5"])).done();
        let sentence = "error: the time limit of 1.5 s is over, and not all nodes have started";
        assert_eq!((done.code, done.stderr.trim()), (110, sentence), "{host}");
        bed.assert_nothing_left();
    }
}

/// Starting takes a longer part of the time limit than is left for the last checkpoint.
#[test]
fn a_run_is_saved_before_its_time_limit_however_long_its_nodes_take_to_start() {
    let bed = Bed::new();
    let local = "[[node]]\nname = \"here\"\npes = 1\n";
    write(bed.path(), "nodes.toml", &[local, &bed.node("late", &format!("binary = {METACHARE:?}"))].concat());
    let words = "run imbalance --chares 24 --steps 1000000 --work 20000 --speed equal --time-limit 20";
    let words: Vec<&str> = words.split(' ').chain(["--checkpoint", "saved"]).collect();
    let done = start(&mut bed.command(METACHARE, &words)).done();
    assert_eq!(done.code, 110, "{done:?}");
    assert!(done.stderr.contains("restart saved` goes on from checkpoint 1\n"), "{done:?}");
    bed.assert_nothing_left();
}

#[test]
fn a_signal_while_inputs_are_read_ends_the_program() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    for (name, code, words) in signals() {
        // Nobody writes into the pipe that it reads.
        let pipe = folder.path().join(format!("{name}.npy"));
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let pipe = pipe.to_str().unwrap();
        let words_of = ["run", "matmul", "--a", pipe, "--b", pipe];
        let running = start(&mut command(METACHARE, folder.path(), &words_of));
        wait_for("signals to be heard", || has_thread(running.pid(), "signals").then_some(()));
        let done = ended_by(running, name);
        assert_eq!((done.code, done.stderr.trim()), (code, words));
    }
}

#[test]
fn a_shortage_of_files_is_mended_or_named_with_its_mend() {
    let bed = Bed::new();
    let node = |n: u32| format!("[[node]]\nname = \"n{n}\"\npes = 1\n");
    let local: String = (0..9).map(node).collect();
    let remote: String =
        (0..9).map(|n| bed.node("good", "").replacen("\"good\"", &format!("\"n{n}\""), 1)).collect();
    let limited = |limit: &str| {
        let shell = format!("ulimit {limit}; exec {STENCIL} run --steps 3 --quiet");
        start(&mut bed.command("sh", &["-c", &shell])).done()
    };
    for nodes in [local, remote] {
        write(bed.path(), "nodes.toml", &nodes);
        let raised = limited("-S -n 32");
        assert_eq!((raised.code, raised.stderr.as_str()), (0, ""), "a limit that may be raised is raised");
        let done = limited("-n 32");
        assert_eq!((done.code, done.stderr.lines().count()), (69, 1), "{done:?}");
        assert!(
            done.stderr.contains("mend: raise the limit") && done.stderr.contains("ulimit -n"),
            "{done:?}"
        );
        assert!(!done.stderr.contains("sh -c"), "our script is nobody's business: {done:?}");
        bed.assert_nothing_left();
    }
}

#[test]
fn the_end_of_a_terminal_stays_ignored_and_an_interrupt_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    // As by `nohup`, and as in the background of a script.
    let shell = format!("trap '' HUP INT; exec {STENCIL} {}", LONG.join(" "));
    let running = start(&mut command("sh", folder.path(), &["-c", &shell]));
    wait_for_work(folder.path());
    let nodes = running.nodes(1);
    signal(running.pid(), "HUP");
    let done = ended_by(running, "INT");
    assert_eq!((done.code, done.last_error()), (130, "error: interrupted"));
    wait_until_gone(&nodes);
}

#[test]
fn a_signal_ends_the_measurement_of_speeds() {
    for words in [&["run", "matmul", "--n", "64"][..], &["nodes", "speed", "matmul", "--n", "64"]] {
        let folder = tempfile::tempdir().unwrap();
        local_nodes(folder.path(), &[1, 1]);
        let running = start(&mut command(METACHARE, folder.path(), words));
        let nodes = running.nodes(2);
        // Measuring takes 1.4 s and begins when both have threads for their PEs.
        wait_for("PEs", || nodes.iter().all(|&node| has_thread(node, "PE ")).then_some(()));
        let done = ended_by(running, "INT");
        assert_eq!((done.code, done.last_error()), (130, "error: interrupted"), "{done:?}");
        wait_until_gone(&nodes);
    }
}

/// Whether a process has a thread whose name begins so.
fn has_thread(pid: i32, name: &str) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.into_iter().any(|comm| comm.starts_with(name))
}

#[test]
fn a_driver_that_does_not_listen_ends_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    for times in 1..=2 {
        let words = ["run", "stubborn", "--report", "run.json"];
        let running = start(&mut command(MISBEHAVING, folder.path(), &words));
        wait_for_work(folder.path());
        let nodes = running.nodes(2);
        if times == 2 {
            signal(running.pid(), "INT");
        }
        let done = ended_by(running, "INT");
        assert_eq!((done.code, done.last_error()), (130, "error: interrupted"), "{done:?}");
        wait_until_gone(&nodes);
        let files = std::fs::read_dir(folder.path()).unwrap().flatten().map(|file| file.file_name());
        let files: Vec<_> = files.filter(|name| name.to_string_lossy().contains("results")).collect();
        assert!(files.is_empty(), "half a file is left: {files:?}");
    }
}

#[test]
fn a_second_signal_ends_frozen_nodes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let running = start(&mut command(STENCIL, folder.path(), &LONG));
    wait_for_work(folder.path());
    let nodes = running.nodes(2);
    nodes.iter().for_each(|&node| signal(node, "STOP"));
    signal(running.pid(), "INT");
    let done = ended_by(running, "INT");
    assert_eq!((done.code, done.last_error()), (130, "error: interrupted"), "{done:?}");
    wait_until_gone(&nodes);
}

#[test]
fn a_driver_that_panics_ends_the_run_in_order() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let done = run(MISBEHAVING, folder.path(), &["run", "panicking", "--report", "run.json"]);
    assert_eq!(done.code, 70, "{done:?}");
    assert_eq!(done.last_error(), "error: the driver panicked: a driver's mistake");
    let report = std::fs::read_to_string(folder.path().join("run.json")).unwrap();
    assert!(report.contains("a driver's mistake"), "{report}");
}

#[test]
fn a_launcher_that_is_stopped_for_a_moment_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let words = ["run", "--steps", "2000", "--cells", "16", "--quiet"];
    let undisturbed = run(STENCIL, folder.path(), &words);
    let running = start(&mut command(STENCIL, folder.path(), &words));
    wait_for_work(folder.path());
    signal(running.pid(), "STOP");
    let_pass(Duration::from_secs(2));
    signal(running.pid(), "CONT");
    let done = running.done();
    assert_eq!((done.code, done.stdout), (0, undisturbed.stdout), "{}", done.stderr);
}

#[test]
fn a_launcher_that_is_stopped_for_long_says_so_and_leaves_no_node() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let running = start(&mut command(STENCIL, folder.path(), &LONG));
    wait_for_work(folder.path());
    let nodes = running.nodes(2);
    signal(running.pid(), "STOP");
    // They give it up after some seconds of silence.
    wait_until_gone(&nodes);
    signal(running.pid(), "CONT");
    let done = running.done();
    assert_eq!(done.code, 69, "{done:?}");
    assert!(done.last_error().starts_with("error: the launcher itself stood still for "), "{done:?}");
    assert!(["\"a\"", "\"b\""].iter().all(|name| !done.last_error().contains(name)), "{done:?}");
}

/// A command's output into a pipe that nobody reads, and into a device that is full.
fn unread(command: &mut Command) -> Done {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    start_into(command.stdin(Stdio::null()).stderr(Stdio::piped()), writer).done()
}

fn into_full(command: &mut Command) -> Done {
    let full = File::options().write(true).open("/dev/full").expect("a device that is full");
    start_into(command.stdin(Stdio::null()).stderr(Stdio::piped()), full).done()
}

#[test]
fn a_closed_output_is_no_error_and_a_full_one_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let matmul = ["run", "matmul", "--n", "32", "--speed", "equal", "--out", "c.npy"];
    // A driver that prints cannot go on; what only the command line prints is not missed.
    let cases: [(&str, &[&str], i32); 6] = [
        (METACHARE, &matmul, 0),
        (MISBEHAVING, &["run", "talking", "--lines", "100"], 0),
        (MISBEHAVING, &["run", "printing"], 141),
        (METACHARE, &["nodes", "list"], 0),
        (METACHARE, &["nodes", "check"], 0),
        (METACHARE, &["--help"], 0),
    ];
    for (program, words, code) in cases {
        let done = unread(&mut command(program, folder.path(), words));
        assert_eq!((done.code, done.stderr.as_str()), (code, ""), "{words:?}");
        let done = into_full(&mut command(program, folder.path(), words));
        let sentence = "error: standard output cannot be written: No space left on device (os error 28)\n";
        assert_eq!((done.code, done.stderr.as_str()), (73, sentence), "{words:?}");
    }
    assert!(folder.path().join("c.npy").exists(), "the result is written in any case");
}

#[test]
fn the_first_line_can_be_taken_and_the_rest_left() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let pipeline = format!("{MISBEHAVING} run printing --lines 100000 | head -1");
    let done = start(&mut command("sh", folder.path(), &["-c", &pipeline])).done();
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "line 0\n", ""));
}

#[test]
fn closed_streams_harm_nothing() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let words = "run --steps 20 --report run.json";
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let shell = format!("exec {STENCIL} {words} {closed}");
        let done = start(&mut command("sh", folder.path(), &["-c", &shell])).done();
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{closed}");
        let is_said = after(&done.stdout, "step 20: ").is_some();
        assert_eq!(is_said, !closed.contains(">&-") || closed == "2>&-", "{closed}: {done:?}");
        std::fs::remove_file(folder.path().join("run.json")).unwrap();
    }
}

#[test]
fn runs_side_by_side_are_watched_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1]);
    let watch = |words: &[&str]| run(STENCIL, folder.path(), &[&["watch"], words].concat());
    let running = [(); 2].map(|()| start(&mut command(STENCIL, folder.path(), &LONG)));
    let names = wait_for("two jobs", || {
        let listed: Vec<String> = watch(&["--list"]).stdout.lines().map(ToString::to_string).collect();
        (listed.len() == 2).then_some(listed)
    });
    let unsure = watch(&["--once"]);
    let asks = names.iter().all(|name| unsure.last_error().contains(name.as_str()));
    assert!(unsure.code == 66 && asks, "{unsure:?}");
    for (name, other) in [(&names[0], &names[1]), (&names[1], &names[0])] {
        let screen = watch(&["--once", name]);
        let is_it = screen.stdout.contains(name.as_str()) && !screen.stdout.contains(other.as_str());
        assert!(screen.code == 0 && is_it, "{screen:?}");
    }
    let [first, second] = running;
    assert_eq!(ended_by(first, "INT").code, 130);
    let left = watch(&["--list"]).stdout;
    assert_eq!(left.lines().count(), 1);
    assert_eq!(watch(&["--once"]).code, 0);
    assert_eq!(ended_by(second, "INT").code, 130);
    assert_eq!(watch(&["--list"]).stdout, "");
}
