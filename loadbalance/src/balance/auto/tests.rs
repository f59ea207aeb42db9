//! Closed loops.
