//! What whoever watches should know while the run goes on, and could have done better.

use super::Driver;
use crate::ctx::Cx as _;
use std::fmt;

/// A function that is told a sentence.
type Told = Box<dyn Fn(&str) + Send>;

/// So many parts for each PE divide work well over machines of unequal speed.
const PARTS_PER_PE: u64 = 4;

/// Who hears of remarks, and what is kept for later.
#[derive(Default)]
pub(super) struct Remarks {
    viewers: Option<Told>,
    /// What there is to say once chares are placed by speed.
    if_by_speed: Option<String>,
}

impl fmt::Debug for Remarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remarks({:?})", self.if_by_speed)
    }
}

impl Driver {
    /// What is [advised](Self::advise) goes to `tell` at once: for whoever starts runs.
    pub fn on_advice(&mut self, tell: impl Fn(&str) + Send + 'static) {
        self.remarks.viewers = Some(Box::new(tell));
    }

    /// Says something that whoever watches the run or reads its report should know, such as an option that would divide the
    /// work better. It is in the window and in recordings at once, where [`Timeline::remark`](crate::Timeline::remark) is for
    /// what is known at the end.
    pub fn advise(&mut self, sentence: &str) {
        self.timeline.remark(sentence);
        if let Some(tell) = &self.remarks.viewers {
            tell(sentence);
        }
    }

    /// States into how many parts the work is divided, and what these are called. Of fewer than there are PEs some PE gets
    /// none: then that is advised against, with the option and value that `mend` names, which is told how many parts would be
    /// good.
    pub fn parts(&mut self, count: u64, name: &str, mend: impl FnOnce(u64) -> Option<String>) {
        let pes = u64::from(self.pe_count());
        if count >= pes {
            return;
        }
        let mend = match mend(pes * PARTS_PER_PE) {
            Some(option) => format!("try {option}"),
            None => "the problem is too small for so many".into(),
        };
        let name = if count == 1 { name.strip_suffix('s').unwrap_or(name) } else { name };
        self.advise(&format!("only {count} {name} for {pes} PEs; {mend}"));
    }

    /// This is to be [advised](Self::advise) if the driver places chares by speed, because nobody knows any: for whoever starts
    /// runs.
    pub fn advise_if_by_speed(&mut self, sentence: &str) {
        self.remarks.if_by_speed = Some(sentence.into());
    }

    /// Chares are placed by speed.
    pub(super) fn placed_by_speed(&mut self) {
        self.timeline.is_by_speed = true;
        if let Some(sentence) = self.remarks.if_by_speed.take() {
            self.advise(&sentence);
        }
    }
}
