//! How long it takes to send chares from node to node, and what moves that were made have shown of it.

use super::Sample;
use crate::balance::{Move, View};

/// Follows how fast chares get from node to node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// Bytes per second that lines carry, where moves have shown that they are not what samples say.
    line: Option<f64>,
    /// Bytes per second that the fastest node can pack, encrypt and send if its line carries them, as far as moves have shown.
    processors: Option<f64>,
    under_way: Option<UnderWay>,
}

/// Moves that are not seen to have been made.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    since_s: f64,
    bytes: Bytes,
}

/// What moves take of the node that takes longest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bytes {
    /// The most that one node sends or receives.
    most: f64,
    /// What the processors of the fastest node could send in the time that those of the slowest take. To pack, encrypt and send
    /// bytes, or the other way round, is work like any other: a node that computes at a quarter of the speed of the fastest does
    /// it no faster.
    of_fastest: f64,
}

impl Bytes {
    fn of(view: &View, moves: &[Move]) -> Self {
        let node_of = view.nodes();
        let mut bytes = vec![[0u64; 2]; view.pes.len()];
        let mut speeds = vec![0.0f64; view.pes.len()];
        for (pe, node) in view.pes.iter().zip(&node_of) {
            speeds[*node] = speeds[*node].max(pe.part.speed);
        }
        for step in moves {
            let [from, to] = [step.from, step.to].map(|pe| node_of[pe as usize]);
            if from != to {
                let size = view.chares[step.chare as usize].bytes;
                bytes[from][0] += size;
                bytes[to][1] += size;
            }
        }
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let mut all = Self { most: 0.0, of_fastest: 0.0 };
        for ([out, come], speed) in bytes.into_iter().zip(speeds).filter(|(bytes, _)| *bytes != [0; 2]) {
            let bytes = out.max(come) as f64;
            all.most = all.most.max(bytes);
            all.of_fastest = all.of_fastest.max(bytes * fastest / speed);
        }
        all
    }
}

impl Transfer {
    pub(super) const fn new() -> Self {
        Self { line: None, processors: None, under_way: None }
    }

    /// Seconds that moving takes: those of the bytes of the node that takes longest, of the chares of the PE that has most,
    /// and of the decision itself.
    pub(super) fn cost_s(&self, view: &View, moves: &[Move], sample: &Sample<'_>) -> f64 {
        let mut of_pe = vec![0u32; view.pes.len()];
        for step in moves {
            of_pe[step.from as usize] += 1;
            of_pe[step.to as usize] += 1;
        }
        let most = of_pe.into_iter().max().unwrap_or(0);
        self.seconds(Bytes::of(view, moves), sample)
            + f64::from(most) * sample.away_s.max(0.0)
            + sample.decide_s.max(0.0)
    }

    fn line(&self, sample: &Sample<'_>) -> f64 {
        self.line.unwrap_or(sample.bytes_per_s).max(1.0)
    }

    fn processors(&self, sample: &Sample<'_>) -> f64 {
        self.processors.unwrap_or(PROCESSORS * self.line(sample)).max(1.0)
    }

    fn seconds(&self, Bytes { most, of_fastest }: Bytes, sample: &Sample<'_>) -> f64 {
        f64::max(most / self.line(sample), of_fastest / self.processors(sample))
    }

    /// Chares begin to move.
    pub(super) fn begins(&mut self, view: &View, moves: &[Move], now_s: f64) {
        self.under_way = Some(UnderWay { since_s: now_s, bytes: Bytes::of(view, moves) });
    }

    /// Of moves that have not been made, and of chares that have ended, it is not known whether their bytes were sent.
    pub(super) const fn forget(&mut self) {
        self.under_way = None;
    }

