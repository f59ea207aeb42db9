//! Owns the terminal: alternate screen and raw mode from `enter` until it is dropped, on every way out, a panic in
//! any thread included.

use std::io::{self, Stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// Whether the terminal is ours now; the panic hook and the guard restore it only once.
static ENTERED: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// A terminal in raw mode on the alternate screen; dropping it restores what was.
pub(crate) struct Guard {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Guard {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                // First the screen, or the message would vanish with it.
                restore();
                previous(info);
            }));
        });
        enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        let entered = execute!(io::stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl Guard {
    /// Whether the terminal is still ours: a panic in any thread gives it back, so that its message can be read.
    pub(crate) fn holds(&self) -> bool {
        ENTERED.load(Ordering::SeqCst)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

pub(crate) fn restore() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        // Nothing can be done about a terminal that is gone.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
