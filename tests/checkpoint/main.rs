//! Folders of checkpoints, as others read them: a reader in Python that was written from the specification alone, and
//! the program's own commands.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod exchanged;

use harness::{Done, local_nodes, start};
use runtime::architecture::Architecture;
use runtime::buffer::Buffer;
use runtime::checkpoint::{About, Kind, Machine, Record, SavedSchema, SavedVariable, Store};
use runtime::envelope::Packed;
use runtime::schema::Shape;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoint/reader.py");

/// What the reader is to find: values short enough for tables, of one chunk exactly, and of several.
fn records() -> Vec<Record> {
    let sizes = [(0, 0), (900, 1024), (1025, 65_536), (150_000, 65_537), (3, 400_000)];
    let kinds = [Kind::Chare, Kind::Chare, Kind::Pe, Kind::Node, Kind::Driver];
    let bytes =
        |seed: usize, len: usize| (0..len).map(|n| (n * 31 + n / 251 * seed) as u8).collect::<Vec<_>>();
    (0..40)
        .map(|n| {
            let (body, array) = sizes[n / 2 % 5];
            let attachments = vec![Buffer::from_slice(&bytes(n + 1, array)); n % 3];
            Record {
                kind: kinds[n % 5],
                pe: n as u32 % 3,
                type_name: format!("Blöck<{}>", n % 2),
                collection: 1 << 40,
                index: [n as u32, u32::MAX, 0],
                packed: Packed { body: bytes(n, body).into(), attachments },
            }
        })
        .collect()
}

fn written(folder: &Path) {
    let store = Store::create(folder).unwrap();
    let mut records = records();
    let node = Machine { name: "a".into(), architecture: Architecture::here(), pes: 3 };
    for progress in ["the first", "the second"] {
        let about = About { progress: progress.into(), nodes: vec![node.clone()], ..About::default() };
        let mut writer = store.begin(about).unwrap();
        records.iter().for_each(|record| writer.put(record).unwrap());
        writer.commit().unwrap();
        records[8].packed.body = vec![7; 99].into();
    }
}

fn run(program: &str, words: &[&str], folder: &Path) -> Done {
    start(Command::new(program).args(words).current_dir(folder)).done()
}

/// What the program prints that does this in that folder, which it has to do.
fn metachare(folder: &Path, words: &str) -> String {
    let done = run(METACHARE, &words.split(' ').collect::<Vec<_>>(), folder);
    assert_eq!(done.code, 0, "{words}: {done:?}");
    done.stdout
}

/// Whose a record is, and the lengths of its body and attachments.
fn line(record: &Record) -> (String, u64, String, u64, Vec<u64>, Vec<u64>) {
    let attachments = record.packed.attachments.iter().map(Buffer::len);
    let lengths = std::iter::once(record.packed.body.len()).chain(attachments).map(|len| len as u64);
    let index = record.index.iter().map(|part| u64::from(*part)).collect();
    let Record { kind, pe, type_name, collection, .. } = record;
    (kind.to_string(), u64::from(*pe), type_name.clone(), *collection, index, lengths.collect())
}

fn line_of(text: &str) -> (String, u64, String, u64, Vec<u64>, Vec<u64>) {
    let value: Value = serde_json::from_str(text).unwrap();
    let text = |key: &str| value[key].as_str().unwrap().to_string();
    let number = |key: &str| value[key].as_u64().unwrap();
    let index = value["index"].as_array().unwrap().iter().map(|part| part.as_u64().unwrap());
    let lengths = value["values"].as_array().unwrap().iter().map(|pair| pair[0].as_u64().unwrap());
    (text("kind"), number("pe"), text("type"), number("collection"), index.collect(), lengths.collect())
}

#[test]
fn a_reader_that_knows_only_the_specification_finds_every_record() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let done = run("python3", &[READER, ".", "1"], folder.path());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let mut found: Vec<_> = done.stdout.lines().map(line_of).collect();
    let mut expected: Vec<_> = records().iter().map(line).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    // It verifies by its own account: what is not what was written is refused.
    for name in ["generation-000002/index", "generation-000001/chunks", "generation-000002/MANIFEST.json"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 16;
        fs::write(&path, flipped).unwrap();
        let done = run("python3", &[READER, "."], folder.path());
        assert!(done.code == 1 && done.stderr.starts_with("Damaged: generation-"), "{done:?}");
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(run("python3", &[READER, "."], folder.path()).stdout.lines().count(), 40);
}

