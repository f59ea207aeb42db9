//! Bytes that nobody has written: they are refused, and take no memory.

use super::super::format::{Index, Place, Row, TableEntry, Value, read_table, write_row};
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
        digest: Digest(digest),
    })
}

fn index() -> impl Strategy<Value = Index> {
    let table = (0..4usize, any::<u32>(), any::<u32>(), place());
    let table =
        table.prop_map(|(kind, pe, records, place)| TableEntry { kind: Kind::ALL[kind], pe, records, place });
    (1..1u32 << 26, prop::collection::vec(table, 0..5))
        .prop_map(|(chunk_bytes, tables)| Index { chunk_bytes, tables })
}

fn value(chunk_bytes: u32) -> impl Strategy<Value = Value> {
    let inside = prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Inside);
    let in_chunks =
        (0..500u64, prop::collection::vec(place(), 500)).prop_map(move |(len_bytes, mut places)| {
            places.truncate(len_bytes.div_ceil(u64::from(chunk_bytes)) as usize);
            let mut rest = len_bytes;
            for place in &mut places {
                place.stored_bytes = rest.min(u64::from(chunk_bytes)) as u32;
                rest -= u64::from(place.stored_bytes);
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

    #[test]
    fn any_bytes_at_all_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), count in any::<u32>()) {
        prop_assert!(Index::read(&bytes).is_err());
        let read = read_table(&bytes, count, 64);
        prop_assert!(read.map_or(true, |rows| rows.len() <= bytes.len()));
    }
}
