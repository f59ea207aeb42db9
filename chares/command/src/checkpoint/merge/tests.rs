//! Two runs of two blocks and a variable, put together in all ways.

use super::*;
use runtime::checkpoint::{About, SavedSchema, SavedVariable};
use runtime::envelope::Packed;
use runtime::schema::{Shape, Value};
use serde_json::{Value as Json, json};
use std::fs;

fn shape(rows: &str) -> Shape {
    let state = json!({ "struct": [["rows", { "seq": rows }], ["step", "u32"]] });
    serde_json::from_value(json!({ "struct": [["runtime", "u64"], ["state", state]] })).unwrap()
}

/// A run whose blocks have these states, which has counted that far, and whose variable has that value.
struct Run<'a> {
    program: &'a str,
    rows: &'a str,
    counted: u64,
    blocks: &'a [Json],
    variable: &'a [u8],
    /// What the variable is made of, and the version of its type.
    made_of: (&'a str, u16),
}

impl Run<'_> {
    fn write(&self, dir: &Path) {
        let record = |kind, type_name: &str, collection, index, packed| Record {
            kind,
            pe: 0,
            type_name: type_name.into(),
            collection,
            index: [index, 0, 0],
            packed,
        };
        let of_bytes = |bytes: &[u8]| Packed { body: bytes.to_vec().into(), attachments: Vec::new() };
        let about = About { program: self.program.into(), ..About::default() };
        let mut writer = Store::create(dir).unwrap().begin(about).unwrap();
        let shape = shape(self.rows);
        for (state, index) in self.blocks.iter().zip(0..) {
            let whole = json!({ "runtime": self.counted, "state": state });
            let packed = Value::from_json(&shape, &whole).unwrap().write();
            writer.put(&record(RecordKind::Chare, "Block", 5, index, packed)).unwrap();
        }
        writer.put(&record(RecordKind::Pe, "PE", 0, 0, of_bytes(&self.counted.to_le_bytes()))).unwrap();
        writer.put(&record(RecordKind::Node, "collection", 5, 0, of_bytes(b"Block"))).unwrap();
        writer.put(&record(RecordKind::Node, "variable", 6, 1, of_bytes(self.variable))).unwrap();
        writer.put(&record(RecordKind::Node, "sum", 7, 0, of_bytes(&[self.variable[0] + 100]))).unwrap();
        writer.describe(RecordKind::Chare, "Block", SavedSchema { version: 1, shape });
        let (shape, version) = (serde_json::from_value(json!(self.made_of.0)).unwrap(), self.made_of.1);
        let schema = SavedSchema { version, shape };
        writer.describe_variable(SavedVariable { id: 6, name: "Rate".into(), schema });
        writer.commit().unwrap();
    }
}

/// Puts two runs together: the values and the PE of what comes of it, or what is wrong.
fn merged(a: &Run<'_>, b: &Run<'_>, words: &[&str]) -> Result<Vec<Json>, String> {
    let folder = tempfile::tempdir().unwrap();
    let [dir_a, dir_b, out] = ["a", "b", "out"].map(|name| folder.path().join(name));
    a.write(&dir_a);
    b.write(&dir_b);
    let dirs = [&dir_a, &dir_b, &out].map(|dir| dir.display().to_string());
    let line = std::iter::once("merge").chain(dirs.iter().map(String::as_str)).chain(words.iter().copied());
    let matches = command().try_get_matches_from(line).unwrap();
    if let Err(failure) = merge(&matches) {
        assert!(!fs::exists(&out).unwrap(), "what is refused writes nothing");
        return Err(failure.sentence);
    }
    let saved = Store::open(&out).unwrap().latest().unwrap();
    assert!(saved.verify(|_| ()).unwrap().damages.is_empty() && saved.about().edited.len() == 1);
    assert_eq!(saved.record_count(), 4 + a.blocks.len() as u64);
    let values = saved.records().map(|record| {
        let record = record.unwrap();
        match saved.schema_of(&record) {
            Some(schema) => Value::read(&schema.shape, &record.packed).unwrap().to_json(),
            None => json!(record.packed.body[0]),
        }
    });
    Ok(values.collect())
}

