//! The load window: watches a run in a terminal. Events come in over a channel, so it does not matter
//! whether the run is in this process or is watched through a socket; the window only reads and never disturbs.
//!
//! `model` knows the run, `player` fills one from a recording, `app` knows what the user chose, `view` draws both,
//! `term` owns the terminal; all but `term` and [`run`] are pure.
//!
//! The window knows only the types of the runtime's monitor. `chares` depends on it, and not the other way round, so
//! that every program on chares has the window.

mod app;
mod figures;
mod input;
mod model;
mod palette;
mod player;
mod screen;
mod still;
mod term;
#[cfg(test)]
mod tests;
mod view;

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use runtime::monitor::recording::Recording;
use runtime::monitor::wire::MonitorEvent;

use crate::app::{App, Event};
pub use crate::model::progress::{Progress, Remaining};
pub use crate::palette::Colors;
use crate::player::Player;
pub use crate::screen::Screen;
pub use crate::still::Still;
use crate::term::{Input, Ready};

/// Events taken in before keys are looked at again, so that a flood cannot lock the user out.
const EVENTS_AT_ONCE: usize = 4096;

/// How long to wait for the rest of a key.
const HALF_A_KEY: Duration = Duration::from_millis(20);

/// How the window looks and behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// The colours that the terminal has; all meaning is in the characters too.
    pub colors: Colors,
    /// Use block characters; otherwise ASCII only.
    pub unicode: bool,
    /// Least time between two pictures.
    pub refresh: Duration,
    /// What is done when the run is over.
    pub at_end: AtEnd,
    /// The screen that is shown first.
    pub screen: Screen,
}

/// What the window does when the run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// It stays until a key.
    Stays,
    /// It stays until a key if the run ended well; the terminal is given back at once for what else there is to say.
    StaysIfWell,
    /// The terminal is given back at once.
    Leaves,
}

impl Default for WindowOptions {
    /// Named colours, Unicode, ten pictures a second, stays at the end.
    fn default() -> Self {
        Self {
            colors: Colors::Named,
            unicode: true,
            refresh: Duration::from_millis(100),
            at_end: AtEnd::Stays,
            screen: Screen::Load,
        }
    }
}

impl WindowOptions {
    /// The defaults fitted to the environment: `COLORTERM` and `TERM` say how many colours there are, `NO_COLOR` (non-empty)
    /// and `TERM=dumb` turn them off, a locale
    /// (`LC_ALL`, `LC_CTYPE`, `LANG`; the first that is not empty counts) that is not UTF-8 or `TERM=dumb` or
    /// `TERM=linux` turns Unicode off.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let terminal = variable("TERM").unwrap_or_default();
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(&variable).unwrap_or_default();
        let locale = locale.to_lowercase().replace('-', "");
        let has_any = variable("COLORTERM").is_some_and(|any| any == "truecolor" || any == "24bit");
        let colors = match terminal.as_str() {
            "dumb" => Colors::None,
            _ if variable("NO_COLOR").is_some() => Colors::None,
            _ if has_any => Colors::Full,
            terminal if terminal.contains("256color") => Colors::Indexed,
            _ => Colors::Named,
        };
        Self {
            colors,
            // The Linux console's font lacks most block characters.
            unicode: locale.contains("utf8") && terminal != "dumb" && terminal != "linux",
            ..Self::default()
        }
    }
}

/// How a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayOptions {
    /// Where to begin, from the recording's start; what is beyond its end is its end.
    pub from: Duration,
    /// Seconds of the run per second, 0.01 to 10000.
    pub speed: f64,
}

impl Default for PlayOptions {
    /// From the start, as fast as it was.
    fn default() -> Self {
        Self { from: Duration::ZERO, speed: 1.0 }
    }
}

/// How the user left the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The run ended (or its feed did), and the user left or [`AtEnd`] says so.
    Ended,
    /// The user left while the run goes on.
    Detached,
    /// The user pressed ctrl-C while the run goes on; the caller decides whether to end it.
    Interrupted,
    /// The terminal was closed; nothing can be shown any more, and nobody is there to see it.
    HungUp,
}

/// Why the window could not be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuiError {
    /// The terminal refused; the run itself is not affected.
    #[error("the load window cannot be shown: {0}")]
    Terminal(#[from] std::io::Error),
}

