//! What the report of 1995 measured, in seconds: MEIKO CS-2 nodes and workstations over Ethernet, messages without their
//! header of 80 bytes.

/// A row of the report: bytes, and seconds.
pub(super) type Row = (u64, f64);

/// Latencies, table 5.14.
pub(super) const LATENCIES: [(&str, [Row; 4]); 3] = [
    ("Meiko–Meiko", rows([0.4, 0.5, 1.5, 5.1])),
    ("Meiko–Sun", rows([3.0, 5.9, 38.7, 116.7])),
    ("Meiko–HP", rows([4.5, 9.0, 36.5, 146.3])),
];

/// The latency on one processor.
pub(super) const ONE_PROCESSOR_S: f64 = 0.170e-3;

/// A collective operation over four unlike PEs, and the same on one processor.
pub(super) struct Collective {
    /// Number of its table in the report.
    pub(super) table: &'static str,
    /// Over four PEs.
    pub(super) rows: [Row; 4],
    /// On one processor.
    pub(super) one_processor_s: f64,
}

/// Scatter, gather and all-to-all broadcast, tables 5.15 to 5.17.
pub(super) const COLLECTIVES: [Collective; 3] = [
    Collective { table: "5.15", rows: rows([21.1, 26.7, 117.3, 900.7]), one_processor_s: 0.495e-3 },
    Collective { table: "5.16", rows: rows([17.1, 85.5, 108.5, 886.1]), one_processor_s: 0.430e-3 },
    Collective { table: "5.17", rows: rows([29.1, 143.3, 479.4, 2327.1]), one_processor_s: 0.830e-3 },
];

/// Milliseconds for the four lengths of which the values are known here.
const fn rows([a, b, c, d]: [f64; 4]) -> [Row; 4] {
    [(1, a * 1e-3), (1 << 10, b * 1e-3), (16 << 10, c * 1e-3), (64 << 10, d * 1e-3)]
}

/// The value for that many bytes, if the report has the row.
pub(super) fn at(rows: &[Row], bytes: u64) -> Option<f64> {
    rows.iter().find(|row| row.0 == bytes).map(|row| row.1)
}
