//! Recursive bisection: space is cut in two across its longest side so that both halves weigh what their PEs are worth,
//! and each half again. Neighbours in space come to the same PE, so little crosses between PEs.
//!
//! M. J. Berger and S. H. Bokhari, "A partitioning strategy for nonuniform problems on multiprocessors", IEEE Transactions
//! on Computers 36 (1987).

use super::view::Checked;
use super::weighted::movable;
use super::{Balancer, Wanted};
use crate::placement::cut;

/// For chares that lie in space; where they lie nowhere their number is their place. Chares that may not go where their
/// piece goes stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bisection;

impl Balancer for Bisection {
    fn name(&self) -> &'static str {
        "bisection"
    }

    fn uses_places(&self) -> bool {
        true
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let (movable, costs, rooms) = movable(view);
        let mut owners = view.owners();
        let takers: Vec<u32> = (0..).zip(&rooms).filter(|(_, room)| **room > 0.0).map(|(pe, _)| pe).collect();
        let place = |chare: u32| match view.places.get(chare as usize) {
            Some(place) => *place,
            None => [f64::from(chare), 0.0, 0.0],
        };
        let mut items: Vec<Item> = movable
            .iter()
            .enumerate()
            .map(|(at, chare)| Item {
                place: place(*chare),
                chare: *chare,
                cost: costs.get(at).copied().unwrap_or(1),
            })
            .collect();
        bisect(&mut items, &takers, &rooms, &mut |chare, pe| {
            if view.may_live(chare, pe) {
                owners[chare as usize] = pe;
            }
        });
        owners.into()
    }
}

#[derive(Clone, Copy)]
struct Item {
    place: [f64; 3],
    chare: u32,
    cost: u64,
}

fn bisect(items: &mut [Item], pes: &[u32], rooms: &[f64], give: &mut impl FnMut(u32, u32)) {
    if items.is_empty() || pes.is_empty() {
        return;
    }
    if let [pe] = pes {
        items.iter().for_each(|item| give(item.chare, *pe));
        return;
    }
    let axis = longest_side(items);
    items.sort_unstable_by(|one, other| {
        one.place[axis].total_cmp(&other.place[axis]).then(one.chare.cmp(&other.chare))
    });
    let (low, high) = pes.split_at(pes.len() / 2);
    let room = |pes: &[u32]| pes.iter().map(|pe| rooms[*pe as usize]).sum::<f64>();
    let costs: Vec<u64> = items.iter().map(|item| item.cost).collect();
    let bounds = cut(items.len(), &costs, &[room(low), room(high)]);
    let (first, second) = items.split_at_mut(bounds[1] as usize);
    bisect(first, low, rooms, give);
    bisect(second, high, rooms, give);
}

/// The axis along which items lie farthest apart; of equals the first.
fn longest_side(items: &[Item]) -> usize {
    let side = |axis: usize| {
        let places = items.iter().map(|item| item.place[axis]);
        let (low, high) = places
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), place| (low.min(place), high.max(place)));
        high - low
    };
    (1..3).fold(0, |longest, axis| if side(axis) > side(longest) { axis } else { longest })
}
