//! What is asked of a run at other terminals: granted while the driver waits for what chares do.

use super::Driver;
use crate::program::RunError;
use runtime::failure::{Failure, Kind};
use runtime::monitor::requests::{Answer, Request};

impl Driver {
    /// Grants what has been asked. Only where the driver waits for what may take long.
    pub(super) fn grant_requests(&mut self) -> Result<(), RunError> {
        while let Some(asked) = self.asked.pop_front() {
            let answer = self.grant(&asked.request)?;
            asked.answer(answer);
        }
        Ok(())
    }

    fn grant(&mut self, request: &Request) -> Result<Answer, RunError> {
        match request {
            Request::Checkpoint { stop } => self.save_now(*stop),
            // A run asks for what it knows.
            other => Ok(Err(Failure::new(Kind::Usage, format!("{other:?} is not granted")).into())),
        }
    }
}
