//! State as machines of other word sizes, byte orders and alignments have it in their memory: what one saves, each other restores.
//!
//! The machines are encoders and decoders of memory images here. That real ones do the same is seen where they can be had:
//! `tests/foreign`.

use super::super::manifest::SavedSchema;
use super::super::{Kind, Record, Store};
use super::about;
use crate::digest::Digest;
use crate::envelope::Packed;
use crate::schema::{Path, Value, fits, shape_of};
use serde::{Deserialize, Serialize};

/// `struct { char c; double d; int i; long l; void *p; short h; float f[3]; }`, as a program here writes it: a `long` is as wide as the
/// machine likes, and what points into `f` is the number of the element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    c: i8,
    d: f64,
    i: i32,
    l: isize,
    p: Option<u32>,
    h: i16,
    f: [f32; 3],
}

const STATE: State =
    State { c: -1, d: std::f64::consts::PI, i: -2, l: -3, p: Some(1), h: -4, f: [1.0, 2.0, 3.0] };

/// Where a machine has things in its memory.
#[derive(Clone, Copy, Debug)]
struct Abi {
    name: &'static str,
    is_big: bool,
    /// Bytes of a `long` and of an address, and to what a `double` is aligned.
    long: usize,
    address: usize,
    double_aligned: usize,
    /// Where a state is in its memory.
    base: u64,
}

const fn abi(
    name: &'static str,
    is_big: bool,
    [long, address, double_aligned]: [usize; 3],
    base: u64,
) -> Abi {
    Abi { name, is_big, long, address, double_aligned, base }
}

/// Those of the table of layouts, and one of 32 bits that is big-endian.
const MACHINES: [Abi; 6] = [
    abi("x86-64, LP64", false, [8, 8, 8], 0x7fff_1234_5000),
    abi("s390x, LP64", true, [8, 8, 8], 0x03ff_8000_0010),
    abi("i386, ILP32", false, [4, 4, 4], 0xbfff_f004),
    abi("ARM EABI", false, [4, 4, 8], 0x0001_0040),
    abi("PowerPC, ILP32", true, [4, 4, 8], 0x1000_0008),
    abi("Win64, LLP64", false, [4, 8, 8], 0x0012_fe40),
];

impl Abi {
    /// Where the fields begin, and the size of all.
    fn layout(&self) -> ([usize; 7], usize) {
        let double = (8, self.double_aligned);
        let fields =
            [(1, 1), double, (4, 4), (self.long, self.long), (self.address, self.address), (2, 2), (12, 4)];
        let mut end = 0usize;
        let offsets = fields.map(|(size, aligned): (usize, usize)| {
            let begin = end.next_multiple_of(aligned);
            end = begin + size;
            begin
        });
        let aligned = fields.iter().map(|(_, aligned)| *aligned).max().unwrap();
        (offsets, end.next_multiple_of(aligned))
    }

    fn put(&self, image: &mut [u8], (at, len): (usize, usize), number: i128) {
        let bytes = number.to_le_bytes();
        let place = &mut image[at..at + len];
        place.copy_from_slice(&bytes[..len]);
        if self.is_big {
            place.reverse();
        }
    }

    fn get(&self, image: &[u8], (at, len): (usize, usize)) -> u64 {
        let mut bytes = image[at..at + len].to_vec();
        if self.is_big {
            bytes.reverse();
        }
        bytes.resize(8, 0);
        u64::from_le_bytes(bytes.try_into().unwrap())
    }

    /// The same with a sign.
    fn get_signed(&self, image: &[u8], (at, len): (usize, usize)) -> i64 {
        let unused = 64 - 8 * len as u32;
        (self.get(image, (at, len)) << unused) as i64 >> unused
    }

    /// The bytes in its memory; between the fields is what happened to be there.
    fn image(&self, state: &State) -> Vec<u8> {
        let ([c, d, i, l, p, h, f], size) = self.layout();
        let mut image = vec![0xa5; size];
        let address = state.p.map_or(0, |number| self.base + f as u64 + 4 * u64::from(number));
        for (place, number) in [
            ((c, 1), i128::from(state.c)),
            ((d, 8), i128::from(state.d.to_bits())),
            ((i, 4), i128::from(state.i)),
            ((l, self.long), state.l as i128),
            ((p, self.address), i128::from(address)),
            ((h, 2), i128::from(state.h)),
        ] {
            self.put(&mut image, place, number);
        }
        for (number, float) in state.f.iter().enumerate() {
            self.put(&mut image, (f + 4 * number, 4), i128::from(float.to_bits()));
        }
        image
    }

    /// What a program there finds in its memory.
    fn state(&self, image: &[u8]) -> State {
        let ([c, d, i, l, p, h, f], size) = self.layout();
        assert_eq!(image.len(), size);
        let address = self.get(image, (p, self.address));
        State {
            c: self.get_signed(image, (c, 1)) as i8,
            d: f64::from_bits(self.get(image, (d, 8))),
            i: self.get_signed(image, (i, 4)) as i32,
            l: self.get_signed(image, (l, self.long)) as isize,
            p: (address != 0).then(|| ((address - self.base) as usize - f) as u32 / 4),
            h: self.get_signed(image, (h, 2)) as i16,
            f: [0, 1, 2].map(|number| f32::from_bits(self.get(image, (f + 4 * number, 4)) as u32)),
        }
    }

