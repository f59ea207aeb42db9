//! What commands ask of runs that are under way.

use super::note;
use runtime::failure::{Failure, Kind};
use runtime::monitor::requests::{self, Granted, Request};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// After so long whoever waits is told what for.
const PATIENCE: Duration = Duration::from_secs(8);

/// What came of what the run of that name was asked for.
///
/// # Errors
/// If there is no such run, or why it does not do that.
pub(crate) fn ask(run: &str, request: &Request) -> Result<Granted, Failure> {
    let (name, asked) = (run.to_owned(), request.clone());
    let told = || {
        note(&format!(
            "{run} has not done that yet: it does so when its driver waits for something the next time; if its launcher is \
             stopped, it does nothing until that goes on"
        ));
    };
    let answer = patiently(PATIENCE, move || requests::ask(&name, &asked), told);
    let answer = answer
        .ok_or_else(|| Failure::new(Kind::Failed, format!("whoever asked {run} panicked")))?
        .map_err(|error| Failure::new(Kind::NoInput, error))?;
    answer.map_err(|refused| Failure::new(Kind::Other(refused.code), refused.sentence))
}

/// What some work gives, of which something is told if it takes long; nothing if it panics.
fn patiently<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
    tell: impl FnOnce(),
) -> Option<T> {
    let (done, result) = channel();
    std::thread::spawn(move || done.send(work()));
    match result.recv_timeout(patience) {
        Ok(value) => Some(value),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            tell();
            result.recv().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_long_is_told_what_for() {
        let (tell, told) = channel();
        let slow =
            patiently(Duration::from_millis(1), move || told.recv().is_ok(), move || tell.send(()).unwrap());
        assert_eq!(slow, Some(true));
        let quick = patiently(Duration::from_secs(600), || 7, || panic!("it did not take long"));
        assert_eq!(quick, Some(7));
    }
}
