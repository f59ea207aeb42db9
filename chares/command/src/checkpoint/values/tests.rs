//! Values of a type that changes from one version of a program to the next.

use super::super::convert::converted;
use super::*;
use crate::restart::fits_on;
use chares::{Chare, Ctx, Entry, Program, entries};
use runtime::architecture::Architecture;
use runtime::checkpoint::{SavedSchema, SavedVariable, Understood, schemas};
use runtime::monitor::wire::{NodeInfo, RunInfo};
use runtime::schema::shape_of;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Step;

macro_rules! block {
    ($module:ident, $rows:ty, $version:literal) => {
        mod $module {
            use super::*;

            #[derive(Serialize, Deserialize)]
            pub(super) struct Block {
                pub(super) rows: Vec<$rows>,
                pub(super) count: usize,
            }
            entries!(Block as "heat::Block": Step);
            impl Chare for Block {
                type Index = u32;
                type Init = ();
                const VERSION: u16 = $version;
                fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
                    Self { rows: Vec::new(), count: 0 }
                }
            }
            impl Entry<Step> for Block {
                fn receive(&mut self, _: Step, _: &mut Ctx<'_, Self>) {
                    self.count += self.rows.len();
                }
            }
            pub(super) fn program() -> Program {
                Program::new("heat", "1").chare::<Block>()
            }
        }
    };
}
block!(before, f64, 1);
block!(raised, f64, 2);
block!(now, [f32; 1], 2);

fn narrowed(old: before::Block) -> Result<now::Block, String> {
    match old.rows.iter().find(|row| row.is_nan()) {
        Some(_) => Err("a row is no number".into()),
        None => Ok(now::Block { rows: old.rows.iter().map(|row| [*row as f32]).collect(), count: old.count }),
    }
}

fn record(index: u32, shape: &Shape, rows: &Json) -> Record {
    let site = json!({
        "collection": 5, "index": [index, 0, 0], "home": 0, "mover": null, "sequence": 0, "sections": [],
        "is_leaving": false, "mobility": "Anywhere",
    });
    let whole = json!({ "runtime": site, "state": { "rows": rows, "count": 1u64 << 40 } });
    let packed = Value::from_json(shape, &whole).unwrap().write();
    let kind = RecordKind::Chare;
    Record { kind, pe: 0, type_name: "heat::Block".into(), collection: 5, index: [index, 0, 0], packed }
}

/// Two blocks as the first version wrote them, and something that cannot be read by name.
fn folder(last: &Json) -> (tempfile::TempDir, Saved) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut writer = store.begin(About::default()).unwrap();
    let (name, schema) = schemas(before::program().table()).remove(0);
    writer.put(&record(0, &schema.shape, &json!([1.0, 2.5]))).unwrap();
    writer.put(&record(3, &schema.shape, &json!([0.5, last]))).unwrap();
    let pe = Record { kind: RecordKind::Pe, type_name: "PE".into(), ..record(0, &schema.shape, &json!([])) };
    writer.put(&pe).unwrap();
    writer.describe(RecordKind::Chare, &name, schema);
    writer.commit().unwrap();
    let saved = store.latest().unwrap();
    (folder, saved)
}

fn refused(saved: &Saved, program: Program) -> String {
    Understood::new(saved, program.table()).unwrap_err().to_string()
}

#[test]
fn changed_types_are_refused_by_the_path_of_the_field_or_migrated() {
    let (_folder, saved) = folder(&json!(7));
    let as_it_was = Understood::new(&saved, before::program().table()).unwrap();
    let records: Vec<Record> = saved.records_of_kind(RecordKind::Chare).map(Result::unwrap).collect();
    assert_eq!(as_it_was.take_in(&records[0]).unwrap(), records[0].packed);
    let other = ": go on with the program that wrote it, or list a migration from version 1";
    let rows = format!("heat::Block.rows[] was f64 and is a tuple of 1 now{other} of heat::Block");
    assert_eq!(refused(&saved, now::program()), rows);
    assert_eq!(
        refused(&saved, raised::program()),
        format!("heat::Block was of version 1 and is of 2 now{other}")
    );
    let none = Program::new("heat", "2");
    assert!(refused(&saved, none).starts_with("heat::Block is no type of this program: go on with "));
    let from_another = now::program().migrate::<now::Block, now::Block>(1, Ok);
    let sentence = "heat::Block.rows[] was f64 and is a tuple of 1 now in its migration from version 1: ";
    assert!(refused(&saved, from_another).starts_with(sentence));

    let program = now::program().migrate::<before::Block, now::Block>(1, narrowed);
    let migrated = Understood::new(&saved, program.table()).unwrap().take_in(&records[1]).unwrap();
    let shape = (program.table().chare_types[0].schema.shape)();
    let value = Value::read(&shape, &migrated).unwrap().to_json();
    assert_eq!(
        (&value["state"]["rows"], &value["runtime"]["index"]),
        (&json!([[0.5], [7.0]]), &json!([3, 0, 0]))
    );
    let (_folder, saved) = folder(&json!("NaN"));
    let understood = Understood::new(&saved, program.table()).unwrap();
    let last = saved.records_of_kind(RecordKind::Chare).last().unwrap().unwrap();
    let why = understood.take_in(&last).unwrap_err().to_string();
    assert_eq!(why, "heat::Block[3, 0, 0] cannot be migrated: a row is no number");
}

