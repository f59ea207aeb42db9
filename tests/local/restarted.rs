//! Runs that are saved on their way, ended or killed, and gone on with on other nodes.

use super::packed::ALL;
use super::{METACHARE, STENCIL, command, run};
use harness::{local_nodes, signal, start, wait_for, wait_for_work};
use runtime::checkpoint::{Kind, Store};
use runtime::loads::KnownLoads;
use runtime::proto::sim::Random;
use runtime::saved::RecordOf;
use serde_json::Value;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

/// How a run can be saved while it goes on.
const PROTOCOLS: [&str; 2] = ["--checkpoint-protocol=snapshot", "--checkpoint-protocol=barrier"];
/// Checkpoints while there is a run of any length.
const OFTEN: [&str; 4] = ["--checkpoint", "saved", "--checkpoint-every", "0.0005"];

#[test]
fn applications_give_the_same_bits_from_their_checkpoints_on_any_nodes() {
    for (number, (words, option, name, _)) in ALL.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        local_nodes(folder, &[2, 1]);
        let words: Vec<&str> = ["run"].into_iter().chain(words.split(' ')).collect();
        let how = ["--speed", "equal", PROTOCOLS[number % 2], option, name];
        let done = run(METACHARE, folder, &[&words, &how[..], &OFTEN].concat());
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
        assert!(
            done.stderr.contains("checkpoint 1:") || done.stdout.contains("checkpoint 1:"),
            "{words:?}: {done:?}"
        );
        let whole = fs::read(folder.join(name)).unwrap();
        // Fewer nodes, as many, and more PEs, in turn.
        let pes: &[u32] = [&[1][..], &[1, 1, 1], &[2, 2]][number % 3];
        local_nodes(folder, pes);
        fs::remove_file(folder.join(name)).unwrap();
        let done = run(
            METACHARE,
            folder,
            &[
                "restart",
                "saved",
                "--quiet",
                "--speed",
                "equal",
                "--checkpoint",
                "others",
                "--report",
                "on.json",
            ],
        );
        assert_eq!(done.code, 0, "{words:?} on {pes:?}: {done:?}");
        let report: Value = serde_json::from_slice(&fs::read(folder.join("on.json")).unwrap()).unwrap();
        let restored = &report["restored"];
        assert!(restored["bytes"].as_u64() > Some(0), "{restored}");
        assert_eq!(restored["read_by_nodes"], restored["bytes"], "nodes that see the folder read it");
        let facts = &report["facts"];
        let by_clock =
            ["speedup", "step_s", "ns_per_particle_and_step", "nodes_per_s"].iter().map(|key| &facts[key]);
        let mut by_clock = by_clock.chain([&facts["tables"]["communication_percent"]]);
        assert!(by_clock.all(Value::is_null), "what was done before has no time by the clock: {facts}");
        let nodes = report["nodes"].as_array().unwrap().iter().zip(pes);
        let speeds: Vec<f64> =
            nodes.map(|(node, pes)| node["speed"].as_f64().unwrap() / f64::from(*pes)).collect();
        let is_fair = speeds.iter().all(|speed| *speed > 0.0 && (speed / speeds[0] - 1.0).abs() < 1e-9);
        assert!(is_fair, "PEs that the run did not begin with are as fast: {speeds:?}");
        assert!(fs::read(folder.join(name)).unwrap() == whole, "{words:?} on {pes:?} gives other bits");
    }
}

/// Counts of PEs before and after, in nodes.
const PES: [&[u32]; 5] = [&[1], &[1, 1], &[2, 1], &[2, 2], &[4, 2, 2]];
/// So many of all cases are tried each time.
const SAMPLE: usize = 6;

