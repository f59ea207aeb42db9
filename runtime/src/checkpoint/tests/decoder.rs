//! Bytes that nobody has written: they are refused, and take no memory.

use super::super::codec::{Codec, Compressor};
use super::super::format::{
    Index, Malformed, OLDEST, Place, Row, TableEntry, VERSION, Value, read_table, write_row,
};
use super::super::{Kind, Record};
use super::chare;
use crate::digest::Digest;
use proptest::prelude::*;

fn place() -> impl Strategy<Value = Place> {
    let parts = (any::<u32>(), any::<u64>(), any::<u32>(), any::<[u8; 32]>());
    parts.prop_map(|(generation, offset, stored_bytes, digest)| Place {
        generation,
        offset,
        stored_bytes,
        codec: Codec::Plain,
        bytes: stored_bytes,
        digest: Digest(digest),
    })
}

fn index() -> impl Strategy<Value = Index> {
    let table = (0..4usize, any::<u32>(), any::<u32>(), place());
    let table =
        table.prop_map(|(kind, pe, records, place)| TableEntry { kind: Kind::ALL[kind], pe, records, place });
    (OLDEST..=VERSION, 1..1u32 << 26, prop::collection::vec(table, 0..5))
        .prop_map(|(version, chunk_bytes, tables)| Index { version, chunk_bytes, tables })
}

fn value(chunk_bytes: u32) -> impl Strategy<Value = Value> {
    let inside = prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Inside);
    let in_chunks =
        (0..500u64, prop::collection::vec(place(), 500)).prop_map(move |(len_bytes, mut places)| {
            places.truncate(len_bytes.div_ceil(u64::from(chunk_bytes)) as usize);
            let mut rest = len_bytes;
            for place in &mut places {
                place.bytes = rest.min(u64::from(chunk_bytes)) as u32;
                rest -= u64::from(place.bytes);
                // Some are compressed to any length.
                let is_compressed = place.offset % 2 == 1 && place.bytes > 1;
                (place.codec, place.stored_bytes) = match is_compressed {
                    true => (Codec::Zstd, place.stored_bytes % place.bytes),
                    false => (Codec::Plain, place.bytes),
                };
            }
            Value::Chunks { len_bytes, places }
        });
    prop_oneof![inside, in_chunks]
}

fn row_of(record: &Record, values: Vec<Value>) -> Row {
    let Record { type_name, collection, index, .. } = record.clone();
    Row { type_name, collection, index, values }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_index_is_read_as_it_was_written(index in index(), flip in any::<usize>(), byte in any::<u8>()) {
        let mut bytes = index.write();
        let read = Index::read(&bytes);
        prop_assert_eq!(read.as_ref(), Ok(&index));
        for end in 0..bytes.len() {
            prop_assert!(Index::read(&bytes[..end]).is_err());
        }
        // Whatever it says then, reading it ends, and it can say no more than its length has room for.
        let at = flip % bytes.len();
        bytes[at] = byte;
        if let Ok(read) = Index::read(&bytes) {
            prop_assert_eq!(read.write(), bytes);
        }
    }

    #[test]
    fn a_table_is_read_as_it_was_written(
        values in prop::collection::vec(prop::collection::vec(value(97), 1..4), 0..4),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 30),
    ) {
        let mut bytes = Vec::new();
        let rows: Vec<Row> = values.into_iter().enumerate().map(|(n, values)| {
            let record = chare(n as u32, 0, 0);
            write_row(&record, &values, &mut bytes);
            row_of(&record, values)
        }).collect();
        let count = rows.len() as u32;
        let read = read_table(&bytes, count, 97);
        prop_assert_eq!(read.as_ref(), Ok(&rows));
        prop_assert!(read_table(&bytes, count + 1, 97).is_err());
        prop_assert!(rows.is_empty() || read_table(&bytes, count - 1, 97).is_err());
        for (at, byte) in changes.into_iter().filter(|_| !bytes.is_empty()) {
            let mut changed = bytes.clone();
            changed[at % bytes.len()] = byte;
            let _ = read_table(&changed, count, 97);
            prop_assert!(read_table(&changed[..at % bytes.len()], count, 97).is_err());
        }
    }

    /// What is compressed comes back; no bit of it can be another, and no bytes at all expand to more than there is room for.
    #[test]
    fn what_is_compressed_comes_back_whole_or_not_at_all(
        words in prop::collection::vec((any::<u8>(), 20..90usize), 10..40),
        length in 0..400usize,
        noise in prop::collection::vec(any::<u8>(), 0..300),
        flip in any::<usize>(),
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|(byte, count)| vec![*byte; *count]).collect();
        let (mut stored, mut out) = (Vec::new(), vec![0; bytes.len()]);
        let expand = |stored: &[u8], out: &mut [u8]| Codec::Zstd.expand(stored, out);
        prop_assert!(Compressor::default().compress(&bytes, &mut stored) && stored.len() * 4 <= bytes.len() * 3);
        prop_assert!(expand(&stored, &mut out));
        prop_assert_eq!(&out, &bytes);
        prop_assert!(![Codec::OldPlain, Codec::OldLz4, Codec::Plain].iter().any(|codec| codec.expand(&stored, &mut out)));
        prop_assert!(!expand(&stored, &mut out[1..]) && !expand(&stored, &mut [bytes, vec![0]].concat()));
        let at = flip % (stored.len() * 8);
        stored[at / 8] ^= 1 << (at % 8);
        prop_assert!(!expand(&stored, &mut out));
        prop_assert!(!expand(&noise, &mut vec![0; length]));
        // Of such bytes the checksum is right.
        for codec in Codec::ALL {
            let sum = codec.digest(&noise);
            let _ = codec.expand(&[&noise, &sum.0[..8]].concat(), &mut vec![0; length]);
        }
    }

    #[test]
    fn any_bytes_at_all_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), count in any::<u32>()) {
        prop_assert!(Index::read(&bytes).is_err());
        let read = read_table(&bytes, count, 64);
        prop_assert!(read.map_or(true, |rows| rows.len() <= bytes.len()));
    }
}

