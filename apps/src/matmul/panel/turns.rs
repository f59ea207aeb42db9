//! What the first panel does for all: whose group of rows is next, and with whose columns it is multiplied.
//!
//! Shares follow speeds that were measured for a moment before the work. In the work each panel says where it is and how
//! long its products take; now and then the first looks at that, and if others would wait for a panel it moves columns to
//! those who would be done before. That costs little: all rows of A come by every panel anyway, so only B goes from one to
//! the other, once. A plan holds for groups that have not been asked for when it is made, so each group has one plan.
//!
//! The panels of a PE end together, whichever of them its time went to, so each counts as its share of the PE.

use super::rebalance::{Transfer, Underway, even_out, transfers};
use super::{AHEAD, Finished, PanelInit, Replan, Request};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The first panel looks whether columns should move after this part of the groups; the first time after half of it, because the
/// sooner that is known the less has to be made up for.
const LOOKS: u32 = 8;
/// Columns move if the rest of the work gets shorter by this part: less is noise.
const GAIN_MIN: f64 = 0.015;
/// What moving costs at least, and for each byte: as much as a wire of 1 Gbit/s takes. Columns do not move for less.
const MOVE_SECONDS: f64 = 0.01;
const MOVE_SECONDS_PER_BYTE: f64 = 8e-9;
/// A panel keeps at least this part of its columns: what keeps it from working may be over in a moment.
const KEPT: u64 = 4;

/// The groups that are to be broadcast, and how far the panels are.
#[derive(Serialize, Deserialize)]
pub(super) struct Turns {
    /// Groups that nobody has been asked for, in the order of their turns.
    turns: VecDeque<u32>,
    /// How many panels have finished each group, and how many groups all have finished.
    finished: Vec<u32>,
    done: u32,
    plan: u32,
    /// When so many groups are done it looks again.
    look_at: u32,
    panels: Vec<Course>,
}

/// How far a panel is.
#[derive(Clone, Serialize, Deserialize)]
struct Course {
    /// The PE where it was when it last told.
    pe: u32,
    /// Columns that it has by the newest plan.
    columns: u64,
    /// Columns for which its node has memory, to take them, or to send them away at once.
    room: u64,
    /// Elements of C that it has been asked for and not given.
    pending: u64,
    /// Elements of C that it has computed since the first panel last looked, in so many seconds.
    area: u64,
    seconds: f64,
}

/// What the panels of a PE have, and have done since the first panel last looked.
#[derive(Clone, Copy, Default)]
struct OnPe {
    columns: u64,
    area: u64,
    seconds: f64,
}

impl Course {
    fn underway(&self, all: OnPe) -> Underway {
        let Self { columns, room, pending, .. } = *self;
        // Nobody knows how fast a panel without columns is: it gets none.
        if columns == 0 {
            return Underway { items: 0, rate: 1.0, backlog: 0.0, least: 0, most: 0 };
        }
        let least = columns.saturating_sub(room).max(columns.div_ceil(KEPT));
        let most = columns.saturating_add(room);
        let rate = all.area as f64 / all.seconds * (columns as f64 / all.columns as f64);
        Underway { items: columns, rate, backlog: pending as f64, least, most }
    }
}

impl Turns {
    pub(super) fn new(setup: &PanelInit) -> Self {
        let count = setup.group_count();
        let course = |(panel, (columns, &room)): (u32, (&[u64], &u64))| Course {
            pe: panel / setup.per_pe,
            columns: columns[1] - columns[0],
            room,
            pending: 0,
            area: 0,
            seconds: 0.0,
        };
        Self {
            turns: order(&setup.groups).into(),
            finished: vec![0; count as usize],
            done: 0,
            plan: 0,
            look_at: (count / (2 * LOOKS)).max(2),
            panels: (0..).zip(setup.columns.windows(2).zip(&setup.room)).map(course).collect(),
        }
    }

    /// The groups to ask for at first.
    pub(super) fn begin(&mut self, setup: &PanelInit) -> Vec<Request> {
        (0..AHEAD).map_while(|_| self.next(setup)).collect()
    }

