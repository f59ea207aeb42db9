//! The promises of `data_partition`, as properties over random inputs and as named cases.

use super::*;
use proptest::prelude::*;

fn parts(speeds: &[f64]) -> Vec<Part> {
    speeds.iter().copied().map(Part::new).collect()
}

fn granule(granule: u64) -> PartitionOptions {
    PartitionOptions { granule, ..Default::default() }
}

fn split(items: u64, parts: &[Part], options: &PartitionOptions) -> Vec<u64> {
    let ranges = data_partition(items, parts, options).unwrap();
    ranges.into_iter().map(|range| range.end - range.start).collect()
}

#[test]
fn shares_follow_speed() {
    assert_eq!(split(180, &parts(&[1.0, 0.55, 0.25]), &granule(1)), [100, 55, 25]);
    assert_eq!(split(1024, &parts(&[3.0, 1.0]), &granule(1)), [768, 256]);
}

#[test]
fn a_spare_granule_goes_where_it_ends_soonest() {
    // Ideal shares 1.6 and 0.4 of 2 granules: the slow part would take four times as long for one.
    assert_eq!(split(20, &parts(&[4.0, 1.0]), &granule(10)), [20, 0]);
    // Ideal shares 4.6, 1.7 and 1.7 of 8: the largest remainder would give one each to the two slow parts,
    // which then end at 2 / 1.7; instead one of them and the fast part end at 5 / 4.6 and 2 / 1.7.
    assert_eq!(split(8, &parts(&[4.6, 1.7, 1.7]), &granule(1)), [5, 2, 1]);
}

#[test]
fn no_items_give_empty_ranges() {
    assert_eq!(data_partition(0, &parts(&[1.0, 2.0]), &granule(7)).unwrap(), [0..0, 0..0]);
    let full = [Part::new(1.0).with_max_items(0)];
    assert_eq!(split(0, &full, &granule(1)), [0]);
}

#[test]
fn a_granule_larger_than_all_items_goes_to_one_part() {
    assert_eq!(split(10, &parts(&[1.0, 2.0, 1.0]), &granule(100)), [0, 10, 0]);
}

#[test]
fn a_full_part_leaves_its_excess_to_the_others_by_speed() {
    let parts = [Part::new(2.0).with_max_items(10), Part::new(2.0), Part::new(1.0)];
    assert_eq!(split(100, &parts, &granule(1)), [10, 60, 30]);
    // Filling one part may make the next one overflow.
    let parts = [Part::new(2.0).with_max_items(10), Part::new(2.0).with_max_items(50), Part::new(1.0)];
    assert_eq!(split(100, &parts, &granule(1)), [10, 50, 40]);
}

#[test]
fn limits_that_just_suffice_are_filled() {
    let parts = [Part::new(1.0).with_max_items(6), Part::new(9.0).with_max_items(4)];
    assert_eq!(split(10, &parts, &granule(1)), [6, 4]);
    // The short piece of 2 fits only into what 6 leaves beside a granule of 4.
    assert_eq!(split(10, &parts, &granule(4)), [6, 4]);
}

#[test]
fn the_error_says_how_much_does_not_fit() {
    let parts = [Part::new(1.0).with_max_items(6), Part::new(9.0).with_max_items(5)];
    let missing = |items, size| match data_partition(items, &parts, &granule(size)) {
        Err(PartitionError::NoRoom { missing, .. }) => Some(missing),
        _ => None,
    };
    assert_eq!(missing(11, 1), None);
    assert_eq!(missing(12, 1), Some(1));
    assert_eq!(missing(u64::MAX, 1), Some(u64::MAX - 11));
    // In fours there is room for two, and a short piece of up to 2.
    assert_eq!(missing(10, 4), None);
    assert_eq!(missing(11, 4), Some(3));
    assert_eq!(missing(14, 4), Some(4));
    let error = data_partition(12, &parts, &granule(1)).unwrap_err();
    assert!(error.to_string().starts_with("1 of 12 items do not fit"), "{error}");
    assert!(error.to_string().contains("room for 11"), "{error}");
}

