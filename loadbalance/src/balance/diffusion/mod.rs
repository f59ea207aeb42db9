//! Diffusion: neighbouring PEs level out their loads, and chares follow what should flow.
//!
//! One decision is made of several *hops*, each over one link: chares are committed to neighbours ([`slots`]), the solver
//! says how much flows ([`flux`]), and chares that fit are sent. A chare that hops on moves once, from where it is to where
//! it ends. This is the whole decision in one place; [`cell`] is the solver's part of one PE among many.

pub mod cell;
mod destinations;
pub mod flux;
pub mod slots;
mod topology;

pub use topology::{Neighbour, Topology};

use super::choice::{ChoiceError, Options};
use super::view::{Checked, Times, key};
use super::{Balancer, Wanted};
use destinations::Destinations;
use flux::{Flux, Link, Until};
use std::collections::{BTreeMap, BTreeSet};

/// Levels out loads between neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct Diffusion {
    /// Who is whose neighbour. If the PEs cannot be joined so, they are as in [`Topology::Circulant`].
    pub topology: Topology,
    /// When the solver stops.
    pub until: Until,
    /// Links are levelled out colour by colour, which needs fewer rounds, instead of by the numbers of their PEs.
    pub is_coloured: bool,
    /// A chare moves only to a PE that has its block of shared data already, or, if it has no block, to one that has a
    /// chare that it talks to: balancing then adds no transfer of data.
    pub no_new_destination: bool,
    /// Links that a chare may go along in one decision.
    pub hops: u32,
}

impl Default for Diffusion {
    fn default() -> Self {
        Self {
            topology: Topology::Circulant,
            until: Until::default(),
            is_coloured: true,
            no_new_destination: false,
            hops: 16,
        }
    }
}

impl Diffusion {
    pub(super) fn from_options(options: &mut Options<'_>) -> Result<Self, ChoiceError> {
        let default = Self::default();
        let order = |text: &str| match text {
            "coloured" => Some(true),
            "listed" => Some(false),
            _ => None,
        };
        let topologies = "circulant, hypercube or a torus such as 8 or 4x4x4";
        Ok(Self {
            topology: options.value("topology", default.topology, topologies, Topology::read)?,
            is_coloured: options.value("order", true, "coloured or listed", order)?,
            no_new_destination: options.flag("no-new-destination")?,
            hops: options.count("hops", default.hops)?,
            until: Until {
                tolerance: options.part("tolerance", default.until.tolerance)?,
                rounds: options.count("rounds", default.until.rounds)?,
                check_every: options.count("check-every", default.until.check_every)?,
            },
        })
    }
}

impl Balancer for Diffusion {
    fn name(&self) -> &'static str {
        "diffusion"
    }

    fn uses_edges(&self) -> bool {
        self.no_new_destination
    }

    fn doubt(&self, pes: u32) -> Option<String> {
        let Topology::Torus(sides) = &self.topology else { return None };
        if self.topology.fits(pes) {
            return None;
        }
        let places: u128 = sides.iter().map(|side| u128::from(*side)).product();
        let written = sides.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
        Some(format!(
            "topology={written} joins {places} PEs, and there are {pes}: they are joined by topology=circulant"
        ))
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut spread = Spread::new(self, view);
        let mut vain = 0;
        for _ in 0..self.hops {
            let before = spread.times.longest();
            spread.hop(self);
            // The last hundredth is not worth another hop over all chares.
            let gained = before - spread.times.longest();
            let is_vain = gained <= WORTH_A_HOP * (before - view.times.level());
            vain = if is_vain { vain + 1 } else { 0 };
            if vain == VAIN_HOPS {
                break;
            }
        }
        Wanted { unspent: spread.unspent, owners: spread.owners }
    }
}

/// A hop is in vain that brings less than this part of what is still to gain.
const WORTH_A_HOP: f64 = 0.05;
/// After so many in a row nothing more is tried. One may only make room beside the PE that takes longest, so that the next helps it.
const VAIN_HOPS: u32 = 2;

/// Where chares are after some hops.
struct Spread<'a> {
    view: &'a Checked<'a>,
    neighbours: Vec<Vec<Neighbour>>,
    links: Vec<(u32, u32)>,
    owners: Vec<u32>,
    times: Times,
    /// Chares of each PE, the heaviest first.
    by_pe: Vec<Vec<u32>>,
    /// If they may go nowhere else.
    destinations: Option<Destinations<'a>>,
    unspent: f64,
}

