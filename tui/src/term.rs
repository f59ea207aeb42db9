//! Owns the terminal: alternate screen, raw mode and mouse from `enter` until it is dropped, on every way out, a panic in
//! any thread included. Knows when the terminal has gone: crossterm would read its end for ever.

use std::fs::File;
use std::io::{self, IsTerminal as _, Stdout};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether the terminal is ours now; the panic hook and the guard restore it only once.
static ENTERED: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// A terminal in raw mode on the alternate screen; dropping it restores what was.
pub(crate) struct Guard {
    /// Never dropped by itself: that would panic where standard error has gone with the terminal.
    pub(crate) terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Guard {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        if !io::stdout().is_terminal() {
            return Err(io::Error::other("standard output is not a terminal"));
        }
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
        let entered = execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal) }),
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

/// What a terminal has for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// Nothing yet.
    Quiet,
    /// Keys were pressed.
    Keys,
    /// It was closed; there will never be keys again.
    HungUp,
}

/// Where keys come from: the terminal that crossterm reads too.
pub(crate) struct Input {
    /// The controlling terminal, where standard input is something else.
    other: Option<File>,
}

impl Input {
    pub(crate) fn open() -> io::Result<Self> {
        if io::stdin().is_terminal() {
            return Ok(Self { other: None });
        }
        let other = File::open("/dev/tty");
        let other = other.map_err(|_| io::Error::other("there is no terminal to take keys from"))?;
        Ok(Self { other: Some(other) })
    }

    /// Waits for keys or the terminal's end, `limit` at most.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<Ready> {
        let stdin = io::stdin();
        let from: BorrowedFd<'_> = self.other.as_ref().map_or_else(|| stdin.as_fd(), File::as_fd);
        let mut fds = [PollFd::new(&from, PollFlags::IN)];
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&limit)) {
            // The window's size may have changed; crossterm says so.
            Err(rustix::io::Errno::INTR) => return Ok(Ready::Quiet),
            other => other?,
        };
        let seen = fds[0].revents();
        Ok(if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            Ready::HungUp
        } else if seen.contains(PollFlags::IN) {
            Ready::Keys
        } else {
            Ready::Quiet
        })
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
        let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