#[test]
fn a_fraction_is_the_first_piece_in_whole_granules() {
    let options = PartitionOptions { granule: 10, fraction: 0.5 };
    assert_eq!(split(250, &parts(&[1.0, 1.0]), &options), [60, 60]);
    let none = PartitionOptions { fraction: 0.0, ..options };
    assert_eq!(split(250, &parts(&[1.0, 1.0]), &none), [0, 0]);
    // All of it also means the piece that is no whole granule.
    let all = PartitionOptions { fraction: 1.0, ..options };
    assert_eq!(split(250, &parts(&[1.0, 1.0]), &all).iter().sum::<u64>(), 250);
}

#[test]
fn nonsense_is_refused_by_name() {
    let options = PartitionOptions::default();
    assert_eq!(data_partition(1, &[], &options), Err(PartitionError::NoParts));
    for speed in [0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let error = data_partition(1, &parts(&[1.0, speed]), &options).unwrap_err();
        assert!(matches!(error, PartitionError::BadSpeed { part: 1, .. }), "{error}");
    }
    assert_eq!(data_partition(1, &parts(&[1.0]), &granule(0)), Err(PartitionError::ZeroGranule));
    for fraction in [-0.1, 1.1, f64::NAN] {
        let error = data_partition(1, &parts(&[1.0]), &PartitionOptions { fraction, ..options }).unwrap_err();
        assert!(matches!(error, PartitionError::BadFraction { .. }), "{error}");
    }
}

#[test]
fn speeds_of_any_magnitude_are_fine() {
    let tiny = f64::from_bits(1);
    // The slow ones divide what the fast one has no room for, however slow they are.
    let slow = [Part::new(1.0).with_max_items(2), Part::new(tiny), Part::new(tiny)];
    assert_eq!(split(10, &slow, &granule(1)), [2, 4, 4]);
    assert_eq!(split(10, &parts(&[tiny, tiny]), &granule(1)), [5, 5]);
    assert_eq!(split(10, &parts(&[f64::MAX, f64::MAX, tiny]), &granule(1)), [5, 5, 0]);
    assert_eq!(split(u64::MAX, &parts(&[f64::MAX, f64::MAX]), &granule(u64::MAX)), [u64::MAX, 0]);
}

/// Speeds, each with a limit or without.
fn any_parts(max_len: usize) -> impl Strategy<Value = Vec<Part>> {
    let part = (1e-3f64..1.0, prop::option::of(0u64..2000));
    prop::collection::vec(part.prop_map(|(speed, max_items)| Part { speed, max_items }), 1..max_len)
}