/// From any checkpoint, not only the last, on any count of PEs: some cases that the seed `METACHARE_SEED` chooses, or all if
/// `METACHARE_ALL_RESTARTS` is set. Without a seed it is the number of the day.
#[test]
fn applications_give_the_same_bits_from_any_checkpoint_on_any_count_of_pes() {
    let today = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / (24 * 60 * 60);
    let seed = env::var("METACHARE_SEED").map_or_else(|_| today(), |seed| seed.parse().unwrap());
    let mut random = Random::new(seed);
    let pairs = || PES.into_iter().flat_map(|before| PES.map(|after| (before, after)));
    let mut cases: Vec<_> = ALL.into_iter().flat_map(|app| pairs().map(move |pes| (app, pes))).collect();
    if env::var_os("METACHARE_ALL_RESTARTS").is_none() {
        cases = (0..SAMPLE).map(|_| cases.swap_remove(random.below(cases.len() as u64) as usize)).collect();
    }
    for ((words, option, name, _), (before, after)) in cases {
        let protocol = PROTOCOLS[random.below(2) as usize];
        let context = format!("{words} {protocol} on {before:?}, gone on with on {after:?}, seed {seed}");
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        local_nodes(folder, before);
        let words: Vec<&str> = ["run"].into_iter().chain(words.split(' ')).collect();
        let how = ["--quiet", "--speed", "equal", "--checkpoint-keep", "1000", protocol, option, name];
        let done = run(METACHARE, folder, &[&words, &how[..], &OFTEN].concat());
        assert_eq!(done.code, 0, "{context}: {done:?}");
        let whole = fs::read(folder.join(name)).unwrap();
        fs::remove_file(folder.join(name)).unwrap();
        let last = u64::from(last(folder));
        assert!(last > 0, "{context}: {done:?}");
        let from = (1 + random.below(last)).to_string();
        local_nodes(folder, after);
        let words = [
            "restart",
            "saved",
            "--generation",
            &from,
            "--quiet",
            "--speed",
            "equal",
            "--checkpoint",
            "others",
        ];
        let done = run(METACHARE, folder, &words);
        assert_eq!(done.code, 0, "{context}, from {from} of {last}: {done:?}");
        assert!(
            fs::read(folder.join(name)).unwrap() == whole,
            "{context}, from {from} of {last}: other bits"
        );
    }
}

/// Whoever has more PEs than it has itself does no more with them, so that its chares are no more either.
#[test]
fn a_node_that_takes_more_pes_than_its_own_is_worth_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1; 4]);
    let words = "run imbalance --pattern even --chares 36 --steps 60 --work 20000 --speed equal --quiet";
    let words: Vec<&str> = words.split(' ').collect();
    let done = run(METACHARE, folder, &[&words[..], &OFTEN].concat());
    assert_eq!(done.code, 0, "{done:?}");
    local_nodes(folder, &[1; 3]);
    let words = "restart saved --quiet --speed equal --checkpoint others --report on.json";
    let done = run(METACHARE, folder, &words.split(' ').collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
    let report: Value = serde_json::from_slice(&fs::read(folder.join("on.json")).unwrap()).unwrap();
    let nodes = report["nodes"].as_array().unwrap();
    let pes = nodes.iter().map(|node| node["pes"].as_array().unwrap());
    let speeds = pes.map(|pes| pes.iter().map(|pe| pe["speed"].as_f64().unwrap()).collect::<Vec<_>>());
    assert_eq!(speeds.collect::<Vec<_>>(), [vec![0.5; 2], vec![1.0], vec![1.0]]);
}

/// The work of each of 16 chares in a second, as the newest checkpoint says.
fn loads(folder: &Path) -> Vec<f64> {
    let saved =
        Store::open(&folder.join("saved")).and_then(|store| store.latest()).expect("the run was saved");
    let mut records = saved.records_of_kind(Kind::Node).filter_map(Result::ok);
    let loads = records.find(|record| record.header().is_some_and(|header| header.of == RecordOf::Loads));
    let known: KnownLoads = chares::pup::unpack(&loads.expect("loads are saved").packed).expect("loads");
    let of = |at| known.chares.iter().find(|(element, _)| element.index.0[0] == at).map(|(_, work)| *work);
    (0..16).map(|at| of(at).expect("the load of each chare")).collect()
}

