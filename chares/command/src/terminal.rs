//! What this process writes to its terminal. Words may come from other machines and from files of other people, and
//! escape sequences among them could repaint the terminal or type commands into it: none gets through here.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use runtime::monitor::text::clean_lines;
use std::io::{self, IsTerminal as _, Write};

/// Writes text to standard output, without escape sequences and control characters. Whoever closed it does not want it.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn print(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

/// Writes text to standard error in the same way. There is no other place to say that it cannot be said.
pub(crate) fn print_error(text: &str) {
    let _ = write(&mut io::stderr().lock(), text);
}

/// Shows on a terminal how far something long is that is counted in bytes, if it is to be shown and there is one.
pub(crate) fn bar_of_bytes(what: &str, total: u64, is_shown: bool) -> ProgressBar {
    let is_seen = is_shown && io::stderr().is_terminal();
    let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let template = format!("{what} [{{bar:20}}] {{bytes}} of {{total_bytes}} {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn write(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(clean_lines(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