/// The most items that whole granules and one short piece of `short` items leave room for.
fn fits(items: u64, parts: &[Part], granule: u64) -> bool {
    let (units, short) = (u128::from(items / granule), items % granule);
    let whole = |part: &Part| u128::from(part.limit() / granule);
    let all: u128 = parts.iter().map(whole).sum();
    if short == 0 {
        return all >= units;
    }
    parts.iter().any(|holder| {
        holder.limit() >= short
            && all - whole(holder) + u128::from((holder.limit() - short) / granule) >= units
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_item_is_handed_out_once_within_the_limits(
        items in 0u64..8000,
        parts in any_parts(12),
        size in 1u64..100,
    ) {
        match data_partition(items, &parts, &granule(size)) {
            Ok(ranges) => {
                prop_assert!(fits(items, &parts, size));
                prop_assert_eq!(ranges.len(), parts.len());
                let mut next = 0;
                let mut short = 0;
                for (range, part) in ranges.iter().zip(&parts) {
                    prop_assert_eq!(range.start, next);
                    prop_assert!(range.end >= range.start);
                    next = range.end;
                    let count = range.end - range.start;
                    prop_assert!(count <= part.limit());
                    short += u64::from(count % size != 0);
                }
                prop_assert_eq!(next, items);
                prop_assert_eq!(short, u64::from(items % size != 0), "one part has the remainder");
            }
            Err(PartitionError::NoRoom { missing, .. }) => {
                prop_assert!(!fits(items, &parts, size));
                prop_assert!(missing > 0 && missing <= items);
                if size == 1 {
                    let room: u64 = parts.iter().map(|part| part.limit()).sum();
                    prop_assert_eq!(missing, items - room);
                }
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn the_deviation_from_the_ideal_is_under_one_granule(
        items in 0u64..1_000_000,
        speeds in prop::collection::vec(1e-4f64..1.0, 1..40),
        size in 1u64..5000,
    ) {
        let total: f64 = speeds.iter().sum();
        for (count, speed) in split(items, &parts(&speeds), &granule(size)).into_iter().zip(&speeds) {
            let ideal = items as f64 * speed / total;
            prop_assert!((count as f64 - ideal).abs() < size as f64 + 1e-6, "{} for {}", count, ideal);
        }
    }

    #[test]
    fn no_limited_part_waits_while_an_open_one_has_more_for_its_speed(
        items in 0u64..5000,
        parts in any_parts(8),
    ) {
        // Where a limit binds the others share by speed: two parts below their limits differ by rounding only.
        if let Ok(ranges) = data_partition(items, &parts, &granule(1)) {
            let open: Vec<(f64, f64)> = ranges
                .iter()
                .zip(&parts)
                .filter(|(range, part)| range.end - range.start < part.limit())
                .map(|(range, part)| ((range.end - range.start) as f64, part.speed))
                .collect();
            for (a, speed_a) in &open {
                for (b, speed_b) in &open {
                    prop_assert!((a - 1.0) / speed_a < (b + 1.0) / speed_b + 1e-6);
                }
            }
            for (range, part) in ranges.iter().zip(&parts) {
                let count = (range.end - range.start) as f64;
                for (b, speed_b) in &open {
                    // A full part has no more for its speed than an open one.
                    prop_assert!((count - 1.0) / part.speed < (b + 1.0) / speed_b + 1e-6);
                }
            }
        }
    }

    #[test]
    fn a_rounding_by_largest_remainder_never_ends_earlier(
        items in 1u64..500,
        speeds in prop::collection::vec(0.05f64..1.0, 1..10),
    ) {
        let total: f64 = speeds.iter().sum();
        let ideal: Vec<f64> = speeds.iter().map(|speed| items as f64 * speed / total).collect();
        let mut largest: Vec<u64> = ideal.iter().map(|share| share.floor() as u64).collect();
        let mut order: Vec<usize> = (0..speeds.len()).collect();
        order.sort_by(|&a, &b| ideal[b].fract().total_cmp(&ideal[a].fract()));
        let left = items - largest.iter().sum::<u64>();
        for &part in order.iter().take(left as usize) {
            largest[part] += 1;
        }
        let finish = |counts: &[u64]| {
            counts.iter().zip(&speeds).map(|(&count, speed)| count as f64 / speed).fold(0.0, f64::max)
        };
        let ours = split(items, &parts(&speeds), &granule(1));
        prop_assert!(finish(&ours) <= finish(&largest) * (1.0 + 1e-9));
    }

    #[test]
    fn items_of_any_size_are_all_handed_out(
        items: u64,
        speeds in prop::collection::vec(f64::MIN_POSITIVE..f64::MAX, 1..10),
        size in 1u64..,
        fraction in 0.0f64..=1.0,
    ) {
        let all = split(items, &parts(&speeds), &granule(size));
        prop_assert_eq!(all.into_iter().map(u128::from).sum::<u128>(), u128::from(items));
        let some: u64 = split(items, &parts(&speeds), &PartitionOptions { granule: size, fraction }).iter().sum();
        prop_assert!(some <= items);
        prop_assert!(fraction == 1.0 || some.is_multiple_of(size));
    }
}