#[test]
fn the_reader_reads_values_of_shared_variables_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut writer = store.begin(About::default()).unwrap();
    let shape = Shape::Struct(vec![("step".into(), Shape::Text)]);
    let schema = SavedSchema { version: 1, shape };
    writer.describe_variable(SavedVariable { id: 1 << 60, name: "Rates".into(), schema });
    for (type_name, collection) in
        [("variable", 1 << 60), ("variable", 7), ("sum", 1 << 60), ("Block", 1 << 60)]
    {
        let kind = if type_name == "Block" { Kind::Chare } else { Kind::Node };
        let packed = Packed { body: b"\x02up".to_vec().into(), attachments: Vec::new() };
        let record = Record { kind, pe: 0, type_name: type_name.into(), collection, index: [0; 3], packed };
        writer.put(&record).unwrap();
    }
    writer.commit().unwrap();
    let done = run("python3", &[READER, "."], folder.path());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let lines = done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let values: Vec<_> = lines.map(|line| (line["type"].clone(), line["value"]["step"].clone())).collect();
    let up = |of: &str| (Value::from(of), Value::from("up"));
    let opaque = |of: &str| (Value::from(of), Value::Null);
    assert_eq!(values, [opaque("Block"), up("variable"), opaque("variable"), up("sum")]);
}

#[test]
fn a_folder_of_checkpoints_is_looked_into_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    written(&folder.path().join("saved"));
    let checkpoint = |words: &[&str]| run(METACHARE, &[&["checkpoint"], words].concat(), folder.path());
    let list = checkpoint(&["ls", "saved"]);
    assert!(list.code == 0 && list.stdout.contains("  the second\n"), "{list:?}");
    let show: Value =
        serde_json::from_str(&checkpoint(&["show", "saved", "--generation", "1", "--json"]).stdout).unwrap();
    assert_eq!((&show["records"], &show["about"]["progress"]), (&40.into(), &"the first".into()));
    let verified = checkpoint(&["verify", "saved"]);
    assert_eq!((verified.code, verified.stdout.lines().count()), (0, 2), "{verified:?}");
    let diff = checkpoint(&["diff", "saved", "1", "2"]);
    assert!(diff.stdout.ends_with("1 differ; 40 records before, 40 after\n"), "{diff:?}");
    let index = folder.path().join("saved/generation-000002/index");
    fs::write(&index, [fs::read(&index).unwrap(), vec![0]].concat()).unwrap();
    let sentence = "error: generation 2 is damaged: saved/generation-000002/index: it has ";
    for words in [&["show", "saved"][..], &["diff", "saved", "1", "2"]] {
        let refused = checkpoint(words);
        assert!(refused.code == 65 && refused.stderr.starts_with(sentence), "{refused:?}");
        assert!(refused.stderr.ends_with("; generation 1 is there, use that one\n"), "{refused:?}");
    }
    for (words, code, sentence) in [
        (&["ls", "nowhere"][..], 66, "error: nowhere holds no checkpoint: it is not there\n"),
        (&["show", "."], 66, "error: . holds no checkpoint: no generation was completed\n"),
        (&["show", "saved", "--generation", "7"], 66, "error: saved has no generation 7; it has 1, 2\n"),
        (
            &["verify", "saved"],
            65,
            "error: generation 2 in saved is damaged: generation 1 is whole, use that one\n",
        ),
    ] {
        let refused = checkpoint(words);
        assert_eq!((refused.code, refused.stderr.as_str()), (code, sentence), "{refused:?}");
    }
}

/// Whose each record is, and its value, as `show --values --json` and the reader say it.
fn values_of(done: Done) -> Vec<([String; 5], Value)> {
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let line = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let key = |line: &Value| ["kind", "pe", "type", "collection", "index"].map(|key| line[key].to_string());
    done.stdout.lines().map(line).map(|line| (key(&line), line["value"].clone())).collect()
}

#[test]
fn a_reader_that_knows_only_the_specification_reads_every_value_of_a_run_of_statics() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[2, 1]);
    let words = "run statics --size 6 --shake 0.05 --max-force 1e-3 --mode cblocks --speed equal --quiet --checkpoint saved \
                 --checkpoint-every 0.0005";
    metachare(folder, words);
    let own = values_of(run(METACHARE, &["checkpoint", "show", "saved", "--values", "--json"], folder));
    let others = values_of(run("python3", &[READER, "saved"], folder));
    assert_eq!(own, others);
    let is_known =
        |(key, value): &&([String; 5], Value)| key[0] == "\"chare\"" && value["state"] != Value::Null;
    assert!(own.iter().any(|one| is_known(&one)), "chares of which nothing is known");
    let new = run(METACHARE, &["checkpoint", "show", "saved", "--json"], folder);
    let new: Value = serde_json::from_str(&new.stdout).unwrap();
    assert!(new["stored_bytes"].as_u64() < new["bytes"].as_u64(), "some of it is compressed: {new}");
}