/// They do as much as others in each step, and what holds them back is their node.
#[test]
fn chares_on_a_node_with_a_share_of_its_core_are_as_heavy_as_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let nodes = "[[node]]\nname = \"a\"\npes = 1\n[[node]]\nname = \"b\"\npes = 1\ncpu_share = 0.2\n";
    fs::write(folder.join("nodes.toml"), nodes).unwrap();
    let words = "run imbalance --pattern even --chares 16 --steps 40 --work 200000 --speed equal --quiet \
                 --checkpoint saved --checkpoint-every 0.5";
    let done = run(METACHARE, folder, &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
    let loads = loads(folder);
    let [whole, held] = [0, 8].map(|first| loads[first..first + 8].iter().sum::<f64>());
    assert!((0.6..1.7).contains(&(held / whole)), "{loads:?}");
}

/// What the driver and chares do on PEs that the run did not begin with, wherever in the midst of the work it goes on, and however
/// chares are placed there.
#[test]
fn runs_that_were_saved_in_the_midst_of_their_work_go_on_on_more_pes() {
    let mut placed = 0;
    for (words, sizes) in [
        ("run matmul --grain 4 --algorithm conventional --deterministic --out out --n", [300, 900, 2700]),
        (
            "run mis --density 0.2 --deterministic --checkpoint-protocol snapshot --out out --vertices",
            [150, 190, 230],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        local_nodes(folder, &[1]);
        let last = saved_so_often(3, folder, words, &sizes);
        let whole = fs::read(folder.join("out")).unwrap();
        local_nodes(folder, &[2, 1]);
        let mut maps = ["block", "cyclic", "comm", "keep"].into_iter().cycle();
        for from in (1..=last).step_by(1 + last as usize / 6) {
            fs::remove_file(folder.join("out")).unwrap();
            let from = from.to_string();
            let map = maps.next().unwrap();
            let words = ["restart", "saved", "--generation", &from, "--map", map, "--speed", "equal"];
            let done = run(METACHARE, folder, &[&words[..], &["--checkpoint", "others"]].concat());
            assert_eq!(done.code, 0, "from {from} of {last} ({map}): {done:?}");
            // Before there are chares there is nothing to place.
            let says_where = done.stderr.contains(&format!("chares are placed anew ({map}): "));
            assert!(!says_where || map != "keep", "{done:?}");
            placed += u32::from(says_where);
            let is_same = fs::read(folder.join("out")).unwrap() == whole;
            assert!(is_same, "from {from} of {last} ({map}): other bits");
        }
    }
    assert!(placed > 0, "nothing was placed anew");
}

/// Makes a run, of the first of these sizes in which it is saved at least so often: that depends on the disk, too. Gives the
/// number of its last checkpoint.
fn saved_so_often(least: u32, folder: &Path, words: &str, sizes: &[u32]) -> u32 {
    let how = ["--quiet", "--speed", "equal", "--checkpoint-keep", "1000"];
    for size in sizes {
        let _ = fs::remove_dir_all(folder.join("saved"));
        let size = size.to_string();
        let words: Vec<&str> = words.split(' ').chain([&*size]).chain(how).chain(OFTEN).collect();
        let done = run(METACHARE, folder, &words);
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
        let last = last(folder);
        if last >= least {
            return last;
        }
    }
    panic!("{words} of none of the sizes {sizes:?} is saved {least} times");
}

/// What was measured at the beginning is not measured again, and whether a run is recorded makes no difference.
#[test]
fn a_recorded_run_that_measured_what_it_takes_goes_on_unrecorded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[2, 1]);
    let words = "run pic --particles 2000 --cells 24x6 --steps 40 --scheme auto --speed equal --verify --record run.mcr";
    let begun = run(METACHARE, folder, &[&words.split(' ').collect::<Vec<_>>()[..], &OFTEN].concat());
    assert_eq!(begun.code, 0, "{begun:?}");
    let done = run(METACHARE, folder, &["restart", "saved", "--speed", "equal"]);
    assert_eq!(done.code, 0, "{done:?}");
}

