//! The `metachare` command.
fn main() {}