    /// What it saves of its memory.
    fn save(&self, image: &[u8]) -> Packed {
        let body = postcard::to_stdvec(&self.state(image)).unwrap();
        Packed { body: body.into(), attachments: Vec::new() }
    }

    /// What it makes of what was saved, unless it has no room for a number.
    fn restore(&self, value: &mut Value) -> Result<Vec<u8>, String> {
        if let Some(misfit) = fits(value, 8 * self.long as u32) {
            return Err(misfit.to_string());
        }
        let shape = shape_of::<State>();
        let mut json = |field: &str| {
            let path: Path = field.parse().unwrap();
            value.part(&shape, &path).unwrap().to_json()
        };
        let mut signed = |field: &str| json(field).as_i64().unwrap();
        let (c, i, l, h) = (signed("c") as i8, signed("i") as i32, signed("l") as isize, signed("h") as i16);
        let f = [0, 1, 2].map(|number| json(&format!("f.{number}")).as_f64().unwrap() as f32);
        let (d, p) = (json("d").as_f64().unwrap(), json("p").as_u64().map(|number| number as u32));
        Ok(self.image(&State { c, d, i, l, p, h, f }))
    }
}

#[test]
fn machines_have_their_fields_where_the_table_of_layouts_says() {
    let layouts = MACHINES.map(|machine| machine.layout());
    let lp64 = ([0, 8, 16, 24, 32, 40, 44], 56);
    let ilp32_aligned = ([0, 8, 16, 20, 24, 28, 32], 48);
    let others = [([0, 4, 12, 16, 20, 24, 28], 40), ilp32_aligned, ilp32_aligned];
    assert_eq!(layouts, [lp64, lp64, others[0], others[1], others[2], ([0, 8, 16, 20, 24, 32, 36], 48)]);
    let [little, big] = [MACHINES[0], MACHINES[1]].map(|machine| machine.image(&STATE));
    assert_eq!(
        (&little[16..20], &big[16..20]),
        (&[0xfe, 0xff, 0xff, 0xff][..], &[0xff, 0xff, 0xff, 0xfe][..])
    );
}

/// A checkpoint with what each machine saves of a state, as the number of the collection says.
fn saved(state: &State) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut writer = store.begin(about()).unwrap();
    for (number, machine) in (0..).zip(MACHINES) {
        let packed = machine.save(&machine.image(state));
        let (kind, type_name) = (Kind::Chare, "State".to_string());
        let record = Record { kind, pe: 0, type_name, collection: number, index: [0; 3], packed };
        writer.put(&record).unwrap();
    }
    writer.describe(Kind::Chare, "State", SavedSchema { version: 1, shape: shape_of::<State>() });
    writer.commit().unwrap();
    (folder, store)
}

#[test]
fn what_any_machine_saves_any_other_restores_and_saves_again_to_the_same_checksum() {
    let (_folder, store) = saved(&STATE);
    let saved = store.latest().unwrap();
    assert!(saved.fits(32).is_ok());
    let own = Digest::of(&postcard::to_stdvec(&STATE).unwrap());
    let mut pairs = 0;
    for record in saved.records().map(Result::unwrap) {
        let from = MACHINES[record.collection as usize].name;
        assert_eq!(Digest::of(&record.packed.body), own, "{from} saves what a program here does");
        for to in MACHINES {
            let schema = saved.schema_of(&record).unwrap();
            let mut value = Value::read(&schema.shape, &record.packed).unwrap();
            let image = to.restore(&mut value).unwrap_or_else(|why| panic!("{from} to {}: {why}", to.name));
            assert_eq!(to.state(&image), STATE, "{from} to {}", to.name);
            assert_eq!(Digest::of(&to.save(&image).body), own, "{from} to {}", to.name);
            pairs += 1;
        }
    }
    assert_eq!(pairs, 36);
}

#[test]
fn a_number_that_a_machine_has_no_room_for_is_refused_by_its_name() {
    let wide = State { l: 1 << 33, ..STATE };
    let (_folder, store) = saved(&wide);
    let saved = store.latest().unwrap();
    let record = saved.records().next().unwrap().unwrap();
    for to in MACHINES {
        let mut value = Value::read(&shape_of::<State>(), &record.packed).unwrap();
        let restored = to.restore(&mut value);
        match to.long {
            8 => assert_eq!(to.state(&restored.unwrap()), wide),
            _ => {
                let sentence = "l is 8589934592, and machines of 32 bits have no such isize";
                assert_eq!(restored.unwrap_err(), sentence, "{}", to.name);
            }
        }
    }
    let sentence = "State[0, 0, 0]: l is 8589934592, and machines of 32 bits have no such isize";
    assert_eq!(saved.fits(32).unwrap_err().to_string(), sentence);
    assert!(saved.fits(64).is_ok());
}