/// Its launcher killed outright, or stopped from outside, a run goes on where it was saved last: each time on other nodes.
#[test]
fn a_run_that_is_killed_or_stopped_over_and_over_comes_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words =
        "run imbalance --chares 24 --steps 2000 --work 20000 --reduce-every 3 --speed equal --out ends.npy";
    let words: Vec<&str> = words.split(' ').collect();
    local_nodes(folder, &[1, 2]);
    assert_eq!(run(METACHARE, folder, &words).code, 0);
    let whole = fs::read(folder.join("ends.npy")).unwrap();
    fs::remove_file(folder.join("ends.npy")).unwrap();
    for pes in [&[1, 2][..], &[3], &[1, 1, 1]] {
        local_nodes(folder, pes);
        let begins = pes == [1, 2];
        let words =
            if begins { [&words[..], &OFTEN].concat() } else { vec!["restart", "saved", "--speed", "equal"] };
        let here = |words: &[&str]| {
            let mut command = command(METACHARE, folder, words);
            command.env("XDG_RUNTIME_DIR", folder);
            start(&mut command)
        };
        let (running, before) = (here(&words), last(folder));
        wait_for("another checkpoint", || (last(folder) > before).then_some(()));
        if pes != [1, 1, 1] {
            signal(running.pid(), "KILL");
            assert_eq!(running.done().code, 128 + 9);
            continue;
        }
        let listed = here(&["watch", "--list"]).done();
        let stopped = here(&["checkpoint", listed.stdout.trim(), "--stop"]).done();
        assert!(
            stopped.code == 0 && stopped.stdout.contains("; the run ends, and `metachare restart /"),
            "{stopped:?}"
        );
        let ended = running.done();
        assert!(ended.code == 0 && ended.stderr.contains("the run was ended after checkpoint"), "{ended:?}");
    }
    local_nodes(folder, &[2]);
    let done = run(METACHARE, folder, &["restart", "saved"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("going on from checkpoint"), "{done:?}");
    assert!(fs::read(folder.join("ends.npy")).unwrap() == whole, "other bits after three deaths");
}

/// Who ends processes in good order, as batch systems do, has a run saved by that.
#[test]
fn a_run_is_saved_before_sigterm_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    let words =
        "run imbalance --chares 24 --steps 900 --work 20000 --reduce-every 3 --speed equal --out ends.npy";
    let words: Vec<&str> = words.split(' ').collect();
    assert_eq!(run(METACHARE, folder, &words).code, 0);
    let whole = fs::read(folder.join("ends.npy")).unwrap();
    fs::remove_file(folder.join("ends.npy")).unwrap();
    let words = [&words[..], &["--checkpoint", "saved", "--checkpoint-every", "10000steps"]].concat();
    let running = start(&mut command(METACHARE, folder, &words));
    wait_for_work(folder);
    // One by name first: then it is sure that the run can be saved.
    let listed = run(METACHARE, folder, &["watch", "--list"]);
    let saved = run(METACHARE, folder, &["checkpoint", listed.stdout.trim()]);
    assert_eq!((saved.code, last(folder)), (0, 1), "{saved:?}");
    signal(running.pid(), "TERM");
    let ended = running.done();
    assert_eq!((ended.code, last(folder)), (128 + 15, 2), "{ended:?}");
    goes_on(folder, &[], "ends.npy", &whole);
}

