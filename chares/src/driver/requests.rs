//! What is asked of a run at other terminals: granted while the driver waits for what chares do.

use super::Driver;
use crate::program::RunError;
use runtime::monitor::requests::{Answer, Asked, Request};
use std::sync::Arc;

impl Driver {
    /// A way to ask something of this run from another thread.
    pub fn asker(&self) -> impl Fn(Asked) + Send + 'static {
        let node = Arc::clone(self.pe.node());
        move |asked| node.ask_driver(asked)
    }

    /// Grants what has been asked. Only where the driver waits for what may take long.
    pub(super) fn grant_requests(&mut self) -> Result<(), RunError> {
        while let Some(asked) = self.asked.pop_front() {
            let answer = self.inside(|main| main.grant(&asked.request))?;
            asked.answer(answer);
        }
        Ok(())
    }

    fn grant(&mut self, request: &Request) -> Result<Answer, RunError> {
        match request {
            Request::Checkpoint { stop } => self.save_now(*stop),
            Request::Drain { node } => self.drain(node),
            Request::Add { node } => self.add_node((**node).clone()),
        }
    }
}
