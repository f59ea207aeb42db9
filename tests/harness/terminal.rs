//! A terminal for the programs under test, with what they have written to it.

use crate::{Running, start_into, wait_for};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// What a program writes to enter the alternate screen, and to leave it.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
/// What it writes to show the cursor.
const SHOW: &str = "\x1b[?25h";

/// A terminal of 80 columns and 24 lines. Dropping it hangs up.
#[derive(Debug)]
pub struct Terminal {
    master: File,
    slave: OwnedFd,
    before: Termios,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    /// A new one.
    ///
    /// # Panics
    /// If this machine has no terminals left.
    #[must_use]
    pub fn new() -> Self {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).expect("a pseudo-terminal");
        let before = tcgetattr(&pair.slave).expect("the modes of a terminal");
        let master = File::from(pair.master);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut screen, text) = (master.try_clone().expect("a copy"), Arc::downgrade(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The copy is closed with the last program, or with the terminal at the next thing written.
            while let (Ok(count), Some(text)) = (screen.read(&mut bytes), text.upgrade()) {
                let more = String::from_utf8_lossy(&bytes[..count]);
                text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&more);
            }
        });
        Self { master, slave: pair.slave, before, shown }
    }

    /// Starts a program that has this terminal for all of its streams, and gets its signals.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(&self, command: &Command) -> Running {
        let mut inside = Command::new("setsid");
        inside
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args())
            .env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        let copy = || self.slave.try_clone().expect("a copy of the terminal");
        start_into(inside.stdin(copy()).stderr(copy()), copy())
    }

    /// Types keys.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn keys(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).expect("a terminal takes keys");
    }

    /// Everything that was written.
    #[must_use]
    pub fn shown(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a window is on the alternate screen and shows `words`.
    ///
    /// # Panics
    /// If that does not come.
    pub fn wait_for_window(&self, words: &str) {
        wait_for("the window", || {
            let shown = self.shown();
            shown.split_once(ENTER).is_some_and(|(_, window)| window.contains(words)).then_some(())
        });
    }

    /// Waits until the window has been left, once.
    ///
    /// # Panics
    /// If it is not.
    pub fn wait_for_leaving(&self) {
        wait_for("the window to be left", || self.shown().contains(LEAVE).then_some(()));
    }

    /// What was written to the normal screen since the window was left.
    ///
    /// # Panics
    /// If there was no window, or it was not left exactly once, or the terminal is not as it was before it.
    #[must_use]
    pub fn after_the_window(&self) -> String {
        let now = tcgetattr(&self.slave).expect("the modes of a terminal");
        assert_eq!(now, self.before, "the terminal's modes are not restored");
        let shown = self.shown();
        assert_eq!((shown.matches(ENTER).count(), shown.matches(LEAVE).count()), (1, 1), "{shown:?}");
        let (window, after) = shown.split_once(LEAVE).expect("it was left");
        assert!(window.contains(ENTER) && shown.contains(SHOW), "the cursor is hidden: {shown:?}");
        after.replace(SHOW, "")
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}
