//! What the commands say, of folders that are written here.

use super::*;
use runtime::architecture::Architecture;
use runtime::buffer::Buffer;
use runtime::checkpoint::{About, Kind as RecordKind, Machine, Record};
use runtime::envelope::Packed;
use std::fs;

const TAKEN_MS: u64 = 1_700_000_000_000;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    for step in 1..=2u32 {
        let node = Machine {
            name: "a\x1b[2J".into(),
            architecture: Architecture {
                arch: "s390x".into(),
                os: "linux".into(),
                endian: "big".into(),
                pointer_bits: 64,
            },
            pes: 2,
        };
        let about = About {
            program: "heat".into(),
            version: "0.1.0".into(),
            arguments: vec!["run".into(), "--steps".into(), "9".into()],
            pes: 2,
            nodes: vec![node],
            progress: format!("step {step} of 9"),
            taken_ms: TAKEN_MS + u64::from(step) * 60_000,
            edited: Vec::new(),
        };
        let mut writer = store.begin(about).unwrap();
        for n in 0..4u32 {
            let seed = if n == 3 { 10 + step } else { n };
            // No chunk of it is shorter compressed.
            let array: Vec<u32> =
                (0..30_000).map(|k| (k + seed * 1_000_003).wrapping_mul(0x9e37_79b9)).collect();
            let packed =
                Packed { body: vec![n as u8; 20].into(), attachments: vec![Buffer::from_slice(&array)] };
            let record = Record {
                kind: RecordKind::Chare,
                pe: if n == 2 { step - 1 } else { 0 },
                type_name: "Block".into(),
                collection: 3,
                index: [n, 0, 0],
                packed,
            };
            writer.put(&record).unwrap();
        }
        writer.commit().unwrap();
    }
    folder
}

fn open(folder: &tempfile::TempDir) -> Store {
    Store::open(folder.path()).unwrap()
}

#[test]
fn checkpoints_are_listed_and_shown() {
    let folder = folder();
    let list = listed(folder.path(), TAKEN_MS + 3 * 3_600_000).unwrap();
    let lines: Vec<&str> = list.text.lines().collect();
    assert!(lines[1].contains("2023-11-14T22:14:20Z       2 h   468.8 KiB"), "{}", list.text);
    assert!(
        lines[2].trim_start().starts_with('2') && lines[2].ends_with("  4  step 2 of 9"),
        "{}",
        list.text
    );
    assert_eq!(list.json["generations"][1]["bytes"], 480_080);
    let program = CommandLine::new(chares::Program::new("heat", "0.1.0"));
    let show = shown(&program, &open(&folder), None, TAKEN_MS + 130_000).unwrap();
    let expected = "generation 2, taken 2023-11-14T22:15:20Z, 10 s ago\nprogram     heat 0.1.0\n\
                    arguments   run --steps 9\nprogress    step 2 of 9\nsize        468.8 KiB in 4 records\n";
    assert!(show.text.starts_with(expected), "{}", show.text);
    for part in [
        "node        a: s390x linux, big-endian, 64 bits, PEs: 2\n",
        "         4   468.8 KiB  chare   Block\n",
    ] {
        assert!(show.text.contains(part), "{part:?} is not in {}", show.text);
    }
    assert_eq!(show.json["types"][0]["name"], "Block");
    assert!(
        show.text.contains("\nreadable    no: Block is no type of this program: go on with "),
        "{}",
        show.text
    );
    assert_eq!(shown(&program, &open(&folder), Some(1), 0).unwrap().json["about"]["progress"], "step 1 of 9");
}

#[test]
fn differences_are_named() {
    let folder = folder();
    let answer = compared(&open(&folder), [1, 2]).unwrap();
    let expected = "moved    Block[2, 0, 0] of collection 3 on PE 1 (from PE 0)\n\
                    changed  Block[3, 0, 0] of collection 3 on PE 0\n2 differ; 4 records before, 4 after\n";
    assert_eq!(answer.text, expected);
    assert_eq!(answer.json["differences"][1]["index"], json!([3, 0, 0]));
}

#[test]
fn damage_is_found_and_what_is_whole_is_offered() {
    let folder = folder();
    let answer = verified(folder.path(), &open(&folder), None).unwrap();
    assert_eq!(answer.failure, None);
    assert!(answer.text.starts_with("generation 1 is whole: 4 records, 469"), "{}", answer.text);
    let chunks = folder.path().join("generation-000002/chunks");
    let mut bytes = fs::read(&chunks).unwrap();
    bytes[70_000] ^= 1;
    fs::write(&chunks, bytes).unwrap();
    let answer = verified(folder.path(), &open(&folder), None).unwrap();
    let damage = format!(
        "generation 2 is damaged; 3 records are whole\n  {}: the checksum of a chunk is wrong (byte 65536, 54464 \
         bytes): Block[3, 0, 0] of collection 3 on PE 0\n",
        chunks.display()
    );
    assert!(answer.text.ends_with(&damage), "{}", answer.text);
    let failure = answer.failure.unwrap();
    let sentence = "is damaged: generation 1 is whole, use that one";
    assert!(failure.exit_code() == 65 && failure.sentence.ends_with(sentence), "{failure}");
    fs::write(folder.path().join("generation-000001/index"), "").unwrap();
    let answer = verified(folder.path(), &open(&folder), None).unwrap();
    assert!(answer.failure.unwrap().sentence.ends_with("are damaged: restore the folder from a copy"));
    let list = listed(folder.path(), 0).unwrap();
    assert!(list.text.contains("  generation 1 is damaged: "), "{}", list.text);
}

#[test]
fn what_is_no_folder_of_checkpoints_gets_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let program = CommandLine::new(chares::Program::new("heat", "0.1.0"));
    for answer in
        [listed(folder.path(), 0), shown(&program, &store, None, 0), verified(folder.path(), &store, None)]
    {
        let failure = answer.err().unwrap();
        assert!(
            failure.exit_code() == 66 && failure.sentence.contains(" holds no checkpoint: "),
            "{failure}"
        );
    }
    let failure = compared(&store, [1, 2]).err().unwrap();
    assert!(
        failure.exit_code() == 66 && failure.sentence.ends_with("no generation 1; it has none"),
        "{failure}"
    );
}
