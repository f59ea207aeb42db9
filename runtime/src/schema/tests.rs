//! Shapes are found for every kind of type, and bytes are read, changed and written by them.

use super::*;
use crate::buffer::Buffer;
use crate::proto::sim::Random;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Tree {
    label: char,
    branches: Vec<Self>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Sum {
    Both(Box<Self>, Box<Self>),
    Less { of: Box<Self> },
    Number(f64),
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pair<A, B>(A, B);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Id(u64);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Nobody;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct All {
    small: (u8, i8, bool),
    wide: [u128; 2],
    signed: (i16, i32, i64, i128, isize),
    count: usize,
    most: NonZeroU32,
    floats: Pair<f32, Pair<f64, Nobody>>,
    text: Option<String>,
    id: Id,
    by: BTreeMap<u16, Vec<Option<Id>>>,
    raw: Buffer,
    tree: Tree,
    sum: Sum,
    #[serde(skip)]
    left_out: u32,
}

fn all() -> All {
    let leaf = |label| Tree { label, branches: vec![] };
    let number = |value| Box::new(Sum::Number(value));
    All {
        small: (200, -7, true),
        wide: [u128::MAX, 300],
        signed: (-300, i32::MIN, i64::MAX, i128::MIN, -1),
        count: 1 << 40,
        most: NonZeroU32::MAX,
        floats: Pair(0.1, Pair(f64::NEG_INFINITY, Nobody)),
        text: Some("Größe".into()),
        id: Id(9),
        by: BTreeMap::from([(5, vec![None, Some(Id(u64::MAX))]), (600, vec![])]),
        raw: Buffer::from_slice(&[1u8, 2, 255]),
        tree: Tree { label: 'ä', branches: vec![leaf('b'), Tree { label: 'c', branches: vec![leaf('d')] }] },
        sum: Sum::Both(Box::new(Sum::Less { of: number(1.5) }), number(-0.0)),
        left_out: 0,
    }
}

fn packed<T: Serialize>(value: &T) -> Packed {
    Packed { body: postcard::to_stdvec(value).unwrap().into(), attachments: vec![] }
}

fn at(path: &str) -> Path {
    path.parse().unwrap()
}

#[test]
fn every_kind_of_type_has_a_shape_by_which_its_bytes_are_read_and_written() {
    let (shape, bytes) = (shape_of::<All>(), packed(&all()));
    let value = Value::read(&shape, &bytes).unwrap();
    let json = value.to_json();
    assert_eq!(json["signed"], json!([-300, i32::MIN, i64::MAX, i128::MIN.to_string(), -1]));
    assert_eq!(json["floats"], json!([f64::from(0.1f32), ["-inf", null]]));
    assert_eq!(json["by"], json!([[5, [null, u64::MAX]], [600, []]]));
    assert_eq!(json["tree"]["branches"][1]["branches"][0], json!({"label": "d", "branches": []}));
    assert_eq!(json["sum"], json!({"Both": [{"Less": {"of": {"Number": 1.5}}}, {"Number": -0.0}]}));
    assert_eq!((&json["small"], &json["raw"]), (&json!([200, -7, true]), &json!([1, 2, 255])));
    assert_eq!(value.write(), bytes, "it is written as it was");
    assert_eq!(Value::from_json(&shape, &json).unwrap(), value);
    // The shape itself travels as JSON.
    let text = serde_json::to_string(&shape).unwrap();
    assert_eq!(serde_json::from_str::<Shape>(&text).unwrap(), shape);
    let tree =
        json!({"named": ["Tree", {"struct": [["label", "char"], ["branches", {"seq": {"again": "Tree"}}]]}]});
    assert_eq!(serde_json::to_value(shape_of::<Tree>()).unwrap(), tree);
    let id = Shape::Named("Id".into(), Box::new(Shape::Number(Number::U64)));
    assert_eq!(
        shape_of::<(usize, isize, Id)>(),
        Shape::Tuple(vec![Shape::Number(Number::Usize), Shape::Number(Number::Isize), id])
    );
}

/// One that takes whatever comes, and one that takes neither a one nor a zero.
#[test]
fn what_cannot_be_found_out_is_opaque() {
    #[derive(Deserialize)]
    #[serde(try_from = "u8")]
    #[allow(dead_code, reason = "it is only read")]
    struct Seven(u8);
    impl TryFrom<u8> for Seven {
        type Error = &'static str;
        fn try_from(number: u8) -> Result<Self, Self::Error> {
            (number == 7).then_some(Self(number)).ok_or("it is not seven")
        }
    }
    #[derive(Deserialize)]
    #[allow(dead_code, reason = "it is only read")]
    struct Endless {
        inside: Box<Self>,
    }
    assert_eq!(shape_of::<(u32, serde_json::Value)>(), Shape::Opaque);
    assert_eq!(shape_of::<(u32, Seven)>(), Shape::Opaque);
    assert_eq!(shape_of::<Endless>(), Shape::Opaque);
    let error = Value::read(&Shape::Opaque, &packed(&7u8)).unwrap_err();
    assert!(error.to_string().ends_with("the shape is opaque"), "{error}");
}

fn changed<Was: DeserializeOwned, Is: DeserializeOwned>() -> String {
    difference(&shape_of::<Was>(), &shape_of::<Is>()).map(|change| change.to_string()).unwrap_or_default()
}

#[allow(dead_code, reason = "types are compared, not values")]
mod before {
    use super::*;
    #[derive(Deserialize)]
    pub(super) struct Row {
        pub(super) left: f64,
        pub(super) right: usize,
    }
    #[derive(Deserialize)]
    pub(super) enum Role {
        Idle,
        Busy(u8),
    }
    #[derive(Deserialize)]
    pub(super) struct Block {
        pub(super) rows: Vec<Row>,
        pub(super) role: Option<Role>,
    }
}

macro_rules! block {
    ($name:ident, { $($fields:tt)* }, { $($role:tt)* }) => {
        mod $name {
            use super::*;
            #[derive(Deserialize)]
            pub(super) struct Line { $($fields)* }
            #[derive(Deserialize)]
            pub(super) enum Role { $($role)* }
            #[derive(Deserialize)]
            pub(super) struct Part {
                pub(super) rows: Vec<Line>,
                pub(super) role: Option<Role>,
            }
        }
    };
}

#[test]
#[allow(dead_code, reason = "types are compared, not values")]
fn a_changed_type_is_told_by_the_path_of_the_field() {
    block!(same, { left: f64, right: u64 }, { Idle, Busy(u8) });
    block!(narrow, { left: f32, right: u64 }, { Idle, Busy(u8) });
    block!(exchanged, { right: usize, left: f64 }, { Idle, Busy(u8) });
    block!(fewer, { left: f64 }, { Idle, Busy(u8) });
    block!(more, { left: f64, right: u64, mid: u8 }, { Idle, Busy(u8) });
    block!(other, { left: f64, right: u64 }, { Idle, Busy(u16) });
    use before::Block;
    assert_eq!(changed::<Block, same::Part>(), "", "names of types, and usize for u64, change nothing");
    assert_eq!(changed::<Block, narrow::Part>(), "rows[].left was f64 and is f32 now");
    assert_eq!(changed::<Block, exchanged::Part>(), "rows[].left was number 1 and is number 2 now");
    assert_eq!(changed::<Block, fewer::Part>(), "rows[].right was usize and is not there now");
    assert_eq!(changed::<Block, more::Part>(), "rows[].mid is u8 now and was not there");
    assert_eq!(changed::<Block, other::Part>(), "role.Busy was u8 and is u16 now");
    assert_eq!(changed::<Tree, Tree>(), "");
    assert_eq!(changed::<Tree, Pair<char, Vec<u8>>>(), " was a struct of 2 and is a tuple of 2 now");
    assert_eq!(changed::<Vec<u8>, Option<u8>>(), " was a list of u8 and is optional u8 now");
}

#[test]
fn numbers_that_a_machine_has_no_room_for_are_named() {
    let value = |of: &All| Value::read(&shape_of::<All>(), &packed(of)).unwrap();
    assert_eq!(fits(&value(&all()), 64), None);
    let misfit = fits(&value(&all()), 32).unwrap().to_string();
    assert_eq!(misfit, "count is 1099511627776, and machines of 32 bits have no such usize");
    let with = |count, last| All { count, signed: (0, 0, 0, 0, last), ..all() };
    assert_eq!(fits(&value(&with(u32::MAX as usize, i32::MIN as isize)), 32), None);
    let misfit = fits(&value(&with(0, i32::MIN as isize - 1)), 32).unwrap().to_string();
    assert_eq!(misfit, "signed.4 is -2147483649, and machines of 32 bits have no such isize");
    let listed = Value::read(&shape_of::<Vec<usize>>(), &packed(&vec![0usize, 1 << 32])).unwrap();
    assert_eq!(fits(&listed, 32).unwrap().path.to_string(), "[1]");
}

#[test]
fn parts_are_found_and_changed_by_their_paths() {
    let shape =
        Shape::Struct(vec![("all".into(), shape_of::<All>()), ("bulk".into(), Shape::Bulk(Number::I16))]);
    let bulk = Value::Bulk(Number::I16, Buffer::from_slice(&[1i16.to_le(), (-2i16).to_le()]));
    let all = Value::read(&shape_of::<All>(), &packed(&all())).unwrap();
    let mut value = Value::Struct(vec![("all".into(), all), ("bulk".into(), bulk)]);
    for (path, expected) in [
        ("all.tree.branches[1].label", json!("c")),
        ("all.text", json!("Größe")),
        ("all.sum.Both.1.Number", json!(-0.0)),
        ("all.by[5][1]", json!(u64::MAX)),
        ("bulk[1]", json!(-2)),
        ("bulk", json!([1, -2])),
    ] {
        assert_eq!(value.part(&shape, &at(path)).unwrap().to_json(), expected, "{path}");
    }
    let mut set = |path: &str, new: serde_json::Value| {
        value.change(&shape, &at(path), &mut |shape, part| {
            *part = Value::from_json(shape, &new).map_err(|e| e.to_string())?;
            Ok(())
        })
    };
    assert_eq!(set("bulk[0]", json!(-5)), Ok(()));
    assert_eq!(set("all.tree.branches[0].label", json!("z")), Ok(()));
    for (path, new, sentence) in [
        ("bulk[2]", json!(1), "bulk[2]: there is no element 2, only 2 from 0"),
        ("bulk[0]", json!(40_000), "bulk[0]: 40000 is not i16"),
        ("all.small.0", json!(-1), "all.small.0: -1 is not u8"),
        ("all.small.x", json!(1), "all.small.x: there is no element x, only 3 from 0"),
        ("all.count.x", json!(1), "all.count.x: usize has no field x"),
        ("all.sum.Number", json!(1), "all.sum.Number: it is Both and not Number"),
        ("every", json!(1), "every: there is no field every; there are all, bulk"),
    ] {
        assert_eq!(set(path, new).unwrap_err().to_string(), sentence);
    }
    assert_eq!(value.part(&shape, &at("bulk")).unwrap().to_json(), json!([-5, -2]));
    assert_eq!(value.part(&shape, &at("all.tree.branches[0].label")).unwrap(), Value::Char('z'));
    assert!("a..b".parse::<Path>().is_err() && "a[1".parse::<Path>().is_err());
}

/// Damaged bytes are refused, or are those of another value; nothing takes much memory or all of the stack.
#[test]
fn bytes_of_any_content_are_read_or_refused() {
    let (shape, good) = (shape_of::<All>(), packed(&all()));
    let (mut random, mut read, mut refused) = (Random::new(19), 0, 0);
    for _ in 0..5000 {
        let packed = Packed { body: random.mutated(&good.body).into(), attachments: vec![] };
        match Value::read(&shape, &packed) {
            Ok(value) => {
                read += 1;
                assert_eq!(
                    format!("{:?}", Value::read(&shape, &value.write())),
                    format!("{:?}", Ok::<_, Malformed>(value))
                );
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
    let deep = Packed { body: [b'\x01', b'a', 1].repeat(100_000).into(), attachments: vec![] };
    let error = Value::read(&shape_of::<Tree>(), &deep).unwrap_err();
    assert_eq!(error.what, "too many values are inside each other");
}
