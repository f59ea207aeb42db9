//! Several hosts on this machine: one small module that drives the testbed script.
//!
//! `METACHARE_TESTBED` names the script. Where it or its rights are missing the tests are skipped with the
//! reason; in CI (`CI=true`) that is an error.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Hosts that exist as long as this value.
#[derive(Debug)]
pub struct Testbed {
    script: PathBuf,
    bed: String,
}

impl Testbed {
    /// Brings up the hosts of a specification, with sshd in each, or says why not and gives `None`.
    ///
    /// # Panics
    /// In CI, if the hosts cannot be made.
    #[must_use]
    pub fn up(name: &str, spec: &str) -> Option<Self> {
        let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/testbed/testbed");
        let script =
            std::env::var_os("METACHARE_TESTBED").map_or_else(|| PathBuf::from(default), PathBuf::from);
        let bed = Self { script, bed: format!("t{}{name}", std::process::id()) };
        // Several that come up at the same moment may be in each other's way.
        match bed.try_up(spec).or_else(|_| bed.try_up(spec)) {
            Ok(()) => Some(bed),
            Err(reason) => {
                crate::skipped(&format!("the tests over several hosts: {reason}"));
                None
            }
        }
    }

    fn try_up(&self, spec: &str) -> Result<(), String> {
        if !self.script.exists() {
            return Err(format!(
                "{:?} is not there; METACHARE_TESTBED names the testbed script",
                self.script
            ));
        }
        let file = std::env::temp_dir().join(format!("{}.toml", self.bed));
        std::fs::write(&file, spec).map_err(|e| e.to_string())?;
        let up = self.command(&["up", &file.to_string_lossy(), "--fit", "--ssh", "--replace"]).output();
        let _ = std::fs::remove_file(&file);
        let up = up.map_err(|e| format!("{:?}: {e}", self.script))?;
        if up.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&up.stderr).trim().to_string()) }
    }

    /// A command of the script, such as `["freeze", "ws1"]`.
    ///
    /// # Panics
    /// If it fails.
    pub fn act(&self, words: &[&str]) {
        let done = self.command(words).output();
        let is_done = matches!(&done, Ok(Output { status, .. }) if status.success());
        assert!(is_done, "testbed {words:?}: {done:?}");
    }

    /// A program in the launching host.
    #[must_use]
    pub fn on_launcher(&self, program: &str) -> Command {
        self.command(&["exec", "ctl", "--", program])
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.script);
        command.args(["--bed", &self.bed]).args(words);
        command
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let _ = self.command(&["down"]).output();
    }
}
