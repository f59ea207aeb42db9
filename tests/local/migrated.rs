//! Runs that are under way and go on on other nodes, by one command.

use super::remote::Bed;
use super::{METACHARE, command, run};
use harness::{is_alive, local_nodes, start, wait_for, wait_for_work, write};
use std::fs;

const WORDS: &str = "run imbalance --chares 24 --steps 2400 --work 20000 --reduce-every 3 --out ends.npy";

#[test]
fn a_run_goes_on_on_other_nodes_by_one_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    write(folder, "others.toml", "[[node]]\nname = \"x\"\npes = 2\n[[node]]\nname = \"y\"\npes = 1\n");
    let words: Vec<&str> = WORDS.split(' ').chain(["--speed", "equal"]).collect();
    let alone = run(METACHARE, folder, &words);
    assert_eq!(alone.code, 0, "{alone:?}");
    let whole = fs::read(folder.join("ends.npy")).unwrap();
    fs::remove_file(folder.join("ends.npy")).unwrap();
    let saving = [&words[..], &["--checkpoint", "saved", "--checkpoint-every", "9000steps"]].concat();
    let running = start(&mut command(METACHARE, folder, &saving));
    let nodes = running.nodes(2);
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let migrate =
        ["migrate", name.trim(), "--nodes", "others.toml", "--speed", "equal", "--report", "on.json"];
    let gone_on = run(METACHARE, folder, &[&migrate[..], &["--checkpoint", "./saved"]].concat());
    assert_eq!(gone_on.code, 0, "{gone_on:?}");
    // It is saved as often as before in the same folder, whatever that is called.
    assert!(gone_on.stdout.contains("\nsaved "), "{gone_on:?}");
    let told = gone_on.stderr.lines().find(|line| line.contains(": the run was away for "));
    let parts = [": saved in ", ", ended in ", ", other nodes ready after ", ", restored in "];
    assert!(told.is_some_and(|told| parts.iter().all(|part| told.contains(part))), "{gone_on:?}");
    let left = running.done();
    assert!(left.code == 0 && left.stderr.contains(", as was asked for"), "{left:?}");
    assert!(nodes.iter().all(|node| !is_alive(*node)));
    assert!(fs::read(folder.join("ends.npy")).unwrap() == whole, "other bits after the run has moved");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("on.json")).unwrap()).unwrap();
    let names: Vec<_> = report["nodes"].as_array().unwrap().iter().map(|node| &node["name"]).collect();
    assert_eq!(names, ["x", "y"]);
}

#[test]
fn a_run_that_cannot_go_on_elsewhere_stays_where_it_is() {
    let bed = Bed::new();
    let folder = bed.path();
    local_nodes(folder, &[1, 1]);
    fs::create_dir(folder.join("below")).unwrap();
    write(folder, "refused.toml", &bed.node("refused", ""));
    let sizeless = bed.node("good", "").replace("pes = 1\n", "");
    write(folder, "unsized.toml", &sizeless);
    let words = WORDS.replace("2400", "1000000");
    let words: Vec<&str> = words.split(' ').chain(["--speed", "equal"]).collect();
    let running = start(&mut bed.command(METACHARE, &[&words[..], &["--checkpoint", "saved"]].concat()));
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let name = name.trim();
    let migrate = |nodes: &str| bed.run(METACHARE, &["migrate", name, "--nodes", nodes]);
    let stays = format!("error: {name} stays where it is: ");
    let refused = migrate("refused.toml");
    assert!(
        refused.code == 69 && refused.last_error().starts_with(&(stays.clone() + "refused: ")),
        "{refused:?}"
    );
    assert!(refused.last_error().contains("Connection refused; mend: "), "{refused:?}");
    let sizeless = migrate("unsized.toml");
    assert!(sizeless.code == 78 && sizeless.last_error().contains("say `pes = N`"), "{sizeless:?}");
    let mut elsewhere = command(METACHARE, folder, &["migrate", name, "--nodes", "../nodes.toml"]);
    let elsewhere = start(elsewhere.current_dir(folder.join("below"))).done();
    let sentence =
        format!("{stays}its files are named from the folder in which it was started; go there: cd ");
    assert!(elsewhere.code == 64 && elsewhere.last_error().starts_with(&sentence), "{elsewhere:?}");
    // What would be refused of any run is refused while this one is there.
    let options: [(&str, &str, i32); 4] = [
        ("--events", "/proc/none", 73),
        ("--log-dir", "/proc/none", 73),
        ("--checkpoint", "/proc/none", 73),
        ("--speed", "file", 64),
    ];
    for (option, value, code) in options {
        let done = run(METACHARE, folder, &["migrate", name, option, value]);
        assert!(done.code == code && done.last_error().starts_with(&stays), "{option} {value}: {done:?}");
    }
    let unknown = migrate("none.toml");
    assert!(unknown.code == 78 && unknown.last_error().contains("none.toml"), "{unknown:?}");
    assert!(is_alive(running.pid()));
    assert_eq!(run(METACHARE, folder, &["checkpoint", name, "--stop"]).code, 0);
    running.done();
    // One that is not saved at all.
    let running = start(&mut bed.command(METACHARE, &words));
    wait_for("another run", || {
        let listed = run(METACHARE, folder, &["watch", "--list"]).stdout;
        (!listed.is_empty() && listed.trim() != name).then_some(())
    });
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let unsaved = bed.run(METACHARE, &["migrate", name.trim()]);
    let sentence = "error: this run keeps no checkpoints: start it with `--checkpoint DIR`";
    assert_eq!((unsaved.code, unsaved.last_error()), (69, sentence), "{unsaved:?}");
    harness::signal(running.pid(), "TERM");
    running.done();
    bed.assert_nothing_left();
}
