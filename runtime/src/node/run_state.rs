//! How far a run has come, as one node knows it, and the speeds of its PEs.

use crate::ids::PeId;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// The state of a run.
pub(super) struct RunState {
    is_init: AtomicBool,
    has_failed: AtomicBool,
    has_ended: AtomicBool,
    /// Its PEs go to other nodes.
    is_leaving: AtomicBool,
    speeds: RwLock<Arc<Vec<f64>>>,
    /// Units of work per second of processor time of each PE, as far as they were measured. Only on the launcher.
    cpu_rates: Mutex<Vec<Option<f64>>>,
    on_end: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_init, has_failed, has_ended, speeds, .. } = self;
        let mut all = f.debug_struct("RunState");
        all.field("is_init", is_init).field("has_failed", has_failed).field("has_ended", has_ended);
        all.field("speeds", speeds).finish_non_exhaustive()
    }
}

impl RunState {
    /// A run of so many PEs that initialises; all are taken to be equally fast.
    pub(super) fn new(pe_count: u32) -> Self {
        Self {
            is_init: AtomicBool::new(true),
            has_failed: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            speeds: RwLock::new(Arc::new(vec![1.0; pe_count as usize])),
            cpu_rates: Mutex::new(vec![None; pe_count as usize]),
            on_end: OnceLock::new(),
        }
    }

    #[inline]
    pub(super) fn is_init(&self) -> bool {
        self.is_init.load(Ordering::Relaxed)
    }

    pub(super) fn set_init(&self, is_init: bool) {
        self.is_init.store(is_init, Ordering::Relaxed);
    }

    /// Notes that the run has failed here; whether that is news.
    pub(super) fn fail(&self) -> bool {
        !self.has_failed.swap(true, Ordering::SeqCst)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// Notes that its PEs go to other nodes.
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Notes that the run has ended here.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }

    /// Calls `action` when the launcher says that the run is over; once.
    pub(super) fn on_end(&self, action: impl Fn() + Send + Sync + 'static) {
        if self.on_end.set(Box::new(action)).is_err() {
            tracing::error!("a node's end was set twice");
        }
    }

    /// The launcher says that the run is over.
    pub(super) fn told_to_end(&self) {
        if let Some(action) = self.on_end.get() {
            action();
        }
    }

    pub(super) fn speeds(&self) -> Arc<Vec<f64>> {
        Arc::clone(&self.speeds.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// There are so many PEs from now on.
    pub(super) fn grow(&self, pe_count: u32) {
        let mut rates = self.cpu_rates.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rates.len().max(pe_count as usize);
        rates.resize(count, None);
    }

    pub(super) fn set_cpu_rate(&self, pe: PeId, rate: f64) {
        let mut rates = self.cpu_rates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rates.get_mut(pe.as_usize()) {
            *known = (rate > 0.0).then_some(rate);
        }
    }

    /// Those of all PEs, if all were measured.
    pub(super) fn cpu_rates(&self) -> Option<Vec<f64>> {
        self.cpu_rates.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    pub(super) fn set_speeds(&self, speeds: Vec<f64>) {
        *self.speeds.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(speeds);
    }
}