    /// A panel has finished a group: what is to be asked for, and the plan for what is asked for after that.
    pub(super) fn finished(
        &mut self,
        setup: &PanelInit,
        report: &Finished,
        column_bytes: usize,
    ) -> (Option<Request>, Option<Replan>) {
        let course = &mut self.panels[report.panel as usize];
        course.pe = report.pe;
        course.pending = course.pending.saturating_sub(report.area);
        course.area += report.area;
        course.seconds += report.seconds;
        let finished = &mut self.finished[report.group as usize];
        *finished += 1;
        if (*finished as usize) < self.panels.len() {
            return (None, None);
        }
        self.done += 1;
        // The one that is asked for now keeps to the old plan: while it comes, the columns can.
        let request = self.next(setup);
        if self.done < self.look_at {
            return (request, None);
        }
        // So late that, before the next plan is made, all have finished a group of this one: each panel has heard of it,
        // and has its columns, before it hears of the next.
        self.look_at = self.done + (setup.group_count() / LOOKS).max(AHEAD as u32 + 1);
        let plan = self.look(setup, column_bytes);
        self.panels.iter_mut().for_each(|course| (course.area, course.seconds) = (0, 0.0));
        (request, plan)
    }

    fn next(&mut self, setup: &PanelInit) -> Option<Request> {
        let group = self.turns.pop_front()?;
        let rows = setup.rows_of(group).len() as u64;
        self.panels.iter_mut().for_each(|course| course.pending += rows * course.columns);
        Some(Request { group, plan: self.plan })
    }

    /// Whether other columns for the groups that are left are worth their way.
    fn look(&mut self, setup: &PanelInit, column_bytes: usize) -> Option<Replan> {
        let rows: usize = self.turns.iter().map(|&group| setup.rows_of(group).len()).sum();
        let mut pes: BTreeMap<u32, OnPe> = BTreeMap::new();
        for course in &self.panels {
            let all = pes.entry(course.pe).or_default();
            all.columns += course.columns;
            all.area += course.area;
            all.seconds += course.seconds;
        }
        let parts: Vec<Underway> =
            self.panels.iter().map(|course| course.underway(pes[&course.pe])).collect();
        let columns: Vec<u64> = parts.iter().map(|part| part.items).collect();
        let planned = even_out(&parts, rows as f64)?;
        let end = |columns: &[u64]| {
            let ends = parts.iter().zip(columns).map(|(part, &columns)| part.end(columns, rows as f64));
            ends.fold(0.0, f64::max)
        };
        let moves = transfers(&columns, &planned);
        let moved: u64 = moves.iter().map(|transfer| transfer.items).sum();
        let cost = MOVE_SECONDS + MOVE_SECONDS_PER_BYTE * moved as f64 * column_bytes as f64;
        let before = end(&columns);
        if before - end(&planned) < cost.max(GAIN_MIN * before) {
            return None;
        }
        self.plan += 1;
        for (course, columns) in self.panels.iter_mut().zip(planned) {
            course.room -= columns.saturating_sub(course.columns);
            course.columns = columns;
        }
        let moves = moves.into_iter().map(|Transfer { from, to, items }| (from as u32, to as u32, items));
        Some(Replan { plan: self.plan, moves: moves.collect() })
    }
}

/// All groups, their owners taking turns: at any point each has broadcast about the same part of its own.
fn order(groups: &[u64]) -> Vec<u32> {
    let mut turns: Vec<(f64, u32)> = Vec::new();
    for groups in groups.windows(2) {
        let count = (groups[1] - groups[0]) as f64;
        let own = (groups[0]..groups[1]).filter_map(|group| u32::try_from(group).ok());
        turns.extend(own.zip(0u32..).map(|(group, nth)| ((f64::from(nth) + 0.5) / count, group)));
    }
    turns.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    turns.into_iter().map(|(_, group)| group).collect()
}

#[cfg(test)]
mod tests;