/// A checkpoint is written anew as the program of today would have; what it cannot take in is refused as when a run goes on, and
/// nothing counts then.
#[test]
fn a_checkpoint_is_converted_to_the_types_of_today_or_refused() {
    let (from, saved) = folder(&json!(7));
    let out = tempfile::tempdir().unwrap();
    let dirs = (from.path(), out.path());
    let convert = |saved: &Saved, program: &Program| converted(program.table(), saved, dirs.0, dirs.1);
    let program = || now::program().migrate::<before::Block, now::Block>(1, narrowed);
    let last = || Store::open(dirs.1).and_then(|store| store.latest());
    let of_heat = |saved: &Saved| {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path()).unwrap();
        let mut writer = store.begin(About { program: "heat".into(), ..About::default() }).unwrap();
        describe_as(&mut writer, saved);
        saved.records().for_each(|record| writer.put(&record.unwrap()).unwrap());
        let shape = shape_of::<before::Block>();
        let json = json!({ "rows": [0.25], "count": 2 });
        let packed = Value::from_json(&shape, &json).unwrap().write();
        let record = saved.records_of_kind(RecordKind::Pe).next().unwrap().unwrap();
        let record = Record { kind: RecordKind::Node, type_name: "variable".into(), packed, ..record };
        writer.put(&record).unwrap();
        let schema = SavedSchema { version: 1, shape };
        writer.describe_variable(SavedVariable { id: 5, name: "Block".into(), schema });
        writer.commit().unwrap();
        (store.latest().unwrap(), folder)
    };
    let refused = convert(&saved, &program()).unwrap_err().sentence;
    assert_eq!(refused, format!("{} holds a run of , and this is heat", dirs.0.display()));
    let (saved, _folder) = of_heat(&saved);
    let refused = convert(&saved, &now::program()).unwrap_err().sentence;
    assert!(
        refused.starts_with("heat::Block.rows[] was f64 and is a tuple of 1 now: go on with "),
        "{refused}"
    );
    let said = convert(&saved, &program()).unwrap();
    let of = format!("of generation 1 of {}", dirs.0.display());
    let expected =
        format!("generation 1 is what heat 1 would have written {of}: heat::Block from version 1 to 2\n");
    assert_eq!(said, expected);
    let new = last().unwrap();
    assert!(Understood::new(&new, now::program().table()).is_ok(), "no migration is needed any more");
    let line_of = |saved: &Saved, text: &str| {
        let which: Which = text.parse().unwrap();
        let records = saved.records().map(Result::unwrap).filter(|record| which.is_of(record));
        records.map(|record| line(saved, &record, Some(&which), false).unwrap()).collect::<String>()
    };
    assert_eq!(line_of(&new, "heat::Block[3].rows"), "heat::Block@5[3,0,0].rows = [[0.5],[7.0]]\n");
    assert_eq!(new.about().edited, [format!("heat::Block from version 1 to 2, {of}")]);
    assert_eq!(
        line_of(&new, "variable.rows"),
        line_of(&saved, "variable.rows"),
        "only the driver knows its type"
    );
    let pe = |saved: &Saved| saved.records_of_kind(RecordKind::Pe).next().unwrap().unwrap();
    assert_eq!((pe(&new), new.record_count()), (pe(&saved), saved.record_count()));

    let listed = || program().migrate_variable::<before::Block, now::Block>(1, narrowed);
    assert!(
        convert(&saved, &listed()).unwrap().ends_with("from version 1 to 2, Block@5 from version 1 to 2\n")
    );
    let new = last().unwrap();
    assert_eq!(line_of(&new, "variable.rows"), "variable@5[0,0,0].rows = [[0.25]]\n");
    assert!(convert(&new, &listed()).unwrap().ends_with(": no type has changed\n"));
    let (saved, _folder) = of_heat(&folder(&json!("NaN")).1);
    let refused = convert(&saved, &program()).unwrap_err().sentence;
    assert_eq!(refused, "heat::Block[3, 0, 0] cannot be migrated: a row is no number");
    assert_eq!(last().unwrap().generation(), 3, "what is refused does not count");
}

