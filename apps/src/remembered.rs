//! What was found out last, for those who ask the same again: who plans asks once for each mix.

use std::sync::{Mutex, PoisonError};

/// The last question and its answer.
pub(crate) struct Remembered<Q, A>(Mutex<Option<(Q, A)>>);

impl<Q: Clone + PartialEq, A: Copy> Remembered<Q, A> {
    /// Nothing has been asked yet.
    pub(crate) const fn nothing() -> Self {
        Self(Mutex::new(None))
    }

    /// The answer of the last time if the question is the same, else what is found out now. Others who ask meanwhile wait.
    pub(crate) fn answer(&self, question: &Q, find_out: impl FnOnce() -> A) -> A {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((before, known)) if before == question => *known,
            _ => last.insert((question.clone(), find_out())).1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_is_answered_without_finding_out_again() {
        let remembered = Remembered::nothing();
        assert_eq!(remembered.answer(&1, || 'a'), 'a');
        assert_eq!(remembered.answer(&1, || 'b'), 'a');
        assert_eq!(remembered.answer(&2, || 'c'), 'c');
        assert_eq!(remembered.answer(&1, || 'd'), 'd');
    }
}