    /// All chares that were to move are seen where they were to go. They may have waited for entry methods to end before, but no
    /// longer than it takes until most chares have done something. So the time says what is the least and what is the most that
    /// nodes can have sent in a second.
    pub(super) fn have_come(&mut self, sample: &Sample<'_>) {
        let Some(UnderWay { since_s, bytes }) = self.under_way.take() else { return };
        let longest_s = sample.now_s - since_s;
        let shortest_s = longest_s - sample.span_s;
        let believed_s = self.seconds(bytes, sample);
        if bytes.most <= 0.0 || longest_s <= 0.0 || (shortest_s..=longest_s).contains(&believed_s) {
            return;
        }
        let (line, processors) = (self.line(sample), self.processors(sample));
        if believed_s > longest_s {
            self.line = Some(line.max(bytes.most / longest_s));
            self.processors = Some(processors.max(bytes.of_fastest / longest_s));
        } else if bytes.of_fastest / processors > bytes.most / line {
            self.processors = Some(bytes.of_fastest / shortest_s);
        } else {
            self.line = Some(bytes.most / shortest_s);
        }
    }
}

/// A node whose line is full has processors for so many times as much, until moves show what they can: to encrypt and send a byte takes
/// 2 ns of a core, so that one core fills four lines of 1 Gbit/s, and others may want half of it.
pub(in crate::balance) const PROCESSORS: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    /// Two chares of 10 MB, the first of which moves from a PE of that speed to one of speed 1.
    fn view(speed: f64) -> View {
        let mut view = View::new(&Part::each(&[speed, 1.0]), [(0, 1.0), (1, 1.0)]);
        view.chares.iter_mut().for_each(|chare| chare.bytes = 10_000_000);
        view
    }

    const MOVES: [Move; 1] = [Move { chare: 0, from: 0, to: 1 }];

    fn sample(view: &View, now_s: f64) -> Sample<'_> {
        let (bytes_per_s, span_s, left_s, left_work) = (1e8, 1.0, None, None);
        Sample { now_s, view, gone: &[], span_s, left_s, left_work, bytes_per_s, away_s: 0.0, decide_s: 0.0 }
    }

    fn cost_s(transfer: &Transfer, speed: f64) -> f64 {
        let view = view(speed);
        transfer.cost_s(&view, &MOVES, &sample(&view, 0.0))
    }

    #[test]
    fn a_slow_node_takes_longer() {
        let transfer = Transfer::new();
        assert_eq!([1.0, 0.5, 0.25].map(|speed| cost_s(&transfer, speed)), [0.1, 0.1, 0.2]);
        let mut view = view(0.25);
        view.pes.iter_mut().for_each(|pe| pe.part.node = 0);
        assert_eq!(transfer.cost_s(&view, &MOVES, &sample(&view, 0.0)), 0.0, "inside a node no bytes travel");
    }

    #[test]
    fn moves_show_how_long_they_take() {
        // What is reckoned for the same at full speed after it took so many seconds from a PE of that speed.
        let after = |speed: f64, seconds: f64| {
            let (mut transfer, view) = (Transfer::new(), view(speed));
            transfer.begins(&view, &MOVES, 0.0);
            transfer.have_come(&sample(&view, seconds));
            [1.0, 0.25].map(|speed| cost_s(&transfer, speed))
        };
        assert_eq!(after(1.0, 0.0625), [0.0625, 0.2]);
        assert_eq!(after(1.0, 1.0625), [0.1, 0.2], "they may have waited for entry methods to end");
        assert_eq!(after(1.0, 11.0), [10.0, 20.0], "lines carry less");
        assert_eq!(after(0.25, 11.0), [2.5, 10.0], "processors send less");
        assert_eq!(after(0.25, 0.125), [0.1, 0.125], "they send more, and as much as the line carries");
    }

    #[test]
    fn of_moves_that_were_not_made_nothing_is_learnt() {
        let (mut transfer, view) = (Transfer::new(), view(1.0));
        transfer.begins(&view, &MOVES, 5.0);
        transfer.forget();
        transfer.have_come(&sample(&view, 5.05));
        assert_eq!(cost_s(&transfer, 1.0), 0.1);
        transfer.have_come(&sample(&view, 50.0));
        assert_eq!(cost_s(&transfer, 1.0), 0.1, "nothing moves");
    }
}
