//! How urgent a message is among those that wait on a PE.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A number, and among messages of the same number a vector of bits. Smaller numbers are more urgent. An ordinary message
/// has number 0 and no bits; no bits are the most urgent ones. It is made of a number, of [`Bits`] (with number 0) or of
/// both.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Priority(
    /// As long as a pointer, and nothing at all for ordinary messages.
    Option<Arc<Rank>>,
);

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Rank {
    number: i32,
    bits: Bits,
}

impl Priority {
    /// That of most messages.
    pub const ORDINARY: Self = Self(None);

    fn new(number: i32, bits: Bits) -> Self {
        let is_ordinary = number == 0 && bits.is_empty();
        Self((!is_ordinary).then(|| Arc::new(Rank { number, bits })))
    }

    /// More urgent than all others, but those that are the same.
    #[must_use]
    pub fn first() -> Self {
        i32::MIN.into()
    }

    /// Whether it is number 0 and no bits.
    #[must_use]
    #[inline]
    pub fn is_ordinary(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it is more urgent than an ordinary one.
    #[must_use]
    #[inline]
    pub fn is_urgent(&self) -> bool {
        self.0.as_ref().is_some_and(|rank| rank.number < 0)
    }

    fn rank(&self) -> &Rank {
        static ORDINARY: Rank = Rank { number: 0, bits: Bits { bytes: Vec::new(), len: 0 } };
        self.0.as_deref().unwrap_or(&ORDINARY)
    }
}

impl fmt::Debug for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rank().fmt(f)
    }
}

impl From<i32> for Priority {
    #[inline]
    fn from(number: i32) -> Self {
        if number == 0 { Self::ORDINARY } else { Self::new(number, Bits::default()) }
    }
}

impl From<Bits> for Priority {
    fn from(bits: Bits) -> Self {
        Self::new(0, bits)
    }
}

impl From<&Bits> for Priority {
    fn from(bits: &Bits) -> Self {
        Self::new(0, bits.clone())
    }
}

impl From<(i32, Bits)> for Priority {
    fn from((number, bits): (i32, Bits)) -> Self {
        Self::new(number, bits)
    }
}

impl Ord for Priority {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, other) = (self.rank(), other.rank());
        let bits = || {
            // Few have any, and a heap compares much.
            let have_some = !one.bits.is_empty() || !other.bits.is_empty();
            if have_some { one.bits.cmp(&other.bits) } else { Ordering::Equal }
        };
        one.number.cmp(&other.number).then_with(bits)
    }
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for Priority {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_deref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Priority {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rank = Option::<Rank>::deserialize(deserializer)?;
        Ok(rank.map(|Rank { number, bits }| Self::new(number, bits)).unwrap_or_default())
    }
}

/// A path in a tree as a vector of bits, for priorities by which a search goes through the tree in an order of its own.
/// Two are compared bit by bit, 0 before 1; one that the other begins with is more urgent. So a node comes before all below
/// it, and all below it before its next sibling.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Bits {
    /// The first bit is the highest of the first byte; behind the last are zeros. So the order of the fields is theirs.
    bytes: Vec<u8>,
    len: u16,
}

/// Bits as they come from elsewhere.
#[derive(Deserialize)]
struct Written {
    bytes: Vec<u8>,
    len: u16,
}

impl TryFrom<Written> for Bits {
    type Error = &'static str;

    fn try_from(Written { bytes, len }: Written) -> Result<Self, Self::Error> {
        let is_long = usize::from(len) > Self::MAX || bytes.len() != usize::from(len).div_ceil(8);
        let unused = bytes.last().is_some_and(|last| len % 8 > 0 && last << (len % 8) != 0);
        if is_long || unused { Err("a priority of so many bits cannot be") } else { Ok(Self { bytes, len }) }
    }
}

impl Bits {
    /// So many bits a priority can have. What would come behind them is left out, and no longer makes a difference.
    pub const MAX: usize = 4096;

