//! A PE, or the driver: what it holds, sends and takes, and what a snapshot makes of it.

use super::Mistake;
use crate::class::Class;
use crate::ids::PeId;
use crate::proto::sim::Random;
use crate::proto::snapshot::{Colour, Side, Turn};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher as _};
use std::time::Duration;

/// Letters of the same kind, sender and receiver are numbered from 0, and come in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Small,
    Large,
    /// To all PEs.
    SmallSaying,
    LargeSaying,
    /// What only the driver sends, has no colour, and nobody waits for.
    Gift,
}

impl Kind {
    pub(super) fn class(self) -> Class {
        match self {
            Self::Small | Self::SmallSaying => Class::Small,
            Self::Large | Self::LargeSaying => Class::Large,
            Self::Gift => Class::Control,
        }
    }
}

/// What PEs and the driver send each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Letter {
    pub(super) from: PeId,
    pub(super) kind: Kind,
    number: u64,
    coins: u64,
    /// How often its sender had been cut. A colour stands for that, and nobody but the test is to know more.
    cuts: u32,
}

/// What is saved.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) purse: u64,
    /// So often it does something of its own accord.
    pub(super) whims: u32,
    /// How many letters of each kind it has sent to each receiver, and dealt with of each sender.
    pub(super) sent: BTreeMap<(PeId, Kind), u64>,
    pub(super) got: BTreeMap<(PeId, Kind), u64>,
    /// What it has taken and not dealt with.
    pub(super) queue: VecDeque<Letter>,
}

impl State {
    /// Deals with a letter, if it is the one that is to come.
    fn get(&mut self, letter: Letter) -> Result<(), String> {
        let next = self.got.entry((letter.from, letter.kind)).or_default();
        if *next != letter.number {
            return Err(format!("{letter:?} came where number {next} was next"));
        }
        *next += 1;
        self.purse += letter.coins;
        Ok(())
    }

    /// The state in which all that waits has been dealt with.
    pub(super) fn with_queue_done(mut self) -> Result<Self, String> {
        std::mem::take(&mut self.queue).into_iter().try_for_each(|letter| self.get(letter))?;
        Ok(self)
    }
}

/// What the launcher has a PE do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Cut,
    Close,
    /// To take a gift.
    Take(Letter),
}

/// What lies in an inbox.
#[derive(Clone, Copy, Debug)]
pub(super) enum Incoming {
    /// With a colour, unless a mistake is made.
    Letter(Option<Colour>, Letter),
    Order(Order),
}

/// What a PE has its node do.
#[derive(Debug)]
pub(super) enum Deed {
    Send(PeId, Colour, Letter),
    Give(PeId, Letter),
    /// To all PEs.
    Say(Colour, Letter),
    HasCut(Box<State>),
    /// With what was on its way to it.
    HasClosed(Vec<Letter>),
}

/// How all PEs and nodes of a run are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    pub(super) pes: u32,
    /// So long an entry method takes at most, as a rule.
    pub(super) pace: Duration,
    /// So many times longer are those at most that are against the rule.
    pub(super) long: u32,
    /// One of so many frames is dealt with by a thread that is stopped after each step, so long at most.
    pub(super) stops_one_in: u64,
    pub(super) stop: Duration,
    /// One of so many letters is to all.
    pub(super) says_one_in: u64,
    pub(super) mistake: Option<Mistake>,
}

impl Habits {
    pub(super) fn make(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }
}

pub(super) struct Pe {
    pub(super) me: PeId,
    habits: Habits,
    pub(super) state: State,
    pub(super) side: Side,
    pub(super) cuts: u32,
    inbox: VecDeque<Incoming>,
    orders: VecDeque<Order>,
    aside: Vec<Letter>,
    late: Vec<Letter>,
    /// When the entry method ends that was begun last.
    free_at: Duration,
    pub(super) deeds: Vec<Deed>,
    random: Random,
    /// How many letters were set aside.
    pub(super) were_aside: u64,
    pub(super) wrong: Option<String>,
    trace: rustc_hash::FxHasher,
}

impl Pe {
    pub(super) fn new(me: PeId, state: State, seed: u64, habits: Habits) -> Self {
        Self {
            me,
            habits,
            state,
            side: Side::default(),
            cuts: 0,
            inbox: VecDeque::new(),
            orders: VecDeque::new(),
            aside: Vec::new(),
            late: Vec::new(),
            free_at: Duration::ZERO,
            deeds: Vec::new(),
            random: Random::new(seed),
            were_aside: 0,
            wrong: None,
            trace: rustc_hash::FxHasher::default(),
        }
    }

