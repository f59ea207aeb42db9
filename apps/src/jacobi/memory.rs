//! Whether a system fits into the memory of the nodes, before any of it is taken.

use super::arguments::Jacobi;
use chares::{Driver, RunError};

pub(super) fn check(_main: &mut Driver, _jacobi: &Jacobi) -> Result<(), RunError> {
    Ok(())
}
