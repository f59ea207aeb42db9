//! What commands ask of runs that are under way.

use runtime::failure::{Failure, Kind};
use runtime::monitor::requests::{self, Granted, Request};

/// What came of what the run of that name was asked for.
///
/// # Errors
/// If there is no such run, or why it does not do that.
pub(crate) fn ask(run: &str, request: &Request) -> Result<Granted, Failure> {
    let answer = requests::ask(run, request).map_err(|error| Failure::new(Kind::NoInput, error))?;
    answer.map_err(|refused| Failure::new(Kind::Other(refused.code), refused.sentence))
}