#[test]
fn a_checkpoint_is_refused_for_machines_that_have_no_room_for_a_number() {
    let (_folder, saved) = folder(&json!(7));
    assert!(saved.fits(64).is_ok());
    let sentence =
        "heat::Block[0, 0, 0]: state.count is 1099511627776, and machines of 32 bits have no such usize";
    assert_eq!(saved.fits(32).unwrap_err().to_string(), sentence);
}

/// A launcher that has room for it may have a node that has not: that is known when the node has been started.
#[test]
fn one_narrow_node_has_no_room_for_a_number_however_wide_the_others_are() {
    let (folder, saved) = folder(&json!(7));
    let node = |number, pointer_bits| {
        let architecture = Architecture { pointer_bits, ..Architecture::here() };
        NodeInfo { node: number, architecture, ..NodeInfo::default() }
    };
    let on = |nodes: Vec<NodeInfo>| fits_on(&saved, folder.path(), &RunInfo { nodes, ..RunInfo::default() });
    assert!(on(vec![node(1, 64), node(2, 64)]).is_ok());
    let refused = on(vec![node(1, 64), node(2, 32), node(3, 64)]).unwrap_err();
    let sentence = "state.count is 1099511627776, and machines of 32 bits have no such usize";
    assert!(refused.sentence.ends_with(sentence), "{refused:?}");
}

/// However many there are, and whichever is changed.
#[test]
fn to_change_a_value_removes_no_checkpoint() {
    let (folder, saved) = folder(&json!(7));
    let dir = folder.path();
    {
        let store = Store::create_keeping(dir, 9).unwrap();
        for _ in 0..3 {
            let mut writer = store.begin(About::default()).unwrap();
            saved.records().for_each(|record| writer.put(&record.unwrap()).unwrap());
            writer.commit().unwrap();
        }
    }
    let numbers = || {
        let generations = Store::open(dir).unwrap().generations().unwrap();
        generations.iter().map(|generation| generation.number).collect::<Vec<_>>()
    };
    let before = numbers();
    assert_eq!(before.len(), 4);
    let which: Which = "heat::Block[0].rows[0]".parse().unwrap();
    let new = set(dir, &saved, &which, "4").unwrap();
    assert_eq!(numbers(), [&before[..], &[new]].concat());
}

#[test]
fn values_of_shared_variables_are_shown_and_changed_by_name_too() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let store = Store::create(dir).unwrap();
    let shape = shape_of::<before::Block>();
    let value = |step: f64| Value::from_json(&shape, &json!({ "rows": [step], "count": 2 })).unwrap().write();
    let of = |type_name: &str, collection, step| Record {
        kind: RecordKind::Node,
        type_name: type_name.into(),
        collection,
        packed: value(step),
        ..record(0, &schemas(before::program().table())[0].1.shape, &json!([]))
    };
    let mut writer = store.begin(About::default()).unwrap();
    [of("variable", 6, 0.5), of("variable", 7, 1.5), of("sum", 8, 2.5)]
        .iter()
        .for_each(|record| writer.put(record).unwrap());
    for id in [6, 8] {
        let schema = SavedSchema { version: 1, shape: shape.clone() };
        writer.describe_variable(SavedVariable { id, name: "Block".into(), schema });
    }
    writer.commit().unwrap();
    drop(store);
    let store = Store::open(dir).unwrap();
    let shown = |saved: &Saved| {
        let records = saved.records().map(Result::unwrap);
        records.map(|record| line(saved, &record, None, false).unwrap()).collect::<Vec<_>>()
    };
    let first = store.latest().unwrap();
    let lines = [
        "variable@6[0,0,0] = {\"count\":2,\"rows\":[0.5]}\n",
        "variable@7[0,0,0] is opaque, 10 bytes\n",
        "sum@8[0,0,0] = {\"count\":2,\"rows\":[2.5]}\n",
    ];
    assert_eq!(shown(&first), lines);
    let which = |text: &str| text.parse::<Which>().unwrap();
    set(dir, &first, &which("variable@6.rows[0]"), "4").unwrap();
    let last = store.latest().unwrap();
    assert_eq!(shown(&last)[0], lines[0].replace("0.5", "4.0"));
    assert_eq!((shown(&last)[2].as_str(), last.variables()), (lines[2], first.variables()));
    let differences = first.differences(&last).unwrap();
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].identity.to_string(), "variable@6[0, 0, 0] of all nodes");
    let said = set(dir, &last, &which("sum.line"), "1").unwrap_err().sentence;
    assert_eq!(said, "sum@8[0,0,0]: line: there is no field line; there are rows, count");
}

