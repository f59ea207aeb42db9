//! Why a PE does not compute, as far as what is known of the run says so. Nothing is guessed: who owes a message is named only
//! if nobody else can.

use std::collections::BTreeMap;

use runtime::monitor::hosts::{Host, hosts};
use runtime::monitor::wire::NodeInfo;

use super::Model;
use super::history::Times;
use super::node::{Node, Pe};
use super::waits::Waits;

/// A PE that works for this part of the time is busy.
const BUSY: f64 = 0.8;
/// Who waits for messages may wait for any of more PEs than this.
const NAMED: usize = 2;
/// A PE that waits for its core for this part of the time does not only wait for messages.
const SHORT_OF_CORE: f64 = 0.2;
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
    /// PEs that have work and do not get to it, a few, and what stops them.
    stopped: Vec<(u32, String, Stop)>,
    /// Whether every PE is one that waits for its core for a good part of the time.
    all_short_of_core: bool,
    /// What ended the waiting of PEs, of which single calls tell.
    waits: Waits,
    /// The parts of their waiting in which that was on its way.
    on_way: BTreeMap<u32, f64>,
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
            all_short_of_core: true,
            waits: model.waits(edge - recent),
            on_way: model.parts_on_way(edge - recent),
        };
        for node in model.nodes.values().filter(|node| node.loss.is_none()) {
            for pe in &node.pes {
                let times = present.times_of(pe);
                present.all_short_of_core &= times.share(times.core_wait) >= SHORT_OF_CORE;
                if !is_busy(times) {
                    if is_stopped(times) && present.stopped.len() < NAMED {
                        let name = format!("PE {} ({})", pe.last.pe, node.name());
                        present.stopped.push((pe.last.pe, name, Stop::of(times, std::slice::from_ref(pe))));
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

    /// How long these PEs were idle while what they waited for was on its way from another node, microseconds; `None` if nothing is
    /// known of that.
    pub(crate) fn network(&self, pes: &[Pe]) -> Option<u64> {
        let known = pes.iter().filter_map(|pe| Some((self.times_of(pe).idle, self.on_way.get(&pe.last.pe)?)));
        // Parts lie between 0 and 1, and float to integer saturates.
        let of = |(idle, part): (u64, &f64)| (idle as f64 * part).round() as u64;
        known.map(of).reduce(u64::saturating_add)
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
                Times { compute, init, .. } if init > compute && model.is_init_over => "- (it initialises)",
                _ => "- (it computes)",
            }
            .into();
        }
        let Times { idle, core_wait, throttled, .. } = times;
        if idle >= core_wait.max(throttled) {
            return self.reason_idle(model, pes, idle);
        }
        match Stop::of(times, pes) {
            Stop::NoCore => self.reason_without_core(model, &node.info),
            Stop::Share if node.info.cpu_share > 0.0 => format!("its cpu_share of {}", node.info.cpu_share),
            Stop::Share => "its cpu_share".into(),
            Stop::Quota => "a quota of CPU time".into(),
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

    /// What is known of the messages that are missing: those that ended most of the waiting of late, and who could send any.
    fn reason_idle(&self, model: &Model, pes: &[Pe], idle: u64) -> String {
        if pes.iter().all(|pe| pe.last.chares == 0) {
            return "work: it has no chares".into();
        }
        let owed = self.waits.of(pes.iter().map(|pe| pe.last.pe));
        let who = self.who_could_send(model);
        let is_under_way = self.network(pes).is_some_and(|on_way| on_way > idle / 2);
        match owed.map(|owed| (owed.what(model), owed.sender(model))) {
            None if is_under_way => "messages, on their way here".into(),
            None => format!("messages: {who}"),
            Some((what, Some((_, sender)))) if is_under_way => {
                format!("{what} from {sender}, on its way here")
            }
            Some((what, None)) if is_under_way => format!("{what}, on its way here"),
            Some((what, Some((pe, sender)))) => match self.only_of_all(pe) {
                Some(does) => format!("{what} from {sender}, which {does}"),
                None => format!("{what} from {sender}; {who}"),
            },
            Some((what, None)) => format!("{what}; {who}"),
        }
    }

    /// What this PE does, if it is the only one that is busy, or that has work where none is.
    fn only_of_all(&self, pe: u32) -> Option<&'static str> {
        match (self.busy.as_slice(), self.busy_count, self.stopped.as_slice()) {
            ([(busy, _)], 1, _) if *busy == pe => Some("is busy"),
            ([], _, [(stopped, _, by)]) if *stopped == pe => Some(by.of_one()),
            _ => None,
        }
    }

    fn who_could_send(&self, model: &Model) -> String {
        match (self.busy.as_slice(), self.busy_count) {
            ([], _) => match self.stopped.as_slice() {
                [] if self.all_short_of_core => "all PEs wait for their cores too".into(),
                [] => "no PE is busy".into(),
                [(_, one, by), (_, other, by_too)] if by == by_too => {
                    format!("{one} and {other} {}", by.of_two())
                }
                some => {
                    let each: Vec<String> =
                        some.iter().map(|(_, one, by)| format!("{one} {}", by.of_one())).collect();
                    each.join(", and ")
                }
            },
            ([(pe, node)], 1) => {
                let entry = model.pe(*pe).map(|(_, pe)| pe.last.entry.as_str()).unwrap_or_default();
                let with = if entry.is_empty() { String::new() } else { format!(", with {entry}") };
                format!("only PE {pe} ({node}) is busy{with}")
            }
            ([(one, _), (other, _)], 2) => format!("only PEs {one} and {other} are busy"),
            (_, count) => format!("{count} PEs are busy"),
        }
    }
}

/// What stops a PE that has work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    NoCore,
    /// Its own share of a core, by the nodes file.
    Share,
    /// That of its control group.
    Quota,
}

impl Stop {
    /// What stopped these PEs, which did this in the last seconds, most. Only the counters since the start tell both kinds of
    /// being throttled apart.
    fn of(times: Times, pes: &[Pe]) -> Self {
        let sum = |of: fn(&Pe) -> u64| pes.iter().map(of).fold(0, u64::saturating_add);
        if times.core_wait > times.throttled {
            Self::NoCore
        } else if sum(|pe| pe.last.throttled_ns) >= sum(|pe| pe.last.quota_ns) {
            Self::Share
        } else {
            Self::Quota
        }
    }

    fn of_one(self) -> &'static str {
        match self {
            Self::NoCore => "has work, but no core",
            Self::Share => "is held back by its cpu_share",
            Self::Quota => "is held back by a quota",
        }
    }

    fn of_two(self) -> &'static str {
        match self {
            Self::NoCore => "have work, but no core",
            Self::Share => "are held back by their cpu_share",
            Self::Quota => "are held back by a quota",
        }
    }
}

/// Whether a PE had something to do for most of the time, and did less than half of it for want of a core.
fn is_stopped(times: Times) -> bool {
    let stopped = times.share(times.core_wait) + times.share(times.throttled);
    stopped > 0.5 && times.share(times.idle) < 1.0 - BUSY
}

fn is_busy(times: Times) -> bool {
    times.share(times.working()) + times.share(times.overhead) >= BUSY
}

/// How many cores of a host others than this run use; `None` where that is not known.
pub(crate) fn others_cores(model: &Model, host: &Host<'_>) -> Option<f64> {
    let nodes = || host.nodes.iter().filter_map(|info| model.nodes.get(&info.node));
    let busy = nodes().filter_map(|node| node.processors_used()).map(|(busy, _)| busy).fold(0.0, f64::max);
    let own: f64 = nodes().filter_map(|node| node.processors_used()).map(|(_, own)| own).sum();
    (busy > 0.0).then(|| (busy - own).max(0.0))
}
