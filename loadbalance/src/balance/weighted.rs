//! Weighted: the list of chares is cut into pieces of neighbours, one for each PE, in proportion to its speed.

use super::pieces::{Taker, shortest};
use super::view::{Checked, Mobility, Times};
use super::{Balancer, Wanted};
use crate::placement::cut;

/// Neighbours in the list to each PE, so that the longest time of a PE is as short as it can be. What a PE has besides counts;
/// chares that may not go where their piece goes stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighted;

impl Balancer for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let (movable, costs, rooms) = movable(view);
        let takers: Vec<u32> = (0..).zip(&rooms).filter(|(_, room)| **room > 0.0).map(|(pe, _)| pe).collect();
        let speeds: Vec<f64> = takers.iter().map(|pe| rooms[*pe as usize]).collect();
        let mut owners = view.owners();
        if movable.is_empty() || takers.is_empty() {
            return owners.into();
        }
        let mut bounds = cut(movable.len(), &costs, &speeds);
        if !costs.is_empty() {
            let unit = costs.iter().sum::<u64>() as f64 / speeds.iter().sum::<f64>();
            let taker = |(pe, room): (&u32, &f64)| Taker {
                room: room * unit,
                speed: view.pes[*pe as usize].part.speed * unit,
            };
            let takers: Vec<Taker> = takers.iter().zip(&speeds).map(taker).collect();
            bounds = shortest(&bounds, &costs, &takers);
        }
        for (pe, piece) in takers.iter().zip(bounds.windows(2)) {
            for &chare in &movable[piece[0] as usize..piece[1] as usize] {
                if view.may_live(chare, *pe) {
                    owners[chare as usize] = *pe;
                }
            }
        }
        owners.into()
    }
}

/// The chares that may move, what each costs as a whole number (none where all cost the same), and what each PE has room for
/// if all end together: of chares that cost the same whole ones, so that no other way to hand them out ends earlier.
pub(crate) fn movable(view: &Checked<'_>) -> (Vec<u32>, Vec<u64>, Vec<f64>) {
    let is_movable = |chare: &u32| view.chares[*chare as usize].mobility != Mobility::Pinned;
    let movable: Vec<u32> = (0..view.chares.len() as u32).filter(is_movable).collect();
    let mut times = Times::without_chares(view);
    for chare in view.chares.iter().filter(|chare| chare.mobility == Mobility::Pinned) {
        times.work[chare.pe as usize] += chare.load;
    }
    let loads: Vec<f64> = movable.iter().map(|chare| view.chares[*chare as usize].load).collect();
    let total: f64 = loads.iter().sum();
    let is_alike = loads.windows(2).all(|pair| pair[0].to_bits() == pair[1].to_bits());
    if is_alike && total > 0.0 {
        return (movable, Vec::new(), whole(&rooms(&times, total), loads.len()));
    }
    // A conversion of no number, as of 0 of 0, gives 0.
    let costs = loads.iter().map(|load| (load / total * UNITS).round() as u64).collect();
    (movable, costs, rooms(&times, total))
}

/// So many chares that cost the same, for PEs with room for so much.
fn whole(rooms: &[f64], count: usize) -> Vec<f64> {
    let takers: Vec<f64> = rooms.iter().copied().filter(|room| *room > 0.0).collect();
    let bounds = cut(count, &[], &takers);
    let mut counts = bounds.windows(2).map(|piece| (piece[1] - piece[0]) as f64);
    rooms.iter().map(|room| if *room > 0.0 { counts.next().unwrap_or_default() } else { 0.0 }).collect()
}

/// What each PE gets of so much work if all that get some end together, as water fills basins.
fn rooms(times: &Times, work: f64) -> Vec<f64> {
    let mut order: Vec<u32> = (0..times.work.len() as u32).collect();
    order.sort_by_key(|pe| (super::view::key(times.seconds(*pe)), *pe));
    let (mut held, mut speed, mut level) = (work, 0.0, 0.0);
    for pe in order {
        if speed > 0.0 && times.seconds(pe) >= level {
            break;
        }
        held += times.work[pe as usize];
        speed += times.speed[pe as usize];
        level = held / speed;
    }
    let room = |(work, speed): (&f64, &f64)| (level * speed - work).max(0.0);
    times.work.iter().zip(&times.speed).map(room).collect()
}

/// All loads together, in whole numbers.
const UNITS: f64 = (1u64 << 48) as f64;
