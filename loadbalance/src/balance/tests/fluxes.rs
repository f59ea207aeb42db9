//! Fluxes.
