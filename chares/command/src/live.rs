//! Live figures for other programs and for who has no terminal: events as lines of JSON, the load as a table, OpenMetrics, and a line now and then.

pub(crate) mod events;
pub(crate) mod load;
pub(crate) mod metrics;
pub(crate) mod status;
