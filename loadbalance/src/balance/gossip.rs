//! Gossip: PEs with time to spare tell a few others, chosen at random, who tell others; PEs that end late then offer
//! chares to those of whom they have heard, who take them or refuse.
//!
//! H. Menon and L. Kalé, "A distributed dynamic load balancer for iterative applications" (Grapevine, SC 2013). Here tables
//! are capped, so that what a PE holds does not depend on how many there are; a PE never names itself; and what was heard
//! may be stale, so that the receiver has the last word.

use super::choice::{ChoiceError, Options, TOLERANCE};
use super::random::Random;
use super::view::{Checked, Mobility, Times};
use super::{Balancer, Wanted};

/// PEs hear of a few others and give them chares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gossip {
    /// How much later than the ideal a PE may end, as a part of it.
    pub tolerance: f64,
    /// Whom each PE remembers at most.
    pub known: u32,
    /// Whom it tells in each round.
    pub fan: u32,
    /// How often there is gossip and then offers.
    pub phases: u32,
    /// Of the random choices.
    pub seed: u64,
}

impl Default for Gossip {
    fn default() -> Self {
        Self { tolerance: TOLERANCE, known: 16, fan: 2, phases: 8, seed: 1 }
    }
}

impl Gossip {
    pub(super) fn from_options(options: &mut Options<'_>) -> Result<Self, ChoiceError> {
        let default = Self::default();
        Ok(Self {
            tolerance: options.part("tolerance", default.tolerance)?,
            known: options.count("known", default.known)?,
            fan: options.count("fan", default.fan)?,
            phases: options.count("phases", default.phases)?,
            seed: options.value("seed", default.seed, "a whole number", |text| text.parse().ok())?,
        })
    }
}

impl Balancer for Gossip {
    fn name(&self) -> &'static str {
        "gossip"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut owners = view.owners();
        let mut times = view.times.clone();
        let level = times.level();
        let limit = level * (1.0 + self.tolerance);
        for phase in 0..self.phases {
            if times.longest() <= limit {
                break;
            }
            let seed = Random::of(self.seed, u64::from(phase)).bits();
            let mut peers = self.peers(&times, level, seed);
            self.spread(&mut peers);
            let by_pe = view.by_pe(&owners);
            for peer in &mut peers {
                let mut chares = by_pe[peer.pe as usize].clone();
                chares.sort_by_key(|chare| (!super::view::key(view.chares[*chare as usize].load), *chare));
                offer(view, peer, &chares, level, limit, &mut times, &mut owners);
            }
        }
        owners.into()
    }
}

impl Gossip {
    /// Each PE knows itself only: that it has time to spare, if it has.
    fn peers(&self, times: &Times, level: f64, seed: u64) -> Vec<Peer> {
        let peer = |pe: u32| {
            let spare = level * times.speed[pe as usize] - times.work[pe as usize];
            let mut peer = Peer::new(pe, self.known, Random::of(seed, u64::from(pe)));
            if spare > 0.0 {
                peer.own = Some(spare);
            }
            peer
        };
        (0..times.work.len() as u32).map(peer).collect()
    }

    /// What each PE of a view has heard after the first gossip.
    #[cfg(test)]
    pub(super) fn heard(&self, view: &Checked<'_>) -> Vec<Peer> {
        let mut peers = self.peers(&view.times, view.times.level(), self.seed);
        self.spread(&mut peers);
        peers
    }

    /// Rounds of telling, until all can have heard.
    fn spread(&self, peers: &mut [Peer]) {
        let count = peers.len() as u32;
        for _ in 0..=count.ilog2() {
            let mut told = Vec::new();
            for peer in peers.iter_mut() {
                let what = peer.tells();
                (0..self.fan).filter_map(|_| peer.other(count)).for_each(|to| told.push((to, what.clone())));
            }
            for (to, what) in told {
                what.into_iter().for_each(|(pe, spare)| peers[to as usize].hear(pe, spare));
            }
        }
    }
}

/// What one PE holds while there is gossip.
#[derive(Clone, Debug)]
pub struct Peer {
    pe: u32,
    /// Work for which this PE itself has time.
    own: Option<f64>,
    /// Other PEs and the work for which they had time, by number.
    known: Vec<(u32, f64)>,
    most: usize,
    random: Random,
}

impl Peer {
    /// A PE that has heard nothing yet and remembers so many others at most.
    #[must_use]
    pub fn new(pe: u32, most: u32, random: Random) -> Self {
        Self { pe, own: None, known: Vec::new(), most: most as usize, random }
    }

    /// Some PE other than this; `None` if there is none.
    fn other(&mut self, count: u32) -> Option<u32> {
        let steps = 1 + self.random.below(u64::from(count.checked_sub(2)?) + 1);
        Some(((u64::from(self.pe) + steps) % u64::from(count)) as u32)
    }

    /// What it tells others: itself and whom it knows.
    fn tells(&self) -> Vec<(u32, f64)> {
        self.own.map(|spare| (self.pe, spare)).into_iter().chain(self.known.iter().copied()).collect()
    }

    /// Hears that a PE has time for so much work. A full table forgets one at random, so that different PEs know
    /// different ones.
    pub fn hear(&mut self, pe: u32, spare: f64) {
        if pe == self.pe {
            return;
        }
        match self.known.binary_search_by_key(&pe, |(known, _)| *known) {
            Ok(_) => {}
            Err(at) => {
                self.known.insert(at, (pe, spare));
                if self.known.len() > self.most {
                    let forgotten = self.random.below(self.known.len() as u64) as usize;
                    self.known.remove(forgotten);
                }
            }
        }
    }

    /// One of those it knows, the more likely the more time it has; `None` if it knows nobody.
    fn choose(&mut self) -> Option<usize> {
        let total: f64 = self.known.iter().map(|(_, spare)| spare).sum();
        let mut left = self.random.part() * total;
        let is_met = |(_, spare): &(u32, f64)| {
            left -= spare;
            left < 0.0
        };
        self.known.iter().position(is_met).or_else(|| self.known.len().checked_sub(1))
    }

    /// How many others it knows of.
    #[must_use]
    pub const fn knows(&self) -> usize {
        self.known.len()
    }

    /// The bytes of memory that it takes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        size_of::<Self>() + self.known.capacity() * size_of::<(u32, f64)>()
    }
}

/// A PE that ends late offers its chares, the heaviest first, each up to a few times. The receiver, who alone knows what it
/// has by now, refuses what would make it late itself.
fn offer(
    view: &Checked<'_>,
    peer: &mut Peer,
    chares: &[u32],
    level: f64,
    limit: f64,
    times: &mut Times,
    owners: &mut [u32],
) {
    for &chare in chares {
        if times.seconds(peer.pe) <= limit || peer.known.is_empty() {
            return;
        }
        let told = &view.chares[chare as usize];
        if told.mobility == Mobility::Pinned || told.load <= 0.0 {
            continue;
        }
        for _ in 0..OFFERS {
            let Some(at) = peer.choose() else { return };
            let to = peer.known[at].0;
            if !view.may_live(chare, to) {
                continue;
            }
            let takes = times.seconds_with(to, told.load) <= limit;
            if takes {
                times.shift(told.load, peer.pe, to);
                owners[chare as usize] = to;
            }
            // The answer says what time it has now.
            let spare = level * times.speed[to as usize] - times.work[to as usize];
            if spare > 0.0 {
                peer.known[at].1 = spare;
            } else {
                peer.known.remove(at);
            }
            if takes {
                break;
            }
        }
    }
}

/// How many PEs are asked to take a chare.
const OFFERS: u32 = 3;
