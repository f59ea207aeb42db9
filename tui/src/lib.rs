//! The load window.
