//! A terminal for the programs under test, with what they have written to it.

use crate::{LIMIT, Running, start_into, wait_for};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a program writes to enter the alternate screen, and to leave it.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
/// What no program writes.
const MARK: &str = "\x1b_all\x1b\\";
/// What it writes to show the cursor.
const SHOW: &str = "\x1b[?25h";

const COLUMNS: usize = 80;
const LINES: usize = 24;
/// How often the window is looked at while something is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// A terminal of 80 columns and 24 lines. Dropping it hangs up.
#[derive(Debug)]
pub struct Terminal {
    master: File,
    slave: OwnedFd,
    before: Termios,
    shown: Arc<Mutex<Vec<u8>>>,
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
        // A program that inherits its own terminal's other end would never see it close.
        for end in [&pair.master, &pair.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("a flag of a file");
        }
        let before = tcgetattr(&pair.slave).expect("the modes of a terminal");
        let master = File::from(pair.master);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, text) = (master.try_clone().expect("a copy"), Arc::downgrade(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The copy is closed with the last program, or with the terminal at the next thing written.
            while let (Ok(count), Some(text)) = (screen.read(&mut bytes), text.upgrade()) {
                text.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes[..count]);
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
        inside.arg("--ctty").arg(command.get_program());
        self.start_as(inside, command)
    }

    /// Starts a program in the same way that gets no signal when the terminal closes, and must notice by itself.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_without_signals(&self, command: &Command) -> Running {
        self.start_as(Command::new(command.get_program()), command)
    }

    /// Starts `inside` with the arguments, environment and folder of `command`.
    fn start_as(&self, mut inside: Command, command: &Command) -> Running {
        inside.args(command.get_args()).env("TERM", "xterm-256color");
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
        let bytes = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until these words have been written, as escape sequences leave them.
    ///
    /// # Panics
    /// If they do not come.
    pub fn wait_for_words(&self, words: &str) {
        wait_for(words, || self.shown().contains(words).then_some(()));
    }

    /// Waits until a window is on the alternate screen and shows `words` in one line.
    ///
    /// # Panics
    /// If that does not come.
    pub fn wait_for_window(&self, words: &str) {
        let started = Instant::now();
        while !self.window().contains(words) {
            assert!(started.elapsed() < LIMIT, "no {words:?} in the window:\n{}", self.window());
            std::thread::sleep(LOOK);
        }
    }

    /// What the window shows now, or showed at last: what is written to a terminal is only what changes.
    #[must_use]
    pub fn window(&self) -> String {
        let shown = self.shown();
        let (_, window) = shown.split_once(ENTER).unwrap_or_default();
        let (window, _) = window.split_once(LEAVE).unwrap_or((window, ""));
        let mut screen = Screen::default();
        screen.write(window);
        screen.lines.iter().map(|line| String::from_iter(line) + "\n").collect()
    }

    /// Waits until the window has been left, and the terminal is as before it.
    ///
    /// # Panics
    /// If it is not.
    pub fn wait_for_leaving(&self) {
        wait_for("the window to be left", || {
            let is_as_before = tcgetattr(&self.slave).is_ok_and(|now| now == self.before);
            (is_as_before && self.shown().contains(LEAVE)).then_some(())
        });
    }

    /// What was written to the normal screen since the window was left.
    ///
    /// # Panics
    /// If the program goes on, or there was no window, or it was not left exactly once, or the terminal is not as it was before it.
    #[must_use]
    pub fn after_the_window(&self) -> String {
        let now = tcgetattr(&self.slave).expect("the modes of a terminal");
        assert_eq!(now, self.before, "the terminal's modes are not restored");
        // What comes out after our own mark was written after the program's last words.
        nix::unistd::write(&self.slave, MARK.as_bytes()).expect("a terminal takes bytes");
        let shown = wait_for("the last words", || self.shown().strip_suffix(MARK).map(ToString::to_string));
        assert_eq!((shown.matches(ENTER).count(), shown.matches(LEAVE).count()), (1, 1), "{shown:?}");
        let (window, after) = shown.split_once(LEAVE).expect("it was left");
        assert!(window.contains(ENTER) && shown.contains(SHOW), "the cursor is hidden: {shown:?}");
        after.replace(SHOW, "")
    }
}

/// The characters on a screen, for programs that move the cursor by lines and columns.
struct Screen {
    lines: Vec<Vec<char>>,
    at: (usize, usize),
}

impl Default for Screen {
    fn default() -> Self {
        Self { lines: vec![vec![' '; COLUMNS]; LINES], at: (0, 0) }
    }
}

impl Screen {
    fn write(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(next) = rest.next() {
            match next {
                '\x1b' => {
                    // A sequence that has not arrived whole has no end, and does nothing.
                    let words = rest.clone().position(|c| c.is_ascii_alphabetic());
                    let sequence: String = rest.by_ref().take(words.map_or(usize::MAX, |n| n + 1)).collect();
                    self.obey(&sequence);
                }
                '\r' => self.at.1 = 0,
                '\n' => self.at.0 += 1,
                next => {
                    let (line, column) = self.at;
                    if let Some(place) = self.lines.get_mut(line).and_then(|line| line.get_mut(column)) {
                        *place = next;
                    }
                    self.at.1 += 1;
                }
            }
        }
    }

    fn obey(&mut self, sequence: &str) {
        if let Some(place) = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('H')) {
            let mut numbers = place.split(';').map(|number| number.parse().unwrap_or(1).max(1) - 1);
            self.at = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        } else if sequence == "[2J" {
            self.lines = Self::default().lines;
        }
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}
