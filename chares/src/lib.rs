//! Chares.
