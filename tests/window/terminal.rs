//! A terminal for a program under test: what a person sees and types, and closing it.

use harness::{LIMIT, wait_for};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A program in a terminal of 80 x 24; killed if the test ends before it.
pub(crate) struct InTerminal {
    child: Child,
    screen: Option<File>,
    /// Everything that was written to the terminal.
    pub(crate) seen: String,
}

impl InTerminal {
    /// Starts a program. Unless `command` is of `setsid --ctty`, the kernel sends it no signal when the terminal
    /// closes.
    pub(crate) fn start(command: &mut Command) -> Self {
        // A terminal that another child inherits would never close.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master: OwnedFd = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let mut open = File::options();
        open.read(true).write(true).custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed());
        let end = open.open(OsStr::from_bytes(name.as_bytes())).unwrap();
        let copy = || Stdio::from(end.try_clone().unwrap());
        command.stdin(copy()).stdout(copy()).stderr(copy());
        command.env("TERM", "xterm").env("LANG", "C.UTF-8").env_remove("LC_ALL").env_remove("NO_COLOR");
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        // The command keeps copies of the terminal's end.
        for from in [Command::stdin, Command::stdout, Command::stderr] {
            from(command, Stdio::null());
        }
        Self { child, screen: Some(master.into()), seen: String::new() }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Its node processes, once there are so many.
    pub(crate) fn nodes(&self, count: usize) -> Vec<i32> {
        wait_for("nodes to start", || {
            let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
            let lists = threads.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
            let nodes: Vec<i32> =
                lists.flat_map(|l| l.split(' ').filter_map(|n| n.parse().ok()).collect::<Vec<_>>()).collect();
            (nodes.len() == count).then_some(nodes)
        })
    }

    /// Waits until the program has written `words`, as escape sequences leave them.
    pub(crate) fn until(&mut self, words: &str) {
        let started = Instant::now();
        while !self.seen.contains(words) {
            assert!(started.elapsed() < LIMIT, "waited in vain for {words:?}: {}", self.seen);
            assert!(self.read(), "the program ended before {words:?}: {}", self.seen);
        }
    }

    /// Types these characters.
    pub(crate) fn press(&mut self, keys: &str) {
        self.screen.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn close(&mut self) {
        self.screen = None;
    }

    /// Reads what it writes until it ends; its exit code, 128 and more if a signal ended it.
    pub(crate) fn end(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        while self.read() {}
        let status = wait_for("the program to end", || self.child.try_wait().unwrap());
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
    }

    /// False when there is nobody left who could write.
    fn read(&mut self) -> bool {
        let Some(screen) = &mut self.screen else { return false };
        let limit = Timespec::try_from(LIMIT).unwrap();
        let mut ready = [PollFd::new(screen, PollFlags::IN)];
        assert!(poll(&mut ready, Some(&limit)).unwrap() > 0, "nothing is written: {}", self.seen);
        let mut bytes = [0; 4096];
        let count = screen.read(&mut bytes).unwrap_or(0);
        self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        count > 0
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
