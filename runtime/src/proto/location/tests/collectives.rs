//! What concerns all elements at once while they move: broadcasts, which each element answers with a contribution to a
//! reduction, and the search for quiescence.

use super::{Element, Key, Mistake, Note, Pe, Wire};
use crate::class::Class;
use crate::ids::{NodeId, PeId};
use crate::proto::quiescence::{Counts, Quiescence, QuiescenceMessage, QuiescenceOutput};
use crate::proto::reduction::{Partial, PartialValue, Reductions};
use crate::proto::sim::{Outbox, Simulation};
use std::collections::BTreeMap;
use std::time::Duration;

/// The sender of what is for all.
pub(super) const ROOT: Key = Key::MAX;
/// There is one collection.
const COLLECTION: u64 = 7;

/// What PEs say to each other about all elements.
#[derive(Clone, Debug)]
pub(super) enum Word {
    /// For each element that is at home on the receiver.
    Broadcast(Note),
    /// An element adds itself to a reduction, where it is at home.
    Contribution(Key, u32),
    /// All that are at home on the sender have added themselves.
    Partial(u32, Partial<Vec<Key>>),
    /// Of the search for quiescence, and from whom.
    Wave(NodeId, QuiescenceMessage),
}

/// A PE's part in it.
pub(super) struct Collectives {
    own: Reductions<Vec<Key>>,
    /// At the root: reductions under way, what came of others, and the count of broadcasts.
    all: Reductions<Vec<Key>>,
    results: BTreeMap<u32, Vec<Key>>,
    broadcasts: u64,
    quiescence: Quiescence,
    counts: Counts,
    /// At the root: the search has found that nothing is under way.
    pub(super) is_quiescent: bool,
}

impl Collectives {
    pub(super) fn new(me: PeId, pes: u32) -> Self {
        let node = |pe: u32| u16::try_from(pe).unwrap();
        Self {
            own: Reductions::default(),
            all: Reductions::default(),
            results: BTreeMap::new(),
            broadcasts: 0,
            quiescence: Quiescence::new(NodeId(node(me.0)), node(pes)),
            counts: Counts::default(),
            is_quiescent: false,
        }
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.quiescence.timeout()
    }

    /// An element, or what is for all elements, is on its way.
    pub(super) fn created(&mut self, count: u32) {
        self.counts.created += u64::from(count);
    }

    pub(super) fn processed(&mut self) {
        self.counts.processed += 1;
    }
}

impl Pe {
    /// At the root: a message to every element, which each answers with a contribution.
    pub(super) fn broadcast(&mut self, budget: u32, out: &mut Outbox<Wire>) {
        let number = self.collectives.broadcasts;
        self.collectives.broadcasts += 1;
        self.collectives.created(self.pes);
        let note = Note { from: ROOT, class: Class::Small, number, budget, hops: 0 };
        for pe in 0..self.pes {
            self.wire(PeId(pe), Class::Small, Wire::Collective(Word::Broadcast(note.clone())), out);
        }
    }

    /// At the root: begins to look for quiescence.
    pub(super) fn search(&mut self, out: &mut Outbox<Wire>) {
        self.collectives.quiescence.start();
        self.poll(out);
    }

    /// `key`, which is here, adds itself to the next reduction.
    pub(super) fn contribute(&mut self, key: Key, out: &mut Outbox<Wire>) {
        let Element { contributed, .. } = self.here.get_mut(&key).unwrap();
        let sequence = *contributed;
        *contributed += 1;
        let to = if self.makes(Mistake::ContributesWhereItIs) { self.me } else { self.home(key) };
        self.collectives.created(1);
        let class = self.random.class();
        self.wire(to, class, Wire::Collective(Word::Contribution(key, sequence)), out);
    }

