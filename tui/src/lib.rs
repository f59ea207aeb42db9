//! The load window.
#![allow(missing_docs, reason = "stand-in until the window lands")]
use runtime::monitor::wire::MonitorEvent;
use std::{sync::mpsc::Receiver, time::Duration};
#[derive(Debug, Clone)]
pub struct WindowOptions { pub color: bool, pub unicode: bool, pub refresh: Duration, pub leave_at_end: bool }
impl WindowOptions { pub fn from_env() -> Self { Self { color: false, unicode: false, refresh: Duration::from_millis(100), leave_at_end: false } } }
pub enum Left { Ended, Detached, Interrupted }
pub fn run(events: Receiver<MonitorEvent>, _: &WindowOptions) -> Result<Left, std::io::Error> { for _ in events {} Ok(Left::Ended) }
pub fn render_text(_: &[MonitorEvent], _: u16, _: u16, _: &WindowOptions) -> String { String::new() }
