//! Marks, which show that whoever made them has a key: the first bytes of an HMAC.

use ring::hmac::{self, HMAC_SHA256};

/// A key for marks of `N` bytes, 32 at most.
#[derive(Clone, Debug)]
pub(super) struct MarkKey<const N: usize>(hmac::Key);

impl<const N: usize> MarkKey<N> {
    /// Those who have this secret can make marks.
    pub(super) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(HMAC_SHA256, secret))
    }

    /// The mark of what is said.
    pub(super) fn mark(&self, said: &[u8]) -> [u8; N] {
        let all = hmac::sign(&self.0, said);
        std::array::from_fn(|at| all.as_ref()[at])
    }

    /// Whether that is the mark of what is said.
    pub(super) fn is_mark(&self, said: &[u8], mark: &[u8]) -> bool {
        // The comparison takes the same time however much of the mark is right.
        let wrong = mark.iter().zip(self.mark(said)).fold(0, |wrong, (given, right)| wrong | (given ^ right));
        mark.len() == N && wrong == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_key_one_sentence_and_one_length() {
        let (ours, others) = (MarkKey::<16>::new(b"ours"), MarkKey::<16>::new(b"others"));
        let mark = ours.mark(b"said");
        assert!(ours.is_mark(b"said", &mark));
        assert!(!ours.is_mark(b"sung", &mark) && !others.is_mark(b"said", &mark));
        assert!(!ours.is_mark(b"said", &mark[..15]) && !ours.is_mark(b"said", &[]));
        assert!(!ours.is_mark(b"said", &[&mark[..], &[0]].concat()));
        for at in 0..mark.len() {
            let mut damaged = mark;
            damaged[at] ^= 1;
            assert!(!ours.is_mark(b"said", &damaged), "byte {at}");
        }
    }
}
