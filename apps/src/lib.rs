//! Programs on chares.
