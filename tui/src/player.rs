//! Plays a recording into a model. Pure: the viewer's clock and the user's wishes go in, a model comes out that is the
//! same however its moment was reached.
#![deny(clippy::disallowed_methods)]

use std::time::Duration;

use runtime::monitor::recording::{Recorded, Recording};

use crate::PlayOptions;
use crate::model::Model;

/// Slowest and fastest, in seconds of the run per second.
pub(crate) const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=10_000.0;
/// A step with the arrow keys.
const STEP: Duration = Duration::from_secs(5);
/// Models kept on the way, from which an earlier moment is reached sooner than from the start.
const KEY_FRAMES: usize = 16;
/// PEs in all key frames, which bounds their memory (under 70 kB a PE).
const KEY_PES: usize = 1024;

/// What the user may ask of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Pause, or go on; at the end begin anew.
    Pause,
    /// Half as fast, at least.
    Slower,
    /// Twice as fast, at most.
    Faster,
    /// Some seconds back.
    Earlier,
    /// Some seconds on.
    Later,
    /// A tenth of the recording back.
    MuchEarlier,
    /// A tenth of it on.
    MuchLater,
    /// To the start.
    Beginning,
    /// To the end.
    Ending,
}

pub(crate) struct Player {
    events: Vec<Recorded>,
    /// What is to be said at the end if the run's own end is missing.
    broken: Option<String>,
    duration: Duration,
    model: Model,
    /// How many events the model has.
    applied: usize,
    /// Earlier models by the count of events they have.
    frames: Vec<(usize, Model)>,
    position: Duration,
    /// The viewer's time when it was last looked at.
    clock: Duration,
    speed: f64,
    paused: bool,
}

impl Player {
    /// A player that plays from where `options` say.
    pub(crate) fn new(recording: Recording, options: &PlayOptions) -> Self {
        let speed = if options.speed.is_finite() { options.speed } else { 1.0 };
        let mut player = Self {
            duration: recording.duration(),
            events: recording.events,
            broken: recording.broken.map(|broken| broken.to_string()),
            model: Model::default(),
            applied: 0,
            frames: Vec::new(),
            position: Duration::ZERO,
            clock: Duration::ZERO,
            speed: speed.clamp(*SPEEDS.start(), *SPEEDS.end()),
            paused: false,
        };
        player.go_to(options.from);
        player
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn position(&self) -> Duration {
        self.position
    }

    pub(crate) fn duration(&self) -> Duration {
        self.duration
    }

    /// Seconds of the run per second.
    pub(crate) fn speed(&self) -> f64 {
        self.speed
    }

    pub(crate) fn paused(&self) -> bool {
        self.paused
    }

    pub(crate) fn at_end(&self) -> bool {
        self.position >= self.duration
    }

    /// The viewer's time is `now`; whether that changed anything.
    pub(crate) fn tick(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.clock);
        self.clock = self.clock.max(now);
        if self.paused || self.at_end() || passed.is_zero() {
            return false;
        }
        let played = Duration::try_from_secs_f64(passed.as_secs_f64() * self.speed);
        self.go_to(self.position.saturating_add(played.unwrap_or(self.duration)));
        true
    }

    pub(crate) fn obey(&mut self, wish: Wish) {
        match wish {
            Wish::Pause if self.at_end() => {
                self.paused = false;
                self.go_to(Duration::ZERO);
            }
            Wish::Pause => self.paused = !self.paused,
            Wish::Slower => self.speed = (self.speed / 2.0).max(*SPEEDS.start()),
            Wish::Faster => self.speed = (self.speed * 2.0).min(*SPEEDS.end()),
            Wish::Earlier => self.go_to(self.position.saturating_sub(STEP)),
            Wish::Later => self.go_to(self.position.saturating_add(STEP)),
            Wish::MuchEarlier => self.go_to(self.position.saturating_sub(self.duration / 10)),
            Wish::MuchLater => self.go_to(self.position.saturating_add(self.duration / 10)),
            Wish::Beginning => self.go_to(Duration::ZERO),
            Wish::Ending => self.go_to(self.duration),
        }
    }

    /// Shows the moment `position`, or the last one if that is beyond it.
    pub(crate) fn go_to(&mut self, position: Duration) {
        let position = position.min(self.duration);
        if position < self.position {
            let wanted = self.events.partition_point(|event| event.at <= position);
            let frame = self.frames.iter().rev().find(|(applied, _)| *applied <= wanted);
            (self.applied, self.model) = frame.cloned().unwrap_or_default();
        }
        self.position = position;
        while let Some(next) = self.events.get(self.applied).filter(|next| next.at <= position) {
            self.model.apply(next.event.clone(), next.at);
            self.applied += 1;
            self.keep_frame();
        }
        self.model.tick(position);
        if let Some(sentence) = self.broken.as_ref().filter(|_| self.at_end()) {
            self.model.finish(None, sentence);
        }
    }

    fn keep_frame(&mut self) {
        let last = self.frames.last().map_or(0, |(applied, _)| *applied);
        let is_due = self.applied >= last + self.events.len().div_ceil(KEY_FRAMES + 1);
        if !is_due || self.frames.len() >= KEY_FRAMES {
            return;
        }
        let pes: usize = self.frames.iter().map(|(_, model)| model.pe_count()).sum();
        if pes + self.model.pe_count() <= KEY_PES {
            self.frames.push((self.applied, self.model.clone()));
        }
    }
}
