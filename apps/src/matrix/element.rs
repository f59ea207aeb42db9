//! The two number types that matrices are made of.

use super::npy::NpyNumber;
use crate::kernels::fast::{Product, product_f32, product_f64};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};
use std::str::FromStr;

/// The type of a matrix's numbers, where it is known only at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32-bit IEEE 754 numbers.
    F32,
    /// 64-bit IEEE 754 numbers.
    F64,
}

impl Dtype {
    /// The type of numbers computed from both: f32 if both are, else f64.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        if self == other { self } else { Self::F64 }
    }

    /// Largest relative error of one rounded operation: 2^-24 or 2^-53.
    #[must_use]
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F32 => f32::UNIT_ROUNDOFF,
            Self::F64 => f64::UNIT_ROUNDOFF,
        }
    }

    /// Bytes of one number: 4 or 8.
    #[must_use]
    pub fn size_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// A text is neither `f32` nor `f64`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown number type '{0}': use f32 or f64")]
pub struct UnknownDtype(String);

impl FromStr for Dtype {
    type Err = UnknownDtype;

    fn from_str(text: &str) -> Result<Self, UnknownDtype> {
        match text {
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            _ => Err(UnknownDtype(text.to_owned())),
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A number that a matrix can hold: `f32` or `f64`, and nothing else.
///
/// Sealed: file formats, kernels and tolerances are chosen for exactly these two.
pub trait Element:
    sealed::Sealed
    + NpyNumber
    + Default
    + PartialEq
    + PartialOrd
    + fmt::Debug
    + fmt::Display
    + fmt::LowerExp
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Sum
    + Serialize
    + for<'de> Deserialize<'de>
    + Send
    + Sync
    + 'static
{
    /// The same type as a value.
    const DTYPE: Dtype;
    /// Largest relative error of one rounded operation: 2^-24 or 2^-53.
    const UNIT_ROUNDOFF: f64;
    /// The smallest positive number, a subnormal one: the absolute error of a result that underflows.
    const TINY: f64;

    /// The number without its sign.
    #[must_use]
    fn magnitude(self) -> Self;

    /// The number as `f64`, exactly.
    fn to_f64(self) -> f64;

    /// The nearest number of this type; beyond its range, an infinity.
    fn from_f64(value: f64) -> Self;

    /// The kernel of fast block products of this type, for the processor at hand.
    fn product() -> Product<Self>;
}

impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
    const UNIT_ROUNDOFF: f64 = Self::EPSILON as f64 / 2.0;
    const TINY: f64 = Self::from_bits(1) as f64;

    fn magnitude(self) -> Self {
        self.abs()
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(value: f64) -> Self {
        value as Self
    }

    fn product() -> Product<Self> {
        product_f32()
    }
}

impl Element for f64 {
    const DTYPE: Dtype = Dtype::F64;
    const UNIT_ROUNDOFF: Self = Self::EPSILON / 2.0;
    const TINY: Self = Self::from_bits(1);

    fn magnitude(self) -> Self {
        self.abs()
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(value: f64) -> Self {
        value
    }

    fn product() -> Product<Self> {
        product_f64()
    }
}
