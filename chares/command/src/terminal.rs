//! What this process writes to its terminal. Words may come from other machines and from files of other people, and
//! escape sequences among them could repaint the terminal or type commands into it: none gets through here.

use runtime::monitor::text::clean_lines;
use std::io::{self, Write};

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

fn write(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(clean_lines(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
