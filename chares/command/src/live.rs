//! Live figures for other programs and for who has no terminal: events as lines of JSON, OpenMetrics, and a line now and then.

pub(crate) mod events;
pub(crate) mod metrics;
pub(crate) mod status;
