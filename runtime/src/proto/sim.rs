//! A seeded simulator in virtual time, in which the protocols are tested.