/// Noise is not looked at for long, and what follows it is compressed again after seven chunks at most.
#[test]
fn of_what_is_not_shorter_compressed_few_chunks_are_tried() {
    let mut noise = vec![0; 20_000];
    let mut state = 1_u32;
    noise.fill_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    for noisy in 0..40 {
        let (mut compressor, mut out) = (Compressor::default(), Vec::new());
        assert!((0..noisy).all(|_| !compressor.compress(&noise, &mut out)));
        let is_compressed: Vec<bool> = (0..20).map(|_| compressor.compress(&[7; 20_000], &mut out)).collect();
        let first = is_compressed.iter().position(|is| *is).unwrap();
        assert!(is_compressed[first..].iter().all(|is| *is), "{noisy}: {is_compressed:?}");
        assert_eq!(first, if noisy < 8 { 0 } else { (8 - noisy % 8) % 8 }, "{noisy}");
    }
}

/// What version 2 compressed: three letters, 16 more that begin 3 before their end, and five at the end.
#[test]
fn what_was_compressed_before_version_3_is_read() {
    let block = b"\x3cabc\x03\x00\x50bcabc";
    let sum = Digest::sha256(block);
    let mut stored = [&block[..], &sum.0[..8]].concat();
    let mut out = [0; 24];
    assert!(Codec::OldLz4.expand(&stored, &mut out) && out == *b"abcabcabcabcabcabcabcabc");
    assert!(!Codec::Zstd.expand(&stored, &mut out) && !Codec::OldLz4.expand(&stored, &mut out[1..]));
    for at in 0..stored.len() * 8 {
        stored[at / 8] ^= 1 << (at % 8);
        assert!(!Codec::OldLz4.expand(&stored, &mut out), "bit {at}");
        stored[at / 8] ^= 1 << (at % 8);
    }
}

/// What a later version may write is refused by the number of it.
#[test]
fn a_way_of_storing_chunks_that_is_not_known_is_named() {
    let place = Place {
        generation: 1,
        offset: 0,
        stored_bytes: 97,
        codec: Codec::Plain,
        bytes: 97,
        digest: Digest([0; 32]),
    };
    let mut bytes = Vec::new();
    write_row(&chare(0, 0, 0), &[Value::Chunks { len_bytes: 97, places: vec![place] }], &mut bytes);
    let at = bytes.len() - 33;
    for (codec, refused) in [(4, Malformed::Codec(4)), (1, Malformed::Length), (3, Malformed::Length)] {
        bytes[at] = codec;
        assert_eq!(read_table(&bytes, 1, 97), Err(refused));
    }
    let table = TableEntry { kind: Kind::Pe, pe: 0, records: 1, place };
    let mut bytes = Index { version: VERSION, chunk_bytes: 97, tables: vec![table] }.write();
    let at = bytes.len() - 33;
    for codec in [1, 3] {
        bytes[at] = codec;
        assert_eq!(Index::read(&bytes), Err(Malformed::Codec(codec)), "tables are never compressed");
    }
}