impl<'a> Spread<'a> {
    fn new(settings: &Diffusion, view: &'a Checked<'a>) -> Self {
        let pe_count = view.pes.len() as u32;
        let fits = settings.topology.fits(pe_count);
        let topology = if fits { &settings.topology } else { &Topology::Circulant };
        let mut by_pe = vec![Vec::new(); view.pes.len()];
        for chare in view.heaviest_first() {
            by_pe[view.chares[chare as usize].pe as usize].push(chare);
        }
        Self {
            neighbours: (0..pe_count).map(|pe| topology.neighbours(pe, pe_count)).collect(),
            links: topology.links(pe_count, settings.is_coloured),
            owners: view.owners(),
            times: view.times.clone(),
            by_pe,
            destinations: settings.no_new_destination.then(|| Destinations::of(view)),
            unspent: 0.0,
            view,
        }
    }

    fn hop(&mut self, settings: &Diffusion) {
        let has_block =
            |chare: u32, pe: u32| self.destinations.as_ref().is_none_or(|known| known.has(chare, pe));
        let committed: Vec<Vec<Option<u32>>> = (0..self.by_pe.len())
            .map(|pe| {
                let chares = &self.by_pe[pe];
                slots::commit(self.view, &self.times, &self.neighbours[pe], chares, has_block)
            })
            .collect();
        let fluxes = self.fluxes(&committed, settings);
        self.send(&committed, &fluxes);
    }

    /// What should flow over each link, by its PEs.
    fn fluxes(&self, committed: &[Vec<Option<u32>>], settings: &Diffusion) -> BTreeMap<(u32, u32), f64> {
        let mut can_give: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for (pe, targets) in (0..).zip(committed) {
            for (chare, to) in self.by_pe[pe as usize].iter().zip(targets) {
                if let Some(to) = to {
                    *can_give.entry((pe, *to)).or_default() += self.view.chares[*chare as usize].load;
                }
            }
        }
        let give = |from: u32, to: u32| can_give.get(&(from, to)).copied().unwrap_or(0.0);
        let link = |(low, high): &(u32, u32)| Link {
            least: -give(*high, *low),
            most: give(*low, *high),
            ..Link::free(*low, *high)
        };
        let links = self.links.iter().map(link).collect();
        let mut flux = Flux { loads: self.times.work.clone(), speeds: self.times.speed.clone(), links };
        flux.solve(settings.until);
        let of_link = |link: &Link| {
            if link.flux < 0.0 {
                ((link.high, link.low), -link.flux)
            } else {
                ((link.low, link.high), link.flux)
            }
        };
        flux.links.iter().map(of_link).filter(|(_, flux)| *flux > 0.0).collect()
    }

    /// Sends committed chares, the heaviest first, as far as they fit into what should flow and no PE ends later than the
    /// latest does now.
    fn send(&mut self, committed: &[Vec<Option<u32>>], fluxes: &BTreeMap<(u32, u32), f64>) {
        let longest = self.times.longest();
        self.unspent = 0.0;
        let mut arrived: Vec<(u32, u32)> = Vec::new();
        for (&(from, to), &flux) in fluxes {
            let chares: Vec<u32> = self.by_pe[from as usize]
                .iter()
                .zip(&committed[from as usize])
                .filter(|(_, target)| **target == Some(to))
                .map(|(chare, _)| *chare)
                .collect();
            let load = |chare: u32| self.view.chares[chare as usize].load;
            let spent = slots::spend(flux * (1.0 + SLACK), chares.iter().map(|chare| load(*chare)));
            self.unspent += spent.left.max(0.0);
            for at in spent.taken {
                let (chare, load) = (chares[at], load(chares[at]));
                if load > 0.0 && self.times.seconds_with(to, load) <= longest {
                    self.times.shift(load, from, to);
                    self.owners[chare as usize] = to;
                    arrived.push((to, chare));
                }
            }
        }
        self.sort_anew(&arrived);
    }

    fn sort_anew(&mut self, arrived: &[(u32, u32)]) {
        for (pe, chares) in (0..).zip(&mut self.by_pe) {
            chares.retain(|chare| self.owners[*chare as usize] == pe);
        }
        arrived.iter().for_each(|(to, chare)| self.by_pe[*to as usize].push(*chare));
        let receivers: BTreeSet<u32> = arrived.iter().map(|(to, _)| *to).collect();
        for pe in receivers {
            let load = |chare: &u32| (!key(self.view.chares[*chare as usize].load), *chare);
            self.by_pe[pe as usize].sort_unstable_by_key(load);
        }
    }
}

/// Sums of floats may miss a chare's load by so large a part.
const SLACK: f64 = 1e-9;
