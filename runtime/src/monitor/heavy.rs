//! Which chares keep their PEs busy: of each PE the heaviest ones. Known where somebody balances, or asks for loads, for only
//! then the work of single chares is measured; the launcher has these loads anyway, and nothing more is sent for this.

use serde::{Deserialize, Serialize};

/// Chares of a PE that are told, the heaviest.
pub const OF_PE_MAX: usize = 4;

/// The heaviest chares of a node's PEs, in the place of what was told of that node before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heaviest {
    /// The node.
    pub node: u16,
    /// Of each PE at most [`OF_PE_MAX`], the heaviest first.
    pub chares: Vec<HeavyChare>,
}

/// A chare and what it took of its PE in the last seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeavyChare {
    /// The PE on which it worked.
    pub pe: u32,
    /// Place of its type's name in [`RunInfo::chare_types`](super::wire::RunInfo::chare_types).
    pub chare_type: u16,
    /// Its index, e.g. `[3, 1]`.
    pub element: String,
    /// Its processor time as a part of the PE's time.
    pub part: f64,
}