/// A trial finds out what is done in so many seconds, and would find something else the next time.
#[test]
fn a_run_of_so_many_seconds_goes_on_with_the_work_that_it_has_found() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    for words in [
        "imbalance --chares 24 --steps 60 --seconds 0.6 --verify",
        "matmul --algorithm fox --seconds 0.3 --verify",
    ] {
        let words: Vec<&str> = ["run"].into_iter().chain(words.split(' ')).collect();
        let done = run(METACHARE, folder, &[&words[..], &["--speed", "equal"], &OFTEN].concat());
        assert_eq!(done.code, 0, "{done:?}");
        let shown = run(METACHARE, folder, &["checkpoint", "show", "saved", "--json"]);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        let arguments = shown["about"]["arguments"].to_string();
        assert!(!arguments.contains("--seconds") && arguments.contains("\"--verify\""), "{arguments}");
        let done = run(METACHARE, folder, &["restart", "saved", "--quiet", "--speed", "equal"]);
        assert_eq!(done.code, 0, "{done:?}");
        fs::remove_dir_all(folder.join("saved")).unwrap();
    }
}

/// The number of the last checkpoint in the folder `saved` of a folder; 0 if there is none.
fn last(folder: &Path) -> u32 {
    let entries = fs::read_dir(folder.join("saved")).into_iter().flatten().flatten();
    let whole = entries.filter(|entry| entry.path().join("COMMIT").exists());
    let number = |name: String| name.rsplit('-').next().and_then(|number| number.parse().ok());
    whole.filter_map(|entry| number(entry.file_name().to_string_lossy().into_owned())).max().unwrap_or(0)
}

/// What PEs find damaged where they read it themselves is named by the launcher, with the file and the checkpoint before it.
#[test]
fn what_is_damaged_is_named_though_nodes_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 2]);
    let number = saved_so_often(2, folder, "run jacobi --blocks-per-pe 3 --n", &[1200, 2400, 4800]);
    let chunks = format!("saved/generation-{number:06}/chunks");
    let mut bytes = fs::read(folder.join(&chunks)).unwrap();
    bytes[0] ^= 1;
    fs::write(folder.join(&chunks), bytes).unwrap();
    let done = run(METACHARE, folder, &["restart", "saved", "--speed", "equal"]);
    assert_eq!(done.code, 65, "{done:?}");
    let named = format!(
        "error: generation {number} is damaged: {chunks}: the checksum of a chunk is wrong (byte 0, "
    );
    let offered = format!("; generation {} is there, use that one", number - 1);
    let sentence = done.last_error();
    assert!(sentence.starts_with(&named) && sentence.ends_with(&offered), "{done:?}");
}

/// What is wrong with a folder, or with what is asked of it, is said in one sentence, and nothing is begun.
#[test]
fn what_cannot_be_gone_on_with_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1]);
    let refused = |words: &[&str]| {
        let done = run(METACHARE, folder, words);
        assert!(done.code != 0 && !done.last_error().contains("panicked"), "{done:?}");
        done.last_error().to_string()
    };
    let none = refused(&["restart", "nowhere"]);
    assert!(none.contains("nowhere"), "{none}");
    let time = refused(&["run", "imbalance", "--checkpoint", "x", "--checkpoint-every", "often"]);
    assert!(time.contains("help") || time.contains("90s, 10m or 2h"), "{time}");
    let few = refused(&["run", "imbalance", "--checkpoint", "x", "--checkpoint-keep", "1"]);
    assert!(few.contains("1 is not in 2..") || few.contains("--help"), "{few}");
    let options = [["every", "1m"], ["protocol", "snapshot"], ["keep", "3"]];
    for alone in options.map(|[name, value]| [format!("--checkpoint-{name}"), value.into()]) {
        let alone = alone.each_ref().map(String::as_str);
        let said = refused(&[&["run", "imbalance"], &alone[..]].concat());
        assert!(said.contains(&format!("{}: say where the run is to be saved", alone[0])), "{said}");
    }
    let words = "run imbalance --chares 4 --steps 20 --work 20000 --speed equal";
    let words: Vec<&str> = words.split(' ').chain(OFTEN).collect();
    let done = run(METACHARE, folder, &words);
    assert_eq!(done.code, 0, "{done:?}");
    let other = run(STENCIL, folder, &["restart", "saved"]);
    assert!(
        other.last_error().contains("saved holds a run of metachare, and this is stencil2d"),
        "{other:?}"
    );
    let of_run = run(METACHARE, folder, &["restart", "saved", "--steps", "7"]);
    let why = "note: --steps is saved with the run and stays what it was; `metachare help checkpoint` tells";
    assert!(of_run.code == 64 && of_run.stderr.contains(why), "{of_run:?}");
    let generation = refused(&["restart", "saved", "--generation", "9999"]);
    assert!(generation.contains("9999"), "{generation}");
    fs::write(folder.join("far.toml"), "[[node]]\nname = \"far\"\nhost = \"far\"\n").unwrap();
    let far = refused(&["restart", "saved", "--nodes", "far.toml"]);
    assert!(far.contains("node far: say `pes = N` of it in"), "{far}");
}