#[test]
fn values_are_shown_taken_out_and_changed_by_name() {
    let (folder, saved) = folder(&json!(7));
    let dir = folder.path();
    let which = |text: &str| text.parse::<Which>().unwrap();
    let lines = |saved: &Saved, text: &str| {
        let which = which(text);
        let records = saved.records().map(Result::unwrap).filter(|record| which.is_of(record));
        records.map(|record| line(saved, &record, Some(&which), false).unwrap()).collect::<String>()
    };
    let both = "heat::Block@5[0,0,0].rows = [1.0,2.5]\nheat::Block@5[3,0,0].rows = [0.5,7.0]\n";
    assert_eq!(lines(&saved, "heat::Block.rows"), both);
    assert_eq!(lines(&saved, "heat::Block@5[3].rows[1]"), "heat::Block@5[3,0,0].rows[1] = 7.0\n");
    assert_eq!(lines(&saved, "PE"), "PE@5[0,0,0] is opaque, 17 bytes\n");
    for text in ["", "[3]", "Block[x]", "Block@x", "Block[1,2,3,4]", "Block[1]..a"] {
        assert!(text.parse::<Which>().is_err(), "{text}");
    }
    assert_eq!(which("Grid<[u8; 2], a.b>[1,2].x").type_name, "Grid<[u8; 2], a.b>");

    let file = dir.join("rows.npy");
    extract(&saved, &which("heat::Block[3].rows"), &file).unwrap();
    assert_eq!(npy::read(&fs::read(&file).unwrap()), Ok(json!([0.5, 7.0])));
    extract(&saved, &which("heat::Block[3]"), &dir.join("all.json")).unwrap();
    let all: Json = serde_json::from_slice(&fs::read(dir.join("all.json")).unwrap()).unwrap();
    assert_eq!(all, json!({"rows": [0.5, 7.0], "count": 1u64 << 40}));

    drop(saved);
    let store = Store::open(dir).unwrap();
    let (first, file) = (store.latest().unwrap(), file.to_str().unwrap());
    assert_eq!(set(dir, &first, &which("heat::Block[0].rows"), file).unwrap(), 2);
    assert_eq!(set(dir, &store.latest().unwrap(), &which("heat::Block[3].rows[0]"), "-4").unwrap(), 3);
    let last = store.latest().unwrap();
    assert_eq!(
        lines(&last, "heat::Block.rows"),
        "heat::Block@5[0,0,0].rows = [0.5,7.0]\nheat::Block@5[3,0,0].rows = [-4.0,7.0]\n"
    );
    let edited = ["heat::Block[0].rows, of generation 1", "heat::Block[3].rows[0], of generation 2"];
    assert_eq!(last.about().edited, edited);
    assert_eq!((last.types(), last.verify(|_| ()).unwrap().whole), (first.types(), 3));
    assert!(Understood::new(&last, before::program().table()).is_ok());
    let changes: Vec<_> = store.generation(2).unwrap().differences(&last).unwrap();
    assert_eq!(changes.len(), 1, "nothing else has changed: {changes:?}");

    for (text, from, sentence) in [
        (
            "heat::Block.rows",
            "1",
            "heat::Block.rows means several, such as heat::Block@5[0,0,0] and heat::Block@5[3,0,0]: say which",
        ),
        (
            "heat::Block[7]",
            "1",
            "there is no heat::Block[7]: the checkpoint has other records of heat::Block",
        ),
        ("Block[0]", "1", "there is no Block[0]: the checkpoint has records of heat::Block, PE"),
        ("heat::Block[0].rows[0]", "x", "heat::Block@5[0,0,0]: state.rows[0]: \"x\" is not f64"),
        ("heat::Block[0].count", "-1", "heat::Block@5[0,0,0]: state.count: -1 is not usize"),
        (
            "heat::Block[0].line",
            "1",
            "heat::Block@5[0,0,0]: state.line: there is no field line; there are rows, count",
        ),
        ("PE", "1", "PE@5[0,0,0] is opaque: the checkpoint does not say what it is made of"),
    ] {
        assert_eq!(set(dir, &last, &which(text), from).unwrap_err().sentence, sentence);
    }
    assert_eq!(store.latest().unwrap().generation(), 3, "what is refused writes nothing");
}

#[test]
fn records_of_pes_go_by_the_number_of_the_pe() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut writer = store.begin(About::default()).unwrap();
    let (.., schema) = schemas(before::program().table()).remove(0);
    for pe in [0, 1] {
        let record = record(0, &schema.shape, &json!([]));
        writer.put(&Record { kind: RecordKind::Pe, pe, type_name: "PE".into(), ..record }).unwrap();
    }
    writer.commit().unwrap();
    for (text, sentence) in [
        ("PE", "PE means several, such as PE@5[0,0,0] and PE@5[1,0,0]: say which"),
        ("PE[1]", "PE@5[1,0,0] is opaque: the checkpoint does not say what it is made of"),
        ("PE[2]", "there is no PE[2]: the checkpoint has other records of PE"),
    ] {
        let refused = set(folder.path(), &store.latest().unwrap(), &text.parse().unwrap(), "1");
        assert_eq!(refused.unwrap_err().sentence, sentence);
    }
}