    /// Puts something into its inbox.
    pub(super) fn put(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Order(Order::Close) if self.habits.make(Mistake::CloseOvertakes) => {
                self.obey(Order::Close)
            }
            Incoming::Letter(Some(colour), letter) if self.habits.make(Mistake::ClassifiesTooSoon) => {
                let turn = self.side.turn(colour);
                if turn == Turn::Aside {
                    return self.aside.push(letter);
                }
                self.late.extend((turn == Turn::Late).then_some(letter));
                self.inbox.push_back(Incoming::Letter(None, letter));
            }
            _ => self.inbox.push_back(incoming),
        }
    }

    /// When it does something next.
    pub(super) fn next(&self) -> Option<Duration> {
        let State { queue, whims, .. } = &self.state;
        let has_more = !self.inbox.is_empty() || !self.orders.is_empty() || !queue.is_empty() || *whims > 0;
        has_more.then_some(self.free_at)
    }

    /// Takes all from its inbox, and does one thing. What that is takes a while, but nobody sees whether it happens at the
    /// beginning or at the end.
    pub(super) fn step(&mut self, now: Duration) {
        self.take_in();
        let Habits { pace, long, .. } = self.habits;
        let longest = if let Some(order) = self.orders.pop_front() {
            self.obey(order);
            pace / 8
        } else if self.state.whims > 0 && (self.state.queue.is_empty() || self.random.below(2) == 0) {
            self.follow_whim();
            if self.random.below(16) == 0 { long * pace } else { pace }
        } else if let Some(letter) = self.state.queue.pop_front() {
            self.deal_with(letter);
            pace / 4
        } else {
            return;
        };
        self.free_at = now + self.random.between(Duration::ZERO, longest);
    }

    fn take_in(&mut self) {
        for incoming in std::mem::take(&mut self.inbox) {
            match incoming {
                Incoming::Letter(Some(colour), letter) => self.take(colour, letter),
                Incoming::Letter(None, letter) => self.state.queue.push_back(letter),
                Incoming::Order(Order::Take(gift)) if self.habits.make(Mistake::SavesOrdersBehindCut) => {
                    self.state.queue.push_back(gift);
                }
                Incoming::Order(order) => self.orders.push_back(order),
            }
        }
    }

    fn take(&mut self, colour: Colour, letter: Letter) {
        if letter.cuts < self.cuts && !self.side.is_open() {
            self.wrong.get_or_insert(format!("{:?} takes {letter:?} after the end of the snapshot", self.me));
        }
        if self.side.turn(colour) == Turn::Aside && self.habits.make(Mistake::CutsAtFirstNew) {
            self.obey(Order::Cut);
        }
        match self.side.turn(colour) {
            Turn::Aside if !self.habits.make(Mistake::SetsNothingAside) => {
                self.were_aside += 1;
                return self.aside.push(letter);
            }
            Turn::Late if !self.habits.make(Mistake::LogsNothing) => self.late.push(letter),
            _ => {}
        }
        self.state.queue.push_back(letter);
    }

    pub(super) fn obey(&mut self, order: Order) {
        match order {
            Order::Cut if self.side.is_open() && self.habits.make(Mistake::CutsAtFirstNew) => {}
            Order::Cut => {
                let mut saved = self.state.clone();
                if self.habits.make(Mistake::SavesAside) {
                    saved.queue.extend(&self.aside);
                }
                if self.habits.make(Mistake::ReversesAside) {
                    self.aside.reverse();
                }
                self.side.cut();
                self.cuts += 1;
                self.state.queue.extend(self.aside.drain(..));
                self.deeds.push(Deed::HasCut(Box::new(saved)));
            }
            Order::Take(gift) => self.deal_with(gift),
            Order::Close => {
                self.side.close();
                self.deeds.push(Deed::HasClosed(std::mem::take(&mut self.late)));
            }
        }
    }

    fn deal_with(&mut self, letter: Letter) {
        (self.free_at, letter).hash(&mut self.trace);
        if let Err(wrong) = self.state.get(letter) {
            self.wrong.get_or_insert(wrong);
        }
    }

    fn follow_whim(&mut self) {
        self.state.whims -= 1;
        for _ in 0..self.random.below(3) {
            let is_large = self.random.class() == Class::Large;
            let to = PeId(u32::try_from(self.random.below(u64::from(self.habits.pes))).unwrap());
            if self.random.below(self.habits.says_one_in) == 0 {
                self.say(if is_large { Kind::LargeSaying } else { Kind::SmallSaying });
                continue;
            }
            let kind = if is_large { Kind::Large } else { Kind::Small };
            match self.random.below(6) {
                0 if self.me == PeId::DRIVER => self.send(to, Kind::Gift),
                0 => self.send(PeId::DRIVER, kind),
                _ => self.send(to, kind),
            }
        }
    }

    fn send(&mut self, to: PeId, kind: Kind) {
        let coins = self.random.below(self.state.purse + 1) / 2;
        self.state.purse -= coins;
        let letter = self.write(kind, coins, [to]);
        if to == self.me {
            // What it sends to itself is never in an inbox, and so always part of its state.
            self.state.queue.push_back(letter);
        } else {
            self.deeds.push(match kind {
                Kind::Gift => Deed::Give(to, letter),
                _ => Deed::Send(to, self.side.colour(), letter),
            });
        }
    }

    fn say(&mut self, kind: Kind) {
        let letter = self.write(kind, 0, (0..self.habits.pes).map(PeId));
        self.deeds.push(Deed::Say(self.side.colour(), letter));
    }

    /// A letter to all of these, which have got as many of this kind.
    fn write(&mut self, kind: Kind, coins: u64, to: impl IntoIterator<Item = PeId>) -> Letter {
        let mut number = 0;
        for to in to {
            let count = self.state.sent.entry((to, kind)).or_default();
            number = *count;
            *count += 1;
        }
        Letter { from: self.me, kind, number, coins, cuts: self.cuts }
    }

    /// Whether nothing is left anywhere in it.
    pub(super) fn is_done(&self) -> bool {
        self.next().is_none() && self.aside.is_empty() && self.late.is_empty()
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace.finish()
    }
}
