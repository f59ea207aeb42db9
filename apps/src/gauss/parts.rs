//! How what a PE holds is cut into parts, each of which can move to another PE.

use std::sync::Arc;

/// Who holds what: each row or block of columns belongs to a part, and each part is at home on a PE.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parts {
    /// The part of each row or block.
    pub(super) owners: Arc<Vec<u32>>,
    /// The PE of each part; those of a PE follow one another.
    pub(super) homes: Arc<Vec<u32>>,
}

impl Parts {
    /// Deals out what each PE holds, in turn, to so many parts of it, or to less if it holds less; `owners` has the PE of
    /// each row or block.
    pub(super) fn dealt(owners: &[u32], each: usize) -> Self {
        let pes = owners.iter().max().map_or(0, |pe| *pe as usize + 1);
        let mut held = vec![0; pes];
        owners.iter().for_each(|pe| held[*pe as usize] += 1);
        let (mut firsts, mut homes) = (Vec::with_capacity(pes), Vec::new());
        for (pe, held) in (0..).zip(&held) {
            firsts.push(homes.len());
            homes.extend(std::iter::repeat_n(pe, each.min(*held)));
        }
        let mut dealt = vec![0; pes];
        let part = |pe: &u32| {
            let pe = *pe as usize;
            let part = firsts[pe] + dealt[pe] % each;
            dealt[pe] += 1;
            u32::try_from(part).expect("there are fewer parts than rows, which are below 2^32")
        };
        Self { owners: Arc::new(owners.iter().map(part).collect()), homes: Arc::new(homes) }
    }

    /// How many parts there are.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.homes.len()).expect("there are fewer parts than rows, which are below 2^32")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pe_deals_out_what_it_holds() {
        let Parts { owners, homes } = Parts::dealt(&[0, 2, 0, 0, 2, 0, 3], 2);
        assert_eq!((&owners[..], &homes[..]), (&[0, 2, 1, 0, 3, 1, 4][..], &[0, 0, 2, 2, 3][..]));
        assert_eq!(Parts::dealt(&[1, 0, 1], 1).owners[..], [1, 0, 1]);
    }
}
