//! The work: a chain of numbers, each computed from the one before. Nobody can leave out a part of it who goes step by step,
//! and whoever knows the theory jumps to its end, so that a check costs next to nothing.

/// Numbers are below this prime, 2^61 - 1.
pub const PRIME: u64 = (1 << 61) - 1;
/// Each number is this times the one before, and so much more.
const FACTOR: u64 = 1_181_783_497_276_652_981;
const TERM: u64 = 1_442_695_040_888_963_407;

/// `a b + c` modulo [`PRIME`]; all are below it.
const fn multiply_add(a: u64, b: u64, c: u64) -> u64 {
    let wide = a as u128 * b as u128 + c as u128;
    // 2^61 is one more than a multiple of the prime.
    let folded = (wide as u64 & PRIME) + (wide >> 61) as u64;
    if folded >= PRIME { folded - PRIME } else { folded }
}

/// The number `count` links after `first`, link by link.
#[must_use]
pub fn walk(first: u64, count: u64) -> u64 {
    (0..count).fold(first % PRIME, |number, _| multiply_add(FACTOR, number, TERM))
}

/// The same in as many steps as `count` has binary digits: several links together are a product and a sum as well.
#[must_use]
pub fn jump(first: u64, mut count: u64) -> u64 {
    let (mut number, mut factor, mut term) = (first % PRIME, FACTOR, TERM);
    while count > 0 {
        if count % 2 == 1 {
            number = multiply_add(factor, number, term);
        }
        term = multiply_add(factor, term, term);
        factor = multiply_add(factor, factor, 0);
        count /= 2;
    }
    number
}

/// A number in which all of these count, and their order does.
#[must_use]
pub fn mixed(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, |mixed, number| multiply_add(FACTOR, mixed, number % PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn links_are_products_and_sums_modulo_the_prime() {
        let expected = |number: u64| {
            let wide = u128::from(FACTOR) * u128::from(number) + u128::from(TERM);
            (wide % u128::from(PRIME)) as u64
        };
        for first in [0, 1, 12_345, PRIME - 1] {
            assert_eq!(walk(first, 1), expected(first));
        }
        assert_eq!((walk(7, 0), walk(PRIME, 3)), (7, walk(0, 3)));
    }

    #[test]
    fn the_order_of_what_is_mixed_counts() {
        assert_ne!(mixed([1, 2, 3]), mixed([1, 3, 2]));
        assert_ne!(mixed([1, 2]), mixed([1, 2, 0]));
    }

    proptest! {
        #[test]
        fn a_jump_ends_where_a_walk_does(first: u64, count in 0u64..5000, more in 0u64..5000) {
            prop_assert_eq!(jump(first, count), walk(first, count));
            prop_assert_eq!(walk(walk(first, count), more), jump(first, count + more));
        }
    }
}
