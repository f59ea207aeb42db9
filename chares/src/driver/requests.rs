//! What is asked of a run at other terminals: granted while the driver waits for what chares do.

use super::Driver;
use super::joining::Coming;
use crate::program::RunError;
use runtime::monitor::requests::{Asked, Request};
use std::sync::Arc;

impl Driver {
    /// A way to ask something of this run from another thread.
    pub fn asker(&self) -> impl Fn(Asked) + Send + Sync + 'static {
        let node = Arc::clone(self.pe.node());
        move |asked| node.ask_driver(asked)
    }

    /// Grants what has been asked, one thing after the other, and nothing while a checkpoint is being kept; while the process of a
    /// node that is to join starts, the driver goes on, and only checkpoints are granted. Only where it waits for what may take
    /// long.
    pub(super) fn grant_requests(&mut self) -> Result<(), RunError> {
        if self.history.is_keeping() {
            return Ok(());
        }
        if let Some((Coming { asked, began, speed }, recruited)) = self.nodes.who_has_come() {
            let answer = self.inside(|main| main.admit(recruited, began, speed))?;
            asked.answer(answer);
        }
        while let Some(asked) = self.next_asked() {
            let answer = match &asked.request {
                Request::Checkpoint { stop } => self.inside(|main| main.save_now(*stop))?,
                Request::Drain { node } => self.inside(|main| main.drain(node))?,
                Request::Add { node } => match self.recruit((**node).clone()) {
                    Err(why) => Err(why.into()),
                    Ok((began, speed)) => {
                        self.nodes.coming = Some(Coming { asked, began, speed });
                        continue;
                    }
                },
            };
            asked.answer(answer);
        }
        Ok(())
    }

    /// The first request that can be granted now.
    fn next_asked(&mut self) -> Option<Asked> {
        let is_free = self.nodes.coming.is_none();
        let can_be_granted = |asked: &Asked| is_free || matches!(asked.request, Request::Checkpoint { .. });
        let at = self.asked.iter().position(can_be_granted)?;
        self.asked.remove(at)
    }
}
