//! Elements that end for good while others send to them: those that are left get everything, and of the others little is kept.

use super::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// What a PE knows besides where elements end.
pub(super) struct Mortal {
    /// Of so many messages one ends its receiver.
    one_in: u64,
    /// Who has ended anywhere: nobody asks, but whoever checks.
    ended: Arc<Mutex<BTreeSet<Key>>>,
    /// How many messages have been sent to each element here.
    sent_to: BTreeMap<Key, u64>,
    delivered_to: BTreeMap<Key, u64>,
}

impl Pe {
    pub(super) fn note_sent(&mut self, to: Key) {
        if let Some(mortal) = &mut self.mortal {
            *mortal.sent_to.entry(to).or_default() += 1;
        }
    }

    pub(super) fn has_ended(&self, key: Key) -> bool {
        self.mortal.as_ref().is_some_and(|mortal| mortal.ended.lock().unwrap().contains(&key))
    }

    /// A message has been delivered; whether the element ends with it.
    pub(super) fn ends(&mut self, key: Key, out: &mut Outbox<Wire>) -> bool {
        let Some(mortal) = &mut self.mortal else { return false };
        *mortal.delivered_to.entry(key).or_default() += 1;
        if self.random.below(mortal.one_in) > 0 {
            return false;
        }
        mortal.ended.lock().unwrap().insert(key);
        let has_moved = self.here.remove(&key).is_some_and(|element| element.numbers.is_some());
        let home = self.home(key);
        if has_moved
            && home != self.me
            && let Some((epoch, taken)) = self.locations.last_word(key, home)
        {
            self.wire(home, Class::Small, Wire::Gone(key, epoch, taken), out);
        }
        true
    }

    pub(super) fn hear_of_end(&mut self, key: Key, (epoch, taken): (u32, u64), out: &mut Outbox<Wire>) {
        let mistake = self.mistake;
        if let Some(known) = self.locations.known.get_mut(&key) {
            match mistake {
                Some(Mistake::ForgetsTooSoon) => known.sent = taken,
                Some(Mistake::ForgetsWhatOthersKnow) => known.told.clear(),
                Some(Mistake::ForgetsWhatOthersNumber) => known.has_numbered_all = true,
                _ => {}
            }
        }
        if let Some(at) = self.locations.gone(key, epoch, taken) {
            self.wire(at, Class::Small, Wire::Forget(key, epoch), out);
        }
    }
}

/// Elements send to each other, move now and then and end now and then: how many have ended, or what went wrong.
fn live(seed: u64, mistake: Option<Mistake>) -> Result<usize, String> {
    let mut random = Random::new(seed);
    let pes = 2 + u32::try_from(random.below(4)).unwrap();
    let elements = pes + u32::try_from(random.below(12)).unwrap();
    let (one_in, moves_one_in) = (2 + random.below(6), 1 + random.below(4));
    let network = Network::any(&mut random);
    let ended = Arc::new(Mutex::new(BTreeSet::new()));
    let pe = |me| {
        let (sent_to, delivered_to) = (BTreeMap::new(), BTreeMap::new());
        let mortal = Some(Mortal { one_in, ended: Arc::clone(&ended), sent_to, delivered_to });
        Pe { mistake, mortal, moves_one_in, ..Pe::new(me, pes, elements, seed) }
    };
    let mut sim = Simulation::new(seed, network, (0..pes).map(pe));
    let mut times = 2 + random.below(20);
    while times > 0 {
        times -= 1;
        let from = u32::try_from(random.below(u64::from(elements))).unwrap();
        let to = u32::try_from(random.below(u64::from(elements))).unwrap();
        let budget = u32::try_from(random.below(6)).unwrap();
        let ids: Vec<NodeId> = sim.ids().collect();
        for id in ids {
            sim.act(id, |pe, out| pe.here.contains_key(&from).then(|| pe.send(from, to, budget, out)));
        }
        let until = sim.now() + Duration::from_micros(random.below(20_000));
        sim.run(until, |sim| sim.machines().any(|pe| pe.wrong.is_some()));
    }
    let end = sim.run(Duration::from_secs(1000), |sim| sim.machines().any(|pe| pe.wrong.is_some()));
    if let Some(wrong) = sim.machines().find_map(|pe| pe.wrong.clone()) {
        return Err(wrong);
    }
    if end != Ended::Idle {
        return Err(format!("it does not end: {end:?}"));
    }
    let ended = ended.lock().unwrap().clone();
    let sum = |of: fn(&Mortal) -> &BTreeMap<Key, u64>, key: Key| -> u64 {
        let machines = sim.machines().filter_map(|pe| pe.mortal.as_ref());
        machines.map(|mortal| of(mortal).get(&key).copied().unwrap_or_default()).sum()
    };
    for key in (0..elements).filter(|key| !ended.contains(key)) {
        let (sent, delivered) = (sum(|mortal| &mortal.sent_to, key), sum(|mortal| &mortal.delivered_to, key));
        if sent != delivered {
            return Err(format!("{delivered} of {sent} messages for element {key} were delivered"));
        }
    }
    let known = |key: Key| sim.machines().filter_map(move |pe| pe.locations.known.get(&key));
    if let Some(key) = ended.iter().find(|key| known(**key).any(|known| !known.waiting.is_empty())) {
        return Err(format!("something waits for element {key}, which has ended"));
    }
    Ok(ended.len())
}

