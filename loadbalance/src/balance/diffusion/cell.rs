//! The flux solver on each PE for itself: what one PE holds and the messages it exchanges with its neighbours. What it
//! holds does not depend on how many PEs there are.
//!
//! Every PE takes its links in the same order as all others do. A link is levelled out when it is next at both its ends:
//! the higher PE sends its load, the lower works out what flows and answers. So links that have no PE in common go on at
//! the same time, no barrier is needed, and each bit of the result is that of the serial solver, whatever the delays.

use super::flux::{Link, Shift};

/// What a PE tells a neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note {
    /// From the higher PE: what it has now.
    Have {
        /// Its work.
        load: f64,
        /// Its speed.
        speed: f64,
        /// What it can give over this link in all.
        can_give: f64,
    },
    /// From the lower PE, as the answer: the work that comes, negative if it goes.
    Flows {
        /// How much.
        work: f64,
        /// The flux of the link since the beginning.
        flux: f64,
        /// The speed of the lower PE.
        speed: f64,
    },
}

/// A link of a PE.
#[derive(Clone, Copy, Debug)]
struct End {
    other: u32,
    can_give: f64,
    /// What has gone over it, from the lower PE to the higher.
    flux: f64,
    /// The load that the higher PE has sent, if it is ahead.
    waits: Option<(f64, f64, f64)>,
}

/// A PE that levels out its load with its neighbours.
#[derive(Clone, Debug)]
pub struct Cell {
    pe: u32,
    load: f64,
    speed: f64,
    ends: Vec<End>,
    /// The link that is next.
    next: usize,
    /// Whether this PE has sent its load over the next link.
    has_sent: bool,
    rounds_left: u32,
    shift: Shift,
}

impl Cell {
    /// A PE with its neighbours in the order of its links, and what it can give to each.
    #[must_use]
    pub fn new(pe: u32, load: f64, speed: f64, neighbours: &[(u32, f64)]) -> Self {
        let end = |(other, can_give): &(u32, f64)| End {
            other: *other,
            can_give: *can_give,
            flux: 0.0,
            waits: None,
        };
        let ends = neighbours.iter().map(end).collect();
        Self { pe, load, speed, ends, next: 0, has_sent: false, rounds_left: 0, shift: Shift::default() }
    }

    /// Begins so many rounds; all PEs must be told the same number, after all have ended those before. The notes go out
    /// as from [`handle`](Self::handle).
    pub fn begin(&mut self, rounds: u32, send: &mut impl FnMut(u32, Note)) {
        self.rounds_left = if self.ends.is_empty() { 0 } else { rounds };
        self.advance(send);
    }

    /// Takes what a neighbour told; `send` is given the notes that follow and to whom they go. A note that does not fit is
    /// ignored.
    pub fn handle(&mut self, from: u32, note: Note, send: &mut impl FnMut(u32, Note)) {
        let Some(at) = self.ends.iter().position(|end| end.other == from) else { return };
        match note {
            Note::Have { load, speed, can_give } => self.ends[at].waits = Some((load, speed, can_give)),
            Note::Flows { work, flux, speed } if at == self.next && self.has_sent => {
                self.load += work;
                self.ends[at].flux = flux;
                self.passed(Shift::of(work, speed, self.speed));
            }
            Note::Flows { .. } => {}
        }
        self.advance(send);
    }

    fn advance(&mut self, send: &mut impl FnMut(u32, Note)) {
        while self.rounds_left > 0 && !self.has_sent {
            let (pe, load, speed) = (self.pe, self.load, self.speed);
            let end = &mut self.ends[self.next];
            if end.other < pe {
                send(end.other, Note::Have { load, speed, can_give: end.can_give });
                self.has_sent = true;
                return;
            }
            let Some((its_load, its_speed, its_can_give)) = end.waits.take() else { return };
            let mut link =
                Link { low: pe, high: end.other, least: -its_can_give, most: end.can_give, flux: end.flux };
            let work = link.level_out((load, speed), (its_load, its_speed));
            end.flux = link.flux;
            self.load -= work;
            send(link.high, Note::Flows { work, flux: link.flux, speed });
            self.passed(Shift::of(work, speed, its_speed));
        }
    }

    fn passed(&mut self, shift: Shift) {
        // The first link of a round begins the measure anew: the last round counts.
        self.shift = if self.next == 0 { shift } else { self.shift.max(shift) };
        self.has_sent = false;
        self.next += 1;
        if self.next == self.ends.len() {
            self.next = 0;
            self.rounds_left -= 1;
        }
    }

    /// Whether all rounds that were begun have ended here.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.rounds_left == 0
    }

    /// The load if all fluxes flow.
    #[must_use]
    pub const fn load(&self) -> f64 {
        self.load
    }

    /// The largest change of the last round at this PE: the largest of all PEs says whether more rounds are needed.
    #[must_use]
    pub const fn shift(&self) -> Shift {
        self.shift
    }

    /// What should go to each neighbour; negative if it comes.
    pub fn fluxes(&self) -> impl Iterator<Item = (u32, f64)> {
        self.ends.iter().map(|end| (end.other, if end.other > self.pe { end.flux } else { -end.flux }))
    }

    /// The bytes of memory that this PE takes for it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        size_of::<Self>() + self.ends.capacity() * size_of::<End>()
    }
}