    pub(super) fn hear(&mut self, word: Word, out: &mut Outbox<Wire>) {
        match word {
            Word::Broadcast(note) => {
                self.tell_all(&note, out);
                self.collectives.processed();
            }
            Word::Contribution(key, sequence) => {
                let is_forgotten =
                    self.makes(Mistake::ForgetsContributionOfAway) && !self.here.contains_key(&key);
                if !is_forgotten {
                    self.add(key, sequence, out);
                }
                self.collectives.processed();
            }
            Word::Partial(sequence, partial) => {
                let elements = u64::from(self.elements);
                let all = &mut self.collectives.all;
                match all.contribute(COLLECTION, sequence, elements, partial, &mut |a, b| a.extend(b)) {
                    Ok(Some(Partial { value: PartialValue::Combined(mut keys), .. })) => {
                        keys.sort_unstable();
                        self.collectives.results.insert(sequence, keys);
                    }
                    Ok(_) => {}
                    Err(error) => drop(self.wrong.get_or_insert(error.0)),
                }
                self.collectives.processed();
            }
            Word::Wave(from, message) => {
                let counts = self.counts();
                let heard = self.collectives.quiescence.handle(from, message, out.now(), || counts);
                if let Err(error) = heard {
                    self.wrong.get_or_insert(error.0);
                }
                self.poll(out);
            }
        }
    }

    fn at_home(&self) -> impl Iterator<Item = Key> {
        (0..self.elements).filter(|key| self.home(*key) == self.me)
    }

    /// A broadcast to the elements that are at home here, wherever they are.
    fn tell_all(&mut self, note: &Note, out: &mut Outbox<Wire>) {
        let receivers: Vec<Key> = if self.makes(Mistake::TellsThoseHere) {
            self.here.keys().copied().collect()
        } else {
            self.at_home().collect()
        };
        for key in receivers {
            self.sent += 1;
            self.send_as_pe(key, note.clone(), out);
        }
    }

    /// Adds an element that is at home here to a reduction.
    fn add(&mut self, key: Key, sequence: u32, out: &mut Outbox<Wire>) {
        let expected = self.at_home().count() as u64;
        let partial = Partial { count: 1, terms: 0, value: PartialValue::Combined(vec![key]) };
        let own = &mut self.collectives.own;
        match own.contribute(COLLECTION, sequence, expected, partial, &mut |a, b| a.extend(b)) {
            Ok(None) => {}
            Ok(Some(partial)) => {
                self.collectives.created(1);
                let class = self.random.class();
                self.wire(PeId(0), class, Wire::Collective(Word::Partial(sequence, partial)), out);
            }
            Err(error) => drop(self.wrong.get_or_insert(error.0)),
        }
    }

    fn counts(&self) -> Counts {
        let Counts { created, processed, held } = self.collectives.counts;
        Counts { created: created + self.sent, processed: processed + self.delivered, held }
    }

    pub(super) fn poll(&mut self, out: &mut Outbox<Wire>) {
        let counts = self.counts();
        while let Some(output) = self.collectives.quiescence.poll(out.now(), || counts) {
            match output {
                QuiescenceOutput::Send { to, message } => {
                    let me = NodeId(u16::try_from(self.me.0).unwrap());
                    out.send(to, Class::Control, Wire::Collective(Word::Wave(me, message)));
                }
                QuiescenceOutput::Quiescent { .. } => self.collectives.is_quiescent = true,
            }
        }
    }
}

/// Whether no message, no element and no contribution is under way.
pub(super) fn is_quiet(sim: &Simulation<Pe>) -> bool {
    let under_way = |pe: &Pe| i128::from(pe.counts().created) - i128::from(pe.counts().processed);
    let on_the_road = sim.machines().map(|pe| pe.here.len()).sum::<usize>();
    let elements = sim.machines().next().map_or(0, |pe| pe.elements as usize);
    sim.machines().map(under_way).sum::<i128>() == 0 && on_the_road == elements
}

/// Whether every element is in every reduction, once; else what is wrong.
pub(super) fn check(root: &Pe) -> Result<(), String> {
    let Collectives { results, broadcasts, is_quiescent, .. } = &root.collectives;
    if !is_quiescent {
        return Err("nothing is under way, and nobody has found that out".into());
    }
    if results.len() as u64 != *broadcasts {
        return Err(format!("{} reductions of {broadcasts} have a result", results.len()));
    }
    let all: Vec<Key> = (0..root.elements).collect();
    match results.iter().find(|(_, keys)| **keys != all) {
        Some((sequence, keys)) => Err(format!("reduction {sequence} is over {keys:?}")),
        None => Ok(()),
    }
}
