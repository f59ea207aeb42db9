//! Why a PE does not compute, as far as what is known of the run says so. Nothing is guessed: who owes a message is named only
//! if nobody else can.

use runtime::monitor::hosts::{Host, hosts};
use runtime::monitor::wire::NodeInfo;

use super::Model;
use super::history::Times;
use super::node::{Node, Pe};

/// A PE that works for this part of the time is busy.
const BUSY: f64 = 0.8;
/// Who waits for messages may wait for any of more PEs than this.
const NAMED: usize = 2;
/// Who uses less than this of a core does not keep PEs from it.
const OTHERS: f64 = 0.2;

/// What is known of the run in the last seconds.
pub(crate) struct Present<'a> {
    pub(crate) hosts: Vec<Host<'a>>,
    /// Begin and end of the last seconds, on the viewer's axis.
    span: (i64, i64),
    /// PEs that are busy, a few.
    busy: Vec<(u32, String)>,
    busy_count: usize,
    /// PEs that have work and are kept from their cores, a few.
    stopped: Vec<String>,
}

impl<'a> Present<'a> {
    pub(crate) fn of(model: &'a Model, recent: i64) -> Self {
        let edge = model.edge();
        let span = (edge - recent, edge);
        let mut present = Self {
            hosts: hosts(model.nodes.values().map(|node| &node.info)),
            span,
            busy: Vec::new(),
            busy_count: 0,
            stopped: Vec::new(),
        };
        for node in model.nodes.values().filter(|node| node.loss.is_none()) {
            for pe in &node.pes {
                let times = present.times_of(pe);
                if !is_busy(times) {
                    if is_stopped(times) && present.stopped.len() < NAMED {
                        present.stopped.push(format!("PE {} ({})", pe.last.pe, node.name()));
                    }
                    continue;
                }
                present.busy_count += 1;
                if present.busy.len() < NAMED {
                    present.busy.push((pe.last.pe, node.name()));
                }
            }
        }
        present
    }

    pub(crate) fn times_of(&self, pe: &Pe) -> Times {
        pe.history.between(self.span.0, self.span.1)
    }

    pub(crate) fn times_of_all(&self, node: &Node) -> Times {
        node.between(self.span.0, self.span.1)
    }

    /// What these PEs of a node, which did this in the last seconds, wait for most.
    pub(crate) fn reason(&self, model: &Model, node: &Node, pes: &[Pe], times: Times) -> String {
        if let Some(loss) = &node.loss {
            return format!("nothing any more: {}", loss.reason);
        }
        if times.total() == 0 {
            return "not heard of for seconds".into();
        }
        if is_busy(times) {
            return match times {
                Times { compute, init, overhead, .. } if overhead > compute.max(init) => {
                    "- (the runtime works)"
                }
                Times { compute, init, .. } if init > compute => "- (it initialises)",
                _ => "- (it computes)",
            }
            .into();
        }
        let Times { idle, core_wait, throttled, .. } = times;
        if core_wait > idle.max(throttled) {
            self.reason_without_core(model, &node.info)
        } else if throttled > idle {
            match node.info.cpu_share {
                share if share > 0.0 && share < 1.0 => format!("its cpu_share of {share}"),
                _ => "a quota of CPU time".into(),
            }
        } else {
            self.reason_idle(pes)
        }
    }

    fn reason_without_core(&self, model: &Model, info: &NodeInfo) -> String {
        let host = self.hosts.iter().find(|host| host.name == info.host);
        match host.map(|host| (host, others_cores(model, host))) {
            Some((host, _)) if host.is_crowded() => format!("a core: {} PEs share {}", host.pes, host.cores),
            Some((_, Some(others))) if others >= OTHERS => format!("a core: others use {others:.1}"),
            _ => "a core, which the system keeps".into(),
        }
    }

    fn reason_idle(&self, pes: &[Pe]) -> String {
        if pes.iter().all(|pe| pe.last.chares == 0) {
            return "work: it has no chares".into();
        }
        match (self.busy.as_slice(), self.busy_count) {
            ([], _) => match self.stopped.as_slice() {
                [] => "messages: no PE is busy".into(),
                [one] => format!("messages: {one} has work, but no core"),
                some => format!("messages: {} have work, but no core", some.join(" and ")),
            },
            ([(pe, node)], 1) => format!("messages: only PE {pe} ({node}) is busy"),
            ([(one, _), (other, _)], 2) => format!("messages: only PEs {one} and {other} are busy"),
            (_, count) => format!("messages: {count} PEs are busy"),
        }
    }
}

/// Whether a PE had something to do for most of the time, and did less than half of it for want of a core.
fn is_stopped(times: Times) -> bool {
    let stopped = times.share(times.core_wait) + times.share(times.throttled);
    stopped > 0.5 && times.share(times.idle) < 1.0 - BUSY
}

fn is_busy(times: Times) -> bool {
    times.share(times.compute) + times.share(times.init) + times.share(times.overhead) >= BUSY
}

/// How many cores of a host others than this run use; `None` where that is not known.
pub(crate) fn others_cores(model: &Model, host: &Host<'_>) -> Option<f64> {
    let nodes = || host.nodes.iter().filter_map(|info| model.nodes.get(&info.node));
    let busy = nodes().filter_map(|node| node.processors_used()).map(|(busy, _)| busy).fold(0.0, f64::max);
    let own: f64 = nodes().filter_map(|node| node.processors_used()).map(|(_, own)| own).sum();
    (busy > 0.0).then(|| (busy - own).max(0.0))
}