fn block(row: f64, step: u32) -> Json {
    json!({ "rows": [row, 0.5], "step": step })
}

fn whole(state: &Json) -> Json {
    json!({ "runtime": 1, "state": state })
}

/// The states of the blocks of two runs, of which the first is the same.
fn blocks() -> [[Json; 2]; 2] {
    [[block(1.0, 3), block(2.0, 3)], [block(1.0, 3), block(9.0, 4)]]
}

#[test]
fn values_of_one_run_are_put_into_another_which_stays_where_it_is() {
    let [blocks_a, blocks_b] = blocks();
    let made_of = ("u8", 1);
    let run = Run { program: "heat", rows: "f64", counted: 1, blocks: &blocks_a, variable: &[7], made_of };
    let other = Run { counted: 2, blocks: &blocks_b, variable: &[8], ..run };
    let is = |words: &[&str], second: &Json, [variable, sum]: [u8; 2]| {
        let mut values = merged(&run, &other, words).unwrap();
        values[4..].sort_by_key(ToString::to_string);
        let mut rest = [json!(variable), json!(sum)];
        rest.sort_by_key(ToString::to_string);
        let first = [whole(&blocks_a[0]), whole(second), json!(1), json!(b'B')];
        assert_eq!(values, [&first[..], &rest].concat(), "{words:?}");
    };
    is(&["--prefer", "a"], &blocks_a[1], [7, 107]);
    is(&["--prefer", "b"], &blocks_b[1], [8, 108]);
    is(&["--prefer", "a", "--take", "Block[1].step"], &block(2.0, 4), [7, 107]);
    is(&["--prefer", "a", "--take", "Block.rows", "--take", "variable"], &block(9.0, 3), [8, 107]);
    is(&["--prefer", "b", "--take", "Block[1].step"], &block(2.0, 4), [8, 108]);
    let sentence = "sum@7[0,0,0] and 2 others differ between A and B: say whose to take with --prefer a or --prefer b, or name \
                    those of B with --take";
    assert_eq!(merged(&run, &other, &[]).unwrap_err(), sentence);
    // What only counts what a run has done is no difference.
    let same = Run { counted: 2, ..run };
    assert_eq!(merged(&run, &same, &[]).unwrap(), merged(&run, &run, &[]).unwrap());
}

#[test]
fn what_cannot_be_put_together_is_refused_by_its_name() {
    let [blocks_a, blocks_b] = blocks();
    let made_of = ("u8", 1);
    let run = Run { program: "heat", rows: "f64", counted: 1, blocks: &blocks_a, variable: &[7], made_of };
    let more = [&blocks_a[..], &[block(0.0, 0)]].concat();
    for (other, words, sentence) in [
        (
            Run { blocks: &more, ..run },
            &["--prefer", "a"][..],
            "Block[2, 0, 0] of collection 5 on PE 0 is only in B: only runs that have the same chares can be put together",
        ),
        (
            Run { program: "cold", ..run },
            &[],
            "A is of heat and B of cold: only runs of one program can be put together",
        ),
        (
            Run { rows: "f32", ..run },
            &[],
            "Block.rows[] was f64 and is f32 now, from A to B: only runs of one version of the program can be put together",
        ),
        (
            Run { made_of: ("i8", 1), ..run },
            &["--prefer", "b"],
            "Rate was u8 and is i8 now, from A to B: only runs of one version of the program can be put together",
        ),
        (
            Run { made_of: ("u8", 2), ..run },
            &["--prefer", "b"],
            "Rate is of version 1 in A and of 2 in B: only runs of one version of the program can be put together",
        ),
        (
            Run { blocks: &blocks_b, ..run },
            &["--take", "Block[1].line"],
            "Block@5[1,0,0]: state.line: there is no field line; there are rows, step",
        ),
        (
            Run { variable: &[8], ..run },
            &["--take", "variable.x", "--prefer", "a"],
            "variable@6[1,0,0] can only be taken as a whole",
        ),
        (
            Run { blocks: &blocks_b, ..run },
            &["--take", "Block[4]"],
            "there is no Block[4]: the checkpoint has other records of Block",
        ),
    ] {
        assert_eq!(merged(&run, &other, words).unwrap_err(), sentence);
    }
}
