//! What is asked of a run at other terminals: granted while the driver waits for what chares do.

use super::Driver;
use super::joining::Coming;
use crate::program::RunError;
use runtime::monitor::requests::{Asked, Request};
use std::sync::Arc;

impl Driver {
    /// A way to ask something of this run from another thread.
    pub fn asker(&self) -> impl Fn(Asked) + Send + 'static {
        let node = Arc::clone(self.pe.node());
        move |asked| node.ask_driver(asked)
    }

    /// Grants what has been asked, one thing after the other; while the process of a node that is to join starts, the driver
    /// goes on. Only where it waits for what may take long.
    pub(super) fn grant_requests(&mut self) -> Result<(), RunError> {
        if let Some((Coming { asked, began, speed }, recruited)) = self.nodes.who_has_come() {
            let answer = self.inside(|main| main.admit(recruited, began, speed))?;
            asked.answer(answer);
        }
        while self.nodes.coming.is_none()
            && let Some(asked) = self.asked.pop_front()
        {
            let answer = match &asked.request {
                Request::Checkpoint { stop } => self.inside(|main| main.save_now(*stop))?,
                Request::Drain { node } => self.inside(|main| main.drain(node))?,
                Request::Add { node } => match self.recruit((**node).clone()) {
                    Err(why) => Err(why.into()),
                    Ok((began, speed)) => {
                        self.nodes.coming = Some(Coming { asked, began, speed });
                        break;
                    }
                },
            };
            asked.answer(answer);
        }
        Ok(())
    }
}
