//! The slowest single calls of a node that are known: of each entry method the one that its profile tells of, those that were
//! told of so before a slower one came, and those that are among the calls that are followed.

use runtime::monitor::profile::Profile;
use runtime::monitor::samples::Ran;
use runtime::monitor::text;

use super::profile::ELEMENT_MAX;

/// Calls kept of a node.
const KEPT_MAX: usize = 24;

/// A call that took long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlowCall {
    pub(crate) ns: u64,
    pub(crate) pe: u32,
    /// Age of the node process at its end.
    pub(crate) at_ns: u64,
    /// Place of the entry method's name.
    pub(crate) name: u16,
    /// `None` where it is not known, empty where it was for several.
    pub(crate) element: Option<String>,
}

/// Those of a node, the slowest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slowest(Vec<SlowCall>);

impl Slowest {
    pub(crate) fn calls(&self) -> &[SlowCall] {
        &self.0
    }

    pub(super) fn take_profile(&mut self, profile: &Profile) {
        for entry in &profile.entries {
            let slowest = &entry.slowest;
            let call = SlowCall {
                ns: slowest.ns,
                pe: slowest.pe,
                at_ns: slowest.at_ns,
                name: entry.name,
                element: Some(text::clean_line(&slowest.element, ELEMENT_MAX)),
            };
            self.take(call);
        }
    }

    pub(super) fn take_sample(&mut self, ran: &Ran) {
        let at_ns = ran.began_ns.saturating_add(ran.took_ns);
        let call = SlowCall { ns: ran.took_ns, pe: ran.pe, at_ns, name: ran.name, element: None };
        self.take(call);
    }

    fn take(&mut self, call: SlowCall) {
        if call.ns == 0 || (self.0.len() >= KEPT_MAX && self.0.last().is_some_and(|last| last.ns > call.ns)) {
            return;
        }
        // Both kinds of news may tell of it.
        let which = |one: &SlowCall| (one.pe, one.at_ns, one.name);
        if let Some(known) = self.0.iter_mut().find(|one| which(one) == which(&call)) {
            known.element = known.element.take().or(call.element);
            return;
        }
        let place = self.0.partition_point(|one| one.ns >= call.ns);
        self.0.insert(place, call);
        self.0.truncate(KEPT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::monitor::profile::{EntryTime, SlowestCall};

    fn profile(ns: u64, at_ns: u64, element: &str) -> Profile {
        let slowest = SlowestCall { ns, at_ns, pe: 1, element: element.into() };
        Profile { entries: vec![EntryTime { name: 3, calls: 1, ns, slowest }], ..Profile::default() }
    }

    fn known(slowest: &Slowest) -> Vec<(u64, u64, Option<&str>)> {
        slowest.calls().iter().map(|call| (call.ns, call.at_ns, call.element.as_deref())).collect()
    }

    #[test]
    fn a_call_that_is_told_of_twice_is_one_and_a_record_that_was_beaten_stays() {
        let mut slowest = Slowest::default();
        slowest.take_sample(&Ran { pe: 1, name: 3, began_ns: 100, took_ns: 50, ..Ran::default() });
        slowest.take_profile(&profile(50, 150, "[2]"));
        slowest.take_profile(&profile(50, 150, "[2]"));
        slowest.take_profile(&profile(90, 400, "[7]"));
        assert_eq!(known(&slowest), [(90, 400, Some("[7]")), (50, 150, Some("[2]"))]);
        slowest.take_sample(&Ran { pe: 2, began_ns: 100, took_ns: 50, ..Ran::default() });
        assert_eq!(slowest.calls().len(), 3, "another PE's");
    }

    #[test]
    fn of_many_the_slowest_are_kept() {
        let mut slowest = Slowest::default();
        for number in 0..10 * KEPT_MAX as u64 {
            let took_ns = number * 7919 % 1000;
            slowest.take_sample(&Ran { began_ns: 10_000 * number, took_ns, ..Ran::default() });
        }
        let mut all: Vec<u64> = (0..10 * KEPT_MAX as u64).map(|number| number * 7919 % 1000).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        let kept: Vec<u64> = slowest.calls().iter().map(|call| call.ns).collect();
        assert_eq!(kept, all[..KEPT_MAX]);
    }
}