#[test]
fn a_signal_to_save_a_run_that_keeps_nothing_is_refused_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1]);
    let words = "run imbalance --chares 24 --steps 1000000 --work 20000 --speed equal --log-dir logs";
    let running = start(&mut command(METACHARE, folder, &words.split(' ').collect::<Vec<_>>()));
    wait_for_work(folder);
    signal(running.pid(), "USR1");
    wait_for("the warning", || {
        let logs = fs::read_dir(folder.join("logs")).ok()?.flatten();
        let texts = logs.filter_map(|log| fs::read_to_string(log.path()).ok());
        texts.into_iter().any(|text| text.contains("SIGUSR1 saves nothing")).then_some(())
    });
    signal(running.pid(), "INT");
    let ended = running.done();
    let why =
        "warning: SIGUSR1 saves nothing, as this run keeps no checkpoints: start it with `--checkpoint DIR`";
    assert!(ended.code == 130 && ended.stderr.contains(why), "{ended:?}");
}

/// However early it comes: what comes before the run has begun is obeyed then.
#[test]
fn a_signal_has_a_run_saved_and_does_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    let words = "run imbalance --chares 24 --steps 1000000 --work 20000 --reduce-every 3 --speed equal --checkpoint saved";
    let words: Vec<&str> = words.split(' ').chain(["--checkpoint-every", "1h"]).collect();
    let running = start(&mut command(METACHARE, folder, &words));
    wait_for("the folder", || folder.join("saved").exists().then_some(()));
    signal(running.pid(), "USR1");
    let saved = |number: u32| {
        let whole = folder.join(format!("saved/generation-{number:06}/COMMIT"));
        wait_for("a checkpoint", || whole.exists().then_some(()));
    };
    saved(1);
    signal(running.pid(), "USR1");
    saved(2);
    // One that cannot be taken is a warning of one line, and the run goes on.
    fs::rename(folder.join("saved"), folder.join("moved")).unwrap();
    fs::write(folder.join("saved"), "in its way").unwrap();
    let listed = run(METACHARE, folder, &["watch", "--list"]);
    let refused = run(METACHARE, folder, &["checkpoint", listed.stdout.trim()]);
    assert!(refused.code != 0 && refused.stderr.contains("no checkpoint was taken"), "{refused:?}");
    signal(running.pid(), "INT");
    let ended = running.done();
    assert_eq!(ended.code, 130);
    let told: Vec<&str> =
        ended.stderr.lines().filter(|line| line.contains("no checkpoint was taken")).collect();
    assert!(
        matches!(told[..], [line] if line.starts_with("warning: no checkpoint was taken, and the run goes on: ")),
        "{ended:?}"
    );
}