/// Shows the window in this process's terminal until the user leaves or, as [`AtEnd`] says, the run is over.
/// The terminal is restored in any case. On a panic in another thread the window closes as if the user had left, so
/// that the message stays readable. A channel that closes without
/// [`MonitorEvent::Ended`] counts as the end of the run.
///
/// # Errors
/// [`TuiError::Terminal`] if standard output is no terminal or fails.
pub fn run(events: &Receiver<MonitorEvent>, options: &WindowOptions) -> Result<Left, TuiError> {
    show_in_terminal(App::new(options), Some(events))
}

/// Shows a recording in the same window until the user leaves, with keys to pause, to change the speed and to go to
/// another moment; otherwise as [`run`].
///
/// # Errors
/// As [`run`].
pub fn replay(recording: Recording, options: &WindowOptions, play: &PlayOptions) -> Result<Left, TuiError> {
    show_in_terminal(App::of_player(Player::new(recording, play), options), None)
}

fn show_in_terminal(app: App, events: Option<&Receiver<MonitorEvent>>) -> Result<Left, TuiError> {
    let input = Input::open()?;
    let mut guard = term::Guard::enter()?;
    let shown = show(&mut guard, &input, app, events);
    // A closed terminal fails in many ways before it is asked whether it is still there.
    let is_gone = shown.is_err() && matches!(input.wait(Duration::ZERO), Ok(Ready::HungUp));
    if is_gone { Ok(Left::HungUp) } else { shown }
}

fn show(
    guard: &mut term::Guard,
    input: &Input,
    mut app: App,
    mut events: Option<&Receiver<MonitorEvent>>,
) -> Result<Left, TuiError> {
    let begin = Instant::now();
    let refresh = app.options.refresh.max(Duration::from_millis(10));
    let mut drawn: Option<Instant> = None;
    let size = guard.terminal.size()?;
    app.update(Event::Resize(size.width, size.height), Duration::ZERO);
    loop {
        let now = begin.elapsed();
        if let Some(left) = app.update(Event::Tick, now) {
            return Ok(left);
        }
        if let Some(feed) = events {
            for _ in 0..EVENTS_AT_ONCE {
                let event = match feed.try_recv() {
                    Ok(event) => Event::Monitor(Box::new(event)),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        events = None;
                        Event::Closed
                    }
                };
                if let Some(left) = app.update(event, now) {
                    return Ok(left);
                }
                if events.is_none() {
                    break;
                }
            }
        }
        if !guard.holds() {
            return Ok(if app.ended() { Left::Ended } else { Left::Detached });
        }
        let wait = drawn.map_or(Duration::ZERO, |at| refresh.saturating_sub(at.elapsed()));
        if wait.is_zero() && app.take_changed() {
            let mut spots = Vec::new();
            guard.terminal.draw(|frame| spots = view::draw(frame, &app))?;
            app.spots = spots;
            drawn = Some(Instant::now());
        }
        let wait = drawn.map_or(refresh, |at| refresh.saturating_sub(at.elapsed()));
        let wait = if wait.is_zero() { refresh } else { wait };
        let ready = input.wait(wait)?;
        if ready == Ready::HungUp {
            return Ok(Left::HungUp);
        }
        if let Some(left) = keys(&mut app, ready, begin)? {
            return Ok(left);
        }
    }
}

/// Gives the terminal back if a window has it, from any thread: for a process that is about to end without
/// leaving the window first. The window then closes as if the user had left.
pub fn restore_terminal() {
    term::restore();
}

/// Takes in all keys that are there; crossterm is never made to wait, for it does not notice the terminal's end.
fn keys(app: &mut App, ready: Ready, begin: Instant) -> Result<Option<Left>, TuiError> {
    let mut came = false;
    while crossterm::event::poll(Duration::ZERO)? {
        came = true;
        let event = match crossterm::event::read()? {
            crossterm::event::Event::Key(key) => Event::Key(key),
            crossterm::event::Event::Mouse(mouse) => Event::Mouse(mouse),
            crossterm::event::Event::Resize(width, height) => Event::Resize(width, height),
            _ => continue,
        };
        if let Some(left) = app.update(event, begin.elapsed()) {
            return Ok(Some(left));
        }
    }
    if ready == Ready::Keys && !came {
        // Half a key, or bytes that crossterm takes only with the next ones: they are ready all the time.
        std::thread::sleep(HALF_A_KEY);
    }
    Ok(None)
}