#[test]
fn those_that_are_left_get_everything_when_others_end() {
    let ended = |seed| live(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    let sum: usize = (0..SEEDS).map(ended).sum();
    assert!(sum > 2 * SEEDS as usize, "{sum} have ended");
}

#[test]
fn forgetting_too_much_is_found() {
    use Mistake::{ForgetsTooSoon, ForgetsWhatOthersKnow, ForgetsWhatOthersNumber};
    for mistake in [ForgetsTooSoon, ForgetsWhatOthersKnow, ForgetsWhatOthersNumber] {
        let found = (0..20_000).find(|seed| live(*seed, Some(mistake)).is_err());
        assert!(found.is_some(), "{mistake:?} makes no difference");
    }
}

#[test]
fn nothing_is_kept_of_what_moves_once_and_ends_where_nobody_else_has_sent_to_it() {
    for seed in 0..200 {
        let ended = Arc::new(Mutex::new(BTreeSet::new()));
        let pe = |me| {
            let (sent_to, delivered_to) = (BTreeMap::new(), BTreeMap::new());
            let mortal = Some(Mortal { one_in: 1, ended: Arc::clone(&ended), sent_to, delivered_to });
            Pe { mortal, moves_one_in: 0, ..Pe::new(me, 3, 60, seed) }
        };
        let mut random = Random::new(seed);
        let mut sim = Simulation::new(seed, Network::any(&mut random), (0..3).map(pe));
        // The first of each PE sends to the others of that PE, some before they go, some when they have gone.
        for key in 3..60u32 {
            let (home, first) = (NodeId(u16::try_from(key % 3).unwrap()), key % 3);
            let to = PeId((key + 1) % 3);
            let is_before = random.below(2) == 0;
            sim.act(home, |pe, out| {
                if is_before {
                    pe.send(first, key, 0, out);
                }
                pe.depart(key, to, out);
                if !is_before {
                    pe.send(first, key, 0, out);
                }
            });
            let until = sim.now() + Duration::from_micros(random.below(20_000));
            sim.run(until, |_| false);
        }
        assert_eq!(sim.run(Duration::from_secs(1000), |_| false), Ended::Idle);
        assert!(sim.machines().all(|pe| pe.wrong.is_none()), "seed {seed}");
        assert_eq!(ended.lock().unwrap().len(), 57, "seed {seed}");
        for pe in sim.machines() {
            assert!(pe.locations.is_empty(), "seed {seed}: {:?}", pe.locations.known.keys());
        }
    }
}