/// A small run of `jacobi` that version 0.1.0 saved, and what it showed of it. Later versions read it too, or are refused by
/// `restart` with the type that has changed.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoint/golden");
const GOLDEN_VALUES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoint/golden.jsonl");

#[test]
fn a_checkpoint_of_version_0_1_is_whole_and_read_by_name_here_and_by_who_knows_only_the_specification() {
    let checkpoint = |words: &[&str]| run(METACHARE, &[&["checkpoint"], words].concat(), Path::new("."));
    let verified = checkpoint(&["verify", GOLDEN]);
    assert!(verified.code == 0 && verified.stdout.contains(" is whole: "), "{verified:?}");
    let show: Value = serde_json::from_str(&checkpoint(&["show", GOLDEN, "--json"]).stdout).unwrap();
    assert_eq!(show["foreign"], Value::Null, "this version goes on from it");
    let shown = checkpoint(&["show", GOLDEN, "--values", "--json"]);
    assert_eq!(shown.stdout, fs::read_to_string(GOLDEN_VALUES).unwrap());
    let own = values_of(shown);
    let others = values_of(run("python3", &[READER, GOLDEN], Path::new(".")));
    assert_eq!(own, others);
}

/// Its driver had read counters of nodes, which are others since.
#[test]
fn a_run_whose_driver_has_read_what_is_made_of_other_things_now_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    let words = ["restart", GOLDEN, "--checkpoint", "others", "--speed", "equal", "--quiet"];
    let refused = run(METACHARE, &words, folder.path());
    let sentence = "error: the checkpoint is of another version of this program: the driver has waited for counters, and it was \
                    made of other things then; go on with the program that wrote it\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (65, sentence));
}

/// The same run, saved by version 0.1.0 on nodes and a launcher of other kinds of machines, which were killed on their way:
/// folder, how its nodes are shown, generation, and what `convert` says of it.
const GOLDEN_OF_OTHERS: [(&str, &str, u32, &str); 3] = [
    ("golden-arm64", "aarch64 linux, little-endian, 64 bits", 5, "Solver<f64> from version 1 to 2"),
    ("golden-i386", "x86 linux, little-endian, 32 bits", 4, "no type has changed"),
    ("golden-s390x", "s390x linux, big-endian, 64 bits", 3, "no type has changed"),
];

#[test]
fn runs_that_other_kinds_of_machines_saved_go_on_here_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let result = |words: &str| {
        metachare(folder, words);
        let result = fs::read(folder.join("x.npy")).unwrap();
        fs::remove_file(folder.join("x.npy")).unwrap();
        result
    };
    local_nodes(folder, &[2, 1]);
    let whole = result("run jacobi --n 24 --blocks-per-pe 1 --speed equal --quiet --out x.npy");
    for (name, machine, generation, migrated) in GOLDEN_OF_OTHERS {
        let golden = format!("{}/checkpoint/{name}", env!("CARGO_MANIFEST_DIR"));
        let shown = run(METACHARE, &["checkpoint", "show", &golden], folder);
        assert!(shown.stdout.contains(&format!("a: {machine}, PEs: 2\n")), "{shown:?}");
        local_nodes(folder, &[2, 1]);
        let words = format!("restart {golden} --checkpoint others-{name} --speed equal --quiet");
        assert!(result(&words) == whole, "{name}: other bits");
        local_nodes(folder, &[1, 1, 1]);
        assert!(result(&words) == whole, "{name}: other bits on other nodes");
        let new = format!("new-{name}");
        let converted = run(METACHARE, &["checkpoint", "convert", &golden, &new], folder);
        let sentence = format!("would have written of generation {generation} of {golden}: {migrated}\n");
        assert!(converted.code == 0 && converted.stdout.ends_with(&sentence), "{converted:?}");
        let manifest =
            fs::read_to_string(folder.join(format!("{new}/generation-000001/MANIFEST.json"))).unwrap();
        assert!(manifest.contains("\"version\":3,\"generation\":1,"), "{manifest}");
        assert!(
            result(&format!("restart {new} --speed equal --quiet")) == whole,
            "{name}: other bits once it was converted"
        );
    }
}

