//! How a PE measures its speed with the application's own kernel, and keeps to its share of its core.

use super::{Scheduler, moved_broadcast};
use crate::codec::ControlToLauncher;
use crate::envelope::Payload;
use crate::monitor::wire::PeState;
use crate::object::{KernelCall, PupError};
use crate::pe::processor::processor_ns;
use crate::pe::share::Share;
use std::sync::Arc;
use std::time::Duration;

/// A speed is found over so many stretches of time. The worst and the best do not count, so that a moment's
/// disturbance does not, nor a quota of CPU time that was saved up. The others do alike: of the best ones alone too
/// much would be expected where other users' load comes and goes.
const STRETCHES_MAX: u32 = 9;
/// No stretch is shorter, or it would be one call of many kernels.
const STRETCH_MIN_MS: u32 = 20;

/// A probe takes so long: several periods of most quotas.
const PROBE_NS: u64 = 50_000_000;
/// One that has to end sooner than this, because there is something to do, shows nothing.
const PROBE_MIN_NS: u64 = 20_000_000;

impl Scheduler {
    /// Makes a kernel ready, and tells the launcher the rate of its first call, which touches memory and caches.
    pub(super) fn prepare_kernel(&mut self, kernel: u16, arguments: &Payload) -> Result<(), PupError> {
        let node = Arc::clone(&self.pe.node);
        let Some(kernel) = node.program().kernels.get(usize::from(kernel)) else { return Ok(()) };
        let Payload::Packed(arguments) = arguments else { return Err(moved_broadcast()) };
        self.kernel = None;
        let before_ns = node.now_ns();
        self.switch(PeState::Init);
        let mut call = (kernel.prepare)(&arguments.body)?;
        self.share.worked(before_ns, node.now_ns());
        let Rates { wall, cpu } = self.rates_over(Duration::ZERO, &mut call);
        self.switch(PeState::Idle);
        self.kernel = Some(call);
        node.tell_launcher(ControlToLauncher::Speed(self.pe.id, wall, cpu));
        Ok(())
    }

    /// Runs the kernel that is ready together with all PEs of the node and tells the launcher the rate: 0 if none is.
    pub(super) fn measure(&mut self, budget_ms: u32) {
        let node = Arc::clone(&self.pe.node);
        self.switch(PeState::Asleep);
        node.pes().measuring().wait();
        self.share.begins_anew(node.now_ns());
        self.switch(PeState::Init);
        let count = (budget_ms / STRETCH_MIN_MS).clamp(1, STRETCHES_MAX);
        let budget = Duration::from_millis(u64::from(budget_ms));
        let (stretch, end) = (budget / count, node.now() + budget);
        let mut rates = Vec::new();
        if let Some(mut call) = self.kernel.take() {
            // Where a call takes longer than a stretch there are fewer of these, and not more than the budget.
            while rates.is_empty() || node.now() + stretch / 2 < end {
                rates.push(self.rates_over(stretch, &mut call));
            }
            self.kernel = Some(call);
        }
        let of = |kind: fn(&Rates) -> f64| middle(&mut rates.iter().map(kind).collect::<Vec<f64>>());
        let (wall, cpu) = (of(|rates| rates.wall), of(|rates| rates.cpu));
        self.switch(PeState::Idle);
        let now = (self.pe.account().switched_ns(), self.pe.account().busy_ns());
        self.pe.loads.begin(now, node.pes().said(self.pe.id));
        node.tell_launcher(ControlToLauncher::Speed(self.pe.id, wall, cpu));
    }

    /// Computes for nothing for a moment, to see how much of a core there is. If there is something to do, that shows it.
    pub(super) fn probe(&mut self) {
        // The launcher sends this without counting it, and what is processed has to have been created.
        self.pe.account().goes_on(1);
        let node = Arc::clone(&self.pe.node);
        let inbox = node.pes().inbox(self.pe.id);
        let (begin_ns, used_ns) = (node.now_ns(), processor_ns());
        let mut took_ns = 0;
        while took_ns < PROBE_NS && self.pe.queue.is_empty() && inbox.is_empty() {
            std::hint::spin_loop();
            took_ns = node.now_ns().saturating_sub(begin_ns);
        }
        if took_ns >= PROBE_MIN_NS
            && let Some((now, then)) = processor_ns().zip(used_ns)
        {
            self.pe.loads.has_shown(took_ns, now.saturating_sub(then));
        }
    }

    /// Sleeps for what is owed to the owner of the core, if that is at least `piece`.
    pub(super) fn pay_back(&mut self, piece: Duration) {
        let Some(due) = self.share.due(piece, processor_ns) else { return };
        let state = self.pe.account().state();
        self.switch(PeState::Throttled);
        let began_ns = self.pe.account().switched_ns();
        std::thread::sleep(due);
        self.switch(state);
        let awake_ns = self.pe.account().switched_ns();
        self.share.slept(began_ns, awake_ns);
        self.pe.loads.held_back(awake_ns.saturating_sub(began_ns));
    }

    /// Units of work per second over a stretch of time, with what is owed to the owner of the core paid.
    fn rates_over(&mut self, stretch: Duration, call: &mut KernelCall) -> Rates {
        let node = Arc::clone(&self.pe.node);
        let (start, start_ns, mut units) = (node.now(), processor_ns(), 0.0);
        loop {
            let before_ns = node.now_ns();
            units += call();
            self.share.worked(before_ns, node.now_ns());
            self.pay_back(Share::PIECE);
            if node.now().saturating_sub(start) >= stretch {
                break;
            }
        }
        // Sleep that is paid later would be counted in this stretch all the same.
        self.pay_back(Duration::ZERO);
        let wall = units / node.now().saturating_sub(start).as_secs_f64();
        let used_ns = processor_ns().zip(start_ns).map(|(now, then)| now.saturating_sub(then));
        let cpu = used_ns.map_or(wall, |ns| units / (ns.max(1) as f64 / 1e9));
        Rates { wall, cpu: cpu.max(wall) }
    }
}

/// Units of work per second of the wall's clock, and of processor time.
struct Rates {
    wall: f64,
    cpu: f64,
}

/// The average of what is neither the least nor the most, if there is such; 0 of nothing.
fn middle(rates: &mut [f64]) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    let counted = if rates.len() > 2 { &rates[1..rates.len() - 1] } else { rates };
    counted.iter().sum::<f64>() / counted.len().max(1) as f64
}
