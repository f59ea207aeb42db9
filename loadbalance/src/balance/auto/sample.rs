//! What `auto` is told.

use crate::balance::view::View;

/// One measurement of a run.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Seconds since the run began.
    pub now_s: f64,
    /// Where chares are, the work that they do in a second, and the speeds that PEs delivered. Chares keep their numbers
    /// from sample to sample but for those that have [`gone`](Self::gone), and new ones come behind them; if there are
    /// fewer than before without that, all begin anew.
    pub view: &'a View,
    /// The numbers, in order, that chares had in the sample before which have ended since: those behind them have closed
    /// the ranks.
    pub gone: &'a [u32],
    /// Seconds over which that work was measured: so much of it was told before.
    pub span_s: f64,
    /// Seconds of the run that are left, if anybody knows.
    pub left_s: Option<f64>,
    /// The work that chares still have to do, if they say so: it tells better when the last of them ends, where some run ahead of
    /// others.
    pub left_work: Option<f64>,
    /// Bytes per second from the fastest node to another, as far as anybody knows: moves show it.
    pub bytes_per_s: f64,
    /// Seconds that a chare is away when it moves, besides those of its bytes.
    pub away_s: f64,
    /// Seconds that a decision takes the run, as the last one did; 0 if nothing waits for it.
    pub decide_s: f64,
}
