//! The number types that distances have, and what an algorithm must know of them.

use super::buckets::Width;
use crate::kernels::min_plus::MinPlus;
use crate::matrix::npy::NpyNumber;
use chares::Number;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Type of weights and distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DistanceType {
    /// Whole numbers of 32 bits; unreachable is 2147483647
    I32,
    /// Whole numbers of 64 bits; unreachable is 9223372036854775807
    I64,
    /// Floating-point numbers of 32 bits; unreachable is infinity
    F32,
    /// Floating-point numbers of 64 bits; unreachable is infinity
    F64,
}

impl DistanceType {
    /// Bytes of a number.
    #[must_use]
    pub fn size_bytes(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether it holds whole numbers only.
    #[must_use]
    pub fn is_whole(self) -> bool {
        matches!(self, Self::I32 | Self::I64)
    }

    /// The longest path that may occur, for sums of two and of what stands for unreachable not to overflow.
    #[must_use]
    pub fn longest(self) -> f64 {
        match self {
            Self::I32 => f64::from(i32::FAR) / 4.0,
            Self::I64 => i64::FAR as f64 / 4.0,
            Self::F32 => f64::from(f32::MAX) / 4.0,
            Self::F64 => f64::MAX / 4.0,
        }
    }
}

/// A number type that distances have.
pub trait Distance: Number + NpyNumber + MinPlus + fmt::Display {
    /// The type as a value.
    const TYPE: DistanceType;
    /// No distance.
    const ZERO: Self;
    /// What stands in results where there is no path.
    const UNREACHABLE: Self;
    /// What stands for no path while sums are made of it: twice of it does not overflow.
    const FAR: Self;
    /// Relative rounding error of one sum; 0 for whole numbers.
    const ROUNDOFF: f64;

    /// A distance, not negative, as a number that orders as distances do.
    fn key(self) -> u64;
    /// The distance again.
    fn of_key(key: u64) -> Self;
    /// Which stretch of this width it lies in; it is not negative.
    fn stretch(self, width: &Width) -> u64;
    /// The nearest number.
    fn of_whole(value: i64) -> Self;
    /// The nearest number.
    fn of_real(value: f64) -> Self;
    /// The nearest 64-bit floating-point number.
    fn to_f64(self) -> f64;
    /// Whether it stands for no path, also where sums have been made of that.
    fn is_far(self) -> bool;
}

macro_rules! distances {
    ($($number:ident $kind:ident $zero:literal, $unreachable:expr, $far:expr, $roundoff:expr,
        |$d:ident| $pack:expr, |$k:ident| $open:expr, |$w:ident| $stretch:expr;)*) => { $(
        impl Distance for $number {
            const TYPE: DistanceType = DistanceType::$kind;
            const ZERO: Self = $zero;
            const UNREACHABLE: Self = $unreachable;
            const FAR: Self = $far;
            const ROUNDOFF: f64 = $roundoff;

            #[inline(always)]
            fn key(self) -> u64 {
                let $d = self;
                $pack
            }
            #[inline(always)]
            fn of_key($k: u64) -> Self {
                $open
            }
            #[inline(always)]
            fn stretch(self, $w: &Width) -> u64 {
                let $d = self;
                $stretch
            }
            fn of_whole(value: i64) -> Self {
                value as Self
            }
            fn of_real(value: f64) -> Self {
                value as Self
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn is_far(self) -> bool {
                self >= Self::FAR / (2 as Self)
            }
        }
    )* };
}

// Sums of whole numbers wrap only where a negative cycle is about to be reported anyway.
distances! {
    i32 I32 0, Self::MAX, Self::MAX / 2, 0.0,
        |d| d.cast_unsigned().into(), |k| k as Self, |w| (d.cast_unsigned() >> w.shift).into();
    i64 I64 0, Self::MAX, Self::MAX / 2, 0.0,
        |d| d.cast_unsigned(), |k| k as Self, |w| d.cast_unsigned() >> w.shift;
    f32 F32 0.0, Self::INFINITY, Self::INFINITY, Self::EPSILON as f64 / 2.0,
        |d| d.to_bits().into(), |k| Self::from_bits(k as u32), |w| (f64::from(d) * w.inverse) as u64;
    f64 F64 0.0, Self::INFINITY, Self::INFINITY, Self::EPSILON / 2.0,
        |d| d.to_bits(), |k| Self::from_bits(k), |w| (d * w.inverse) as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_keys<D: Distance>(one: D, other: D) {
        assert_eq!(D::of_key(one.key()), one);
        assert_eq!(Some(one.key().cmp(&other.key())), one.partial_cmp(&other));
    }

    proptest! {
        #[test]
        fn keys_order_as_distances_do(a in 0i32.., b in 0i32.., x in 0.0f64..1e300, y in 0.0f64..1e300) {
            assert_keys(a, b);
            assert_keys(i64::from(a) << 20, i64::from(b));
            assert_keys(x, y);
            assert_keys(x, 0.0);
            assert_keys(x as f32, y as f32);
        }
    }

    #[test]
    fn what_is_far_stays_far_with_any_path_added() {
        assert!((i32::FAR + i32::FAR).is_far() && (i32::FAR - (i32::FAR / 4)).is_far());
        assert!(!(DistanceType::I32.longest() as i32).is_far());
        assert!((i64::FAR + i64::FAR).is_far() && !(DistanceType::I64.longest() as i64).is_far());
        assert!((f64::FAR + -1e300).is_far() && !f64::MAX.is_far() && f32::FAR.is_far());
    }
}
