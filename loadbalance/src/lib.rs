//! Balancing and partitioning: speeds and loads in, a plan out. Pure: no process, clock, socket or chare.
