//! Why something did not end well: its kind, from which exit code and precedence follow, and one sentence.

use std::fmt;

/// Why a run or a command did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: Kind,
    /// What happened, where, and how to mend it.
    pub sentence: String,
}

impl Failure {
    /// A failure of that kind.
    pub fn new(kind: Kind, sentence: impl ToString) -> Self {
        Self { kind, sentence: sentence.to_string() }
    }

    /// The user wanted the end.
    #[must_use]
    pub fn interrupted(by: Interruption) -> Self {
        Self::new(Kind::Interrupted(by), by)
    }

    /// The exit code of a program that ends with this failure.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }

    /// Whether this is told instead of `known`, which came first and has the same cause.
    #[must_use]
    pub fn explains_better_than(&self, known: &Self) -> bool {
        self.kind.precedence() > known.kind.precedence()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failure {}

/// What kind of failure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A result was checked and is wrong, or the application has an error of its own.
    Wrong,
    /// The command line is wrong.
    Usage,
    /// An input is not what it should be.
    Input,
    /// An input cannot be opened, or a run to watch is not there.
    NoInput,
    /// A node is not reached, or something else that is needed is not available.
    Unavailable,
    /// A node was lost while the run went on.
    NodeLost {
        /// Its name.
        node: String,
        /// How that was noticed.
        sign: Sign,
    },
    /// The launcher itself stood still, so that its nodes gave it up.
    Standstill,
    /// A chare or the runtime failed.
    Failed,
    /// An output cannot be written.
    Output,
    /// The nodes file is wrong.
    Config,
    /// The run lasted longer than it may.
    Timeout,
    /// The user wanted the end.
    Interrupted(Interruption),
    /// The user has had the run saved and ended, to go on later: nothing is wrong.
    Stopped,
    /// Nobody reads standard output any more.
    Unheard,
    /// Another program, which this one has run, ended with this exit code.
    Other(u8),
}

impl Kind {
    /// The exit code of a program that ends with a failure of this kind: mostly those of `sysexits.h`, that of
    /// `timeout` as errno has it, and 128 more than the signal's number where a signal is the reason.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Wrong => 1,
            Self::Usage => 64,
            Self::Input => 65,
            Self::NoInput => 66,
            Self::Unavailable | Self::NodeLost { .. } | Self::Standstill => 69,
            Self::Failed => 70,
            Self::Output => 73,
            Self::Config => 78,
            Self::Timeout => 110,
            Self::Interrupted(Interruption::HangUp) => 129,
            Self::Interrupted(Interruption::Interrupt) => 130,
            // SIGPIPE's.
            Self::Unheard => 141,
            Self::Interrupted(Interruption::Terminate) => 143,
            Self::Other(code) => *code,
        }
    }

    /// That of another program, which ended with this exit code; `None` where it was killed.
    #[must_use]
    pub fn of_program(code: Option<i32>) -> Self {
        code.and_then(|code| u8::try_from(code).ok()).map_or(Self::Failed, Self::Other)
    }

    /// Whether nothing that comes later can explain the end of a run better.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::Timeout)
    }

    /// How well this explains the end of a run of which several failures are known.
    fn precedence(&self) -> u8 {
        match self {
            Self::Interrupted(_) | Self::Timeout => 6,
            Self::Failed => 5,
            Self::Standstill => 4,
            Self::NodeLost { sign: Sign::Exit, .. } => 3,
            Self::NodeLost { sign: Sign::SilentToLauncher, .. } => 2,
            Self::NodeLost { sign: Sign::SilentToNode, .. } => 1,
            // Of these no run has several.
            Self::Wrong
            | Self::Usage
            | Self::Input
            | Self::NoInput
            | Self::Unavailable
            | Self::Output
            | Self::Config
            | Self::Stopped
            | Self::Unheard
            | Self::Other(_) => 0,
        }
    }
}

/// How the loss of a node was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Another node lost its link to it; either of the two may be the one in trouble.
    SilentToNode,
    /// The launcher lost its link to it.
    SilentToLauncher,
    /// Its process ended.
    Exit,
}

/// How the user ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The terminal was closed: SIGHUP.
    HangUp,
    /// Control-C: SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HangUp => "the terminal was closed (SIGHUP)",
            Self::Interrupt => "interrupted",
            Self::Terminate => "ended by SIGTERM",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of one trouble, the best explanation first.
    #[test]
    fn the_best_explanation_of_an_end_is_told_whichever_comes_first() {
        let lost = |sign| Kind::NodeLost { node: "b".into(), sign };
        let kinds = [
            Kind::Timeout,
            Kind::Failed,
            Kind::Standstill,
            lost(Sign::Exit),
            lost(Sign::SilentToLauncher),
            lost(Sign::SilentToNode),
        ];
        let failures = kinds.map(|kind| Failure::new(kind, "why"));
        for (place, better) in failures.iter().enumerate() {
            assert!(failures[..=place].iter().all(|known| !better.explains_better_than(known)), "{better:?}");
            assert!(
                failures[place + 1..].iter().all(|known| better.explains_better_than(known)),
                "{better:?}"
            );
        }
        assert!(failures[0].kind.is_final() && failures[1..].iter().all(|failure| !failure.kind.is_final()));
    }

    #[test]
    fn exit_codes_of_signals_are_those_of_a_shell() {
        let code = |by| Failure::interrupted(by).exit_code();
        let codes = [Interruption::HangUp, Interruption::Interrupt, Interruption::Terminate].map(code);
        assert_eq!(codes, [128 + 1, 128 + 2, 128 + 15]);
        assert_eq!(Kind::Unheard.exit_code(), 128 + 13);
        let of_program = |code| Kind::of_program(code).exit_code();
        assert_eq!((of_program(Some(9)), of_program(None)), (9, 70));
    }
}