/// A search that version 0.1.0 saved by a snapshot: with a subproblem that waits, messages that came late, sums that are not
/// complete, a shared variable with its type, and chunks that are compressed; in version 2 of the format, and converted to version 3.
const GOLDEN_SEARCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoint/golden-search");
const GOLDEN_SEARCH_3: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoint/golden-search-3");

#[test]
fn a_search_that_was_saved_with_all_kinds_of_records_goes_on_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let result = |words: &str| {
        metachare(folder, words);
        fs::read(folder.join("set.txt")).unwrap()
    };
    local_nodes(folder, &[2, 1]);
    let mut values = Vec::new();
    for golden in [GOLDEN_SEARCH, GOLDEN_SEARCH_3] {
        let shown = metachare(folder, &format!("checkpoint show {golden} --json"));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let types: Vec<_> = shown["types"].as_array().unwrap().iter().map(|of| of["name"].clone()).collect();
        let all = ["Placer", "Subproblem", "PE", "late", "collection", "loads", "sum", "variable", "driver"];
        assert!(all.iter().all(|name| types.contains(&Value::from(*name))), "{types:?}");
        assert!(
            shown["stored_bytes"].as_u64() < shown["bytes"].as_u64(),
            "some of it is compressed: {shown}"
        );
        values.push(values_of(run(METACHARE, &["checkpoint", "show", golden, "--values", "--json"], folder)));
        assert_eq!(values.last(), Some(&values_of(run("python3", &[READER, golden], folder))));
    }
    assert_eq!(values[0], values[1]);
    let whole =
        result("run mis --vertices 130 --density 0.15 --deterministic --out set.txt --speed equal --quiet");
    let goes_on = [(&[2, 1][..], GOLDEN_SEARCH_3), (&[1, 1, 1], GOLDEN_SEARCH), (&[4], GOLDEN_SEARCH_3)];
    for (number, (pes, golden)) in goes_on.into_iter().enumerate() {
        local_nodes(folder, pes);
        fs::remove_file(folder.join("set.txt")).unwrap();
        let words = format!("restart {golden} --checkpoint others-{number} --speed equal --quiet");
        assert!(result(&words) == whole, "another set on {pes:?}");
    }
}

/// As the example sends them: each block of 16 by 16 its edges to those beside it, in every step.
#[test]
fn who_talks_to_whom_is_shown_as_the_program_has_it() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1]);
    let stencil = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let done = run(env!("CARGO_BIN_EXE_stencil2d"), &words, folder.path());
        assert_eq!(done.code, 0, "{done:?}");
        done.stdout
    };
    // So slow that every message is counted.
    stencil(
        "run --blocks 16 --cells 96 --steps 300 --speed equal --nodes nodes.toml --quiet --checkpoint saved --checkpoint-every 1",
    );
    let shown: Value = serde_json::from_str(&stencil("checkpoint show saved --pairs --json")).unwrap();
    let pairs = shown["pairs"].as_array().unwrap();
    let index = |of: &Value| -> [u64; 3] { [0, 1, 2].map(|at| of["index"][at].as_u64().unwrap()) };
    let found: BTreeSet<_> = pairs.iter().map(|pair| [index(&pair["one"]), index(&pair["other"])]).collect();
    let right = (0..16).flat_map(|i| (0..15).map(move |j| [[i, j, 0], [i, j + 1, 0]]));
    let down = (0..15).flat_map(|i| (0..16).map(move |j| [[i, j, 0], [i + 1, j, 0]]));
    assert_eq!(found, right.chain(down).collect::<BTreeSet<_>>());
    let messages: Vec<f64> = pairs.iter().map(|pair| pair["messages"].as_f64().unwrap()).collect();
    let mean = messages.iter().sum::<f64>() / messages.len() as f64;
    assert!(messages.iter().all(|of| (of / mean - 1.0).abs() < 0.5), "{mean}: {messages:?}");
    for pair in pairs {
        let [bytes, messages] = ["bytes", "messages"].map(|of| pair[of].as_f64().unwrap());
        // Older messages count for a part, and the sum is told as a whole number.
        let of_any = 8.0 * 96.0 * (messages - 0.5)..(8.0 * 96.0 + 64.0) * (messages + 0.5);
        assert!(of_any.contains(&bytes), "{pair}");
        assert!(pair["one"]["type"] == "Block" && pair["other"]["type"] == "Block", "{pair}");
    }
    let text = stencil("checkpoint show saved --pairs");
    assert!(text.ends_with("\n480 pairs\n") && text.contains(" Block@"), "{text}");
}
