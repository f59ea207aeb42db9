//! Links over real sockets on this machine.