/// From the last checkpoint a run gives what it would have given without interruption.
fn goes_on(folder: &Path, options: &[&str], name: &str, whole: &[u8]) {
    let done = run(METACHARE, folder, &[&["restart", "saved", "--quiet"], options].concat());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fs::read(folder.join(name)).is_ok_and(|bytes| bytes == whole), "other bits");
}

/// A matrix that the nodes have, not the launcher; and of which they write nothing again, because nobody has changed it.
#[test]
fn nodes_that_see_the_folder_write_what_they_have_themselves() {
    for protocol in PROTOCOLS {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        local_nodes(folder, &[2, 1]);
        let words = "run jacobi --n 1200 --blocks-per-pe 3 --dominance 1.01 --speed equal --out x.npy --report run.json";
        let words: Vec<&str> = words.split(' ').chain([protocol]).chain(OFTEN).collect();
        let done = run(METACHARE, folder, &words);
        assert_eq!(done.code, 0, "{done:?}");
        let whole = fs::read(folder.join("x.npy")).unwrap();
        let report: Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
        let bytes = |checkpoint: &Value| {
            ["new_bytes", "written_by_nodes"].map(|key| checkpoint[key].as_u64().unwrap())
        };
        let checkpoints: Vec<[u64; 2]> =
            report["checkpoints"].as_array().unwrap().iter().map(bytes).collect();
        // The matrix comes in parts, which may be saved on their way, too.
        let long: Vec<[u64; 2]> = checkpoints.iter().filter(|[new, _]| *new > 1 << 20).copied().collect();
        let [new, written] = [0, 1].map(|at| long.iter().map(|bytes| bytes[at]).sum::<u64>());
        let matrix = 1200 * 1200 * 8;
        assert!(
            (matrix / 10 * 9..3 * matrix).contains(&new) && written * 20 > new * 19,
            "{protocol}: {checkpoints:?}"
        );
        let verified = run(METACHARE, folder, &["checkpoint", "verify", "saved"]);
        assert_eq!(verified.code, 0, "{verified:?}");
        local_nodes(folder, &[1, 1, 2]);
        fs::remove_file(folder.join("x.npy")).unwrap();
        goes_on(folder, &["--speed", "equal"], "x.npy", &whole);
    }
}

/// Each process sees its own working folder there, and that of one node is not the launcher's.
#[test]
fn a_node_that_does_not_see_the_folder_sends_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("apart")).unwrap();
    let apart = folder.join("apart");
    let nodes = format!(
        "[[node]]\nname = \"here\"\npes = 1\n[[node]]\nname = \"apart\"\npes = 1\nworkdir = {:?}\n",
        apart.display().to_string()
    );
    fs::write(folder.join("nodes.toml"), nodes).unwrap();
    let words = "run jacobi --n 1200 --dominance 1.01 --speed equal --out x.npy --report run.json";
    let often = ["--checkpoint", "/proc/self/cwd/saved", "--checkpoint-every", "0.0005"];
    let words: Vec<&str> = words.split(' ').chain(often).collect();
    let done = run(METACHARE, folder, &words);
    assert_eq!(done.code, 0, "{done:?}");
    let whole = fs::read(folder.join("x.npy")).unwrap();
    let report: Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    let checkpoints = report["checkpoints"].as_array().unwrap();
    let sum = |key: &str| checkpoints.iter().map(|one| one[key].as_u64().unwrap()).sum::<u64>();
    let (new, written) = (sum("new_bytes"), sum("written_by_nodes"));
    let half = 1200 * 1200 * 8 / 2;
    assert!(written >= half / 10 * 9 && new - written >= half / 10 * 9, "{written} of {new}");
    assert!(fs::read_dir(&apart).unwrap().next().is_none(), "nothing is written elsewhere");
    fs::remove_file(folder.join("x.npy")).unwrap();
    local_nodes(folder, &[2]);
    goes_on(folder, &["--speed", "equal"], "x.npy", &whole);
}