    /// No bits: the root of a tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Count of bits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The path to child `at`, counted from 0, of a node with `count` children that has this path: as many bits longer as it
    /// takes to tell the children apart.
    #[must_use]
    pub fn child(&self, at: u32, count: u32) -> Self {
        self.followed_by(at, u32::BITS - count.saturating_sub(1).leading_zeros())
    }

    /// These bits, and behind them the lowest `width` (at most 32) of `value`, the highest of those first.
    #[must_use]
    pub fn followed_by(&self, value: u32, width: u32) -> Self {
        let mut longer = self.clone();
        longer.bytes.reserve_exact(4);
        (0..width.min(u32::BITS)).rev().for_each(|bit| longer.push(value >> bit & 1 == 1));
        longer
    }

    fn push(&mut self, is_one: bool) {
        if self.len() == Self::MAX {
            return;
        }
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let (true, Some(last)) = (is_one, self.bytes.last_mut()) {
            *last |= 0x80 >> (self.len % 8);
        }
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(all: &[bool]) -> Bits {
        all.iter().fold(Bits::new(), |bits, &is_one| bits.followed_by(is_one.into(), 1))
    }

    proptest! {
        #[test]
        fn the_order_is_by_number_then_bit_by_bit(
            one in (-2i32..3, prop::collection::vec(any::<bool>(), 0..20)),
            other in (-2i32..3, prop::collection::vec(any::<bool>(), 0..20)),
            common in prop::collection::vec(any::<bool>(), 0..20),
        ) {
            // A list that another begins with is less, as a priority is; half of them begin alike.
            let list = |(number, tail): &(i32, Vec<bool>)| (*number, [&common[..], tail].concat());
            let priority = |of: &(i32, Vec<bool>)| { let (n, all) = list(of); Priority::from((n, bits(&all))) };
            prop_assert_eq!(priority(&one).cmp(&priority(&other)), list(&one).cmp(&list(&other)));
            prop_assert_eq!(priority(&one).is_urgent(), priority(&one) < Priority::ORDINARY);
            prop_assert_eq!(priority(&one).is_ordinary(), list(&one) == (0, vec![]));
        }

        #[test]
        fn what_is_written_is_read_again_and_nothing_else(all in prop::collection::vec(any::<bool>(), 0..40), flip: usize) {
            let priority = Priority::from((3, bits(&all)));
            let mut written = postcard::to_stdvec(&priority).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<Priority>(&written).unwrap(), &priority);
            let at = flip / 8 % written.len();
            written[at] ^= 1 << (flip % 8);
            if let Ok(read) = postcard::from_bytes::<Priority>(&written) {
                prop_assert_eq!(postcard::from_bytes::<Priority>(&postcard::to_stdvec(&read).unwrap()).unwrap(), read);
            }
        }
    }

    #[test]
    fn an_ordinary_priority_is_one_byte_and_a_long_one_stays_bounded() {
        assert_eq!(postcard::to_stdvec(&Priority::from(0)).unwrap(), [0]);
        assert_eq!(Priority::from(Bits::new()), Priority::ORDINARY);
        let deep = (0..10_000).fold(Bits::new(), |bits, _| bits.child(1, 2));
        assert_eq!((deep.len(), deep.child(0, 2) == deep), (Bits::MAX, true));
        let refused = |bytes: Vec<u8>, len: u16| {
            let written = postcard::to_stdvec(&Some((7, bytes, len))).unwrap();
            assert!(postcard::from_bytes::<Priority>(&written).is_err(), "{len} bits");
        };
        refused(vec![0; Bits::MAX / 8 + 1], Bits::MAX as u16 + 1);
        refused(vec![0; 3], 8);
        refused(vec![0x10], 3);
    }

    #[test]
    fn children_are_told_apart_by_as_few_bits_as_can_be() {
        let lengths = [1, 2, 3, 4, 5, 8, 9, u32::MAX].map(|count| Bits::new().child(0, count).len());
        assert_eq!(lengths, [0, 1, 2, 2, 3, 3, 4, 32]);
    }
}
