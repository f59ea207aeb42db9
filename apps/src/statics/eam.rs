//! The kernel: densities, energies and forces of a block's own atoms from its neighbour list.
//!
//! Neighbours within the cutoff are first copied side by side (a list holds the skin as well), square roots and
//! quotients are then taken with vector instructions, and each pair looks up one cache line of spline coefficients.
//! A pair of own atoms is computed once and added to both. The other way to have one order of sums, every pair listed at
//! both of its atoms and nothing scattered, took 1.6 times as long with 1.4 times the memory (copper, 32 000 and 256 000
//! atoms, EPYC of 2025): the look-ups are what costs, not the additions.
//!
//! Bits: every product and sum is rounded on its own (no fused multiply-add), sums run in the order of the list, and what
//! is done side by side has no influence on them. So all machines get the same numbers.

use super::block::Class;
use super::neighbours::{Half, Index, List, Rows};
use super::potential::{Interval, Potential, spline};
use pulp::{Arch, Simd, WithSimd};

/// What both halves of an evaluation read.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub potential: &'a Potential,
    /// Which pairs: those inside the block can be computed while others are on their way.
    pub half: Half,
    /// Of own atoms only.
    pub classes: &'a [Class],
    pub species: &'a [u8],
    pub at: &'a [[f64; 3]],
}

impl Scene<'_> {
    fn computed(&self) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(|&i| matches!(self.classes[i], Class::Free | Class::Buffer))
    }
}

/// Adds the densities of all own atoms to `density`.
pub(super) fn densities(scene: &Scene<'_>, list: &List, density: &mut [f64]) {
    match list {
        List::Short(rows) => Arch::new().dispatch(Densities { scene: *scene, rows, density }),
        List::Long(rows) => Arch::new().dispatch(Densities { scene: *scene, rows, density }),
    }
}

/// Adds pair energies and forces to `force`; gives the virial if asked.
pub(super) fn forces(
    scene: &Scene<'_>,
    list: &List,
    slope: &[f64],
    force: &mut [[f64; 4]],
    with_virial: bool,
) -> [f64; 6] {
    let mut sum = [0.0; 6];
    let (scene, virial) = (*scene, with_virial.then_some(&mut sum));
    match list {
        List::Short(rows) => Arch::new().dispatch(Forces { scene, rows, slope, force, virial }),
        List::Long(rows) => Arch::new().dispatch(Forces { scene, rows, slope, force, virial }),
    }
    sum
}

/// Neighbours that are worked on at a time.
const CHUNK: usize = 64;

/// Pairs within the cutoff, one array per quantity.
struct Near {
    count: usize,
    index: [u32; CHUNK],
    /// From the neighbour to the atom.
    d: [[f64; CHUNK]; 3],
    r2: [f64; CHUNK],
}

impl Near {
    fn new() -> Self {
        Self { count: 0, index: [0; CHUNK], d: [[0.0; CHUNK]; 3], r2: [1.0; CHUNK] }
    }

    /// Keeps those of `candidates` (at most [`CHUNK`]) that are within the cutoff of `at`, in their order.
    #[inline(always)]
    fn collect<I: Index>(
        &mut self,
        at: [f64; 3],
        candidates: &[I],
        places: &[[f64; 3]],
        cutoff_squared: f64,
    ) {
        let mut count = 0;
        for &j in candidates {
            let j: u32 = j.into();
            let other = &places[j as usize];
            let [dx, dy, dz] = [at[0] - other[0], at[1] - other[1], at[2] - other[2]];
            let r2 = dx * dx + dy * dy + dz * dz;
            // The mask changes nothing, and spares a test.
            let slot = count & (CHUNK - 1);
            self.index[slot] = j;
            self.d[0][slot] = dx;
            self.d[1][slot] = dy;
            self.d[2][slot] = dz;
            self.r2[slot] = r2;
            count += usize::from(r2 < cutoff_squared);
        }
        self.count = count;
    }

    /// Entries to be computed side by side: whole groups of eight, the last of which may hold leftovers.
    #[inline(always)]
    fn filled(&self) -> usize {
        self.count.next_multiple_of(8).min(CHUNK)
    }
}

struct Densities<'a, I> {
    scene: Scene<'a>,
    rows: &'a Rows<I>,
    density: &'a mut [f64],
}

impl<I: Index> WithSimd for Densities<'_, I> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { scene, rows, density } = self;
        let (cutoff, per_r) = (scene.potential.cutoff(), scene.potential.per_r());
        let (mut near, mut t) = (Near::new(), [0.0; CHUNK]);
        for i in scene.computed() {
            let row = rows.row(i).half(scene.half);
            let (at, species) = (scene.at[i], scene.species[i]);
            let mut sum = 0.0;
            for (part, both) in [(row.own, true), (row.ghosts, false), (row.fixed, false)] {
                for candidates in part.chunks(CHUNK) {
                    near.collect(at, candidates, scene.at, cutoff * cutoff);
                    for (t, r2) in t.iter_mut().zip(&near.r2).take(near.filled()) {
                        *t = r2.sqrt() * per_r;
                    }
                    for (&j, &t) in near.index.iter().zip(&t).take(near.count) {
                        let j = j as usize;
                        let other = scene.species[j];
                        let intervals = scene.potential.intervals(species, other);
                        let (m, p) = spline::locate(t, intervals.len());
                        let here = spline::value(&intervals[m].density, p);
                        sum += here;
                        if both {
                            let there = if other == species {
                                here
                            } else {
                                spline::value(&scene.potential.intervals(other, species)[m].density, p)
                            };
                            density[j] += there;
                        }
                    }
                }
            }
            density[i] += sum;
        }
    }
}

struct Forces<'a, I> {
    scene: Scene<'a>,
    rows: &'a Rows<I>,
    slope: &'a [f64],
    force: &'a mut [[f64; 4]],
    virial: Option<&'a mut [f64; 6]>,
}

/// Per pair: what the tables give, and what follows.
struct Pull {
    t: [f64; CHUNK],
    inverse: [f64; CHUNK],
    /// r phi.
    z: [f64; CHUNK],
    /// d(r phi)/dr.
    dz: [f64; CHUNK],
    /// F'_i f'_j + F'_j f'_i.
    embedding: [f64; CHUNK],
    /// Force over distance.
    pull: [f64; CHUNK],
    phi: [f64; CHUNK],
}

impl Pull {
    fn new() -> Self {
        let zero = [0.0; CHUNK];
        Self { t: zero, inverse: zero, z: zero, dz: zero, embedding: zero, pull: zero, phi: zero }
    }
}

impl<I: Index> WithSimd for Forces<'_, I> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let scene = self.scene;
        let cutoff = scene.potential.cutoff();
        let (mut near, mut pulls) = (Near::new(), Pull::new());
        for i in scene.computed() {
            let row = self.rows.row(i).half(scene.half);
            let mut own = [0.0; 4];
            // A fixed atom has no share in the energy of a pair: a free one takes both.
            let alone = if scene.classes[i] == Class::Free { 1.0 } else { 0.5 };
            // Of the pair, and of the embedding of both atoms, at this end.
            for (part, both, share, embedded) in
                [(row.own, true, 0.5, 1.0), (row.ghosts, false, 0.5, 0.5), (row.fixed, false, alone, 1.0)]
            {
                for candidates in part.chunks(CHUNK) {
                    near.collect(scene.at[i], candidates, scene.at, cutoff * cutoff);
                    self.pull(i, &near, &mut pulls);
                    self.add(&near, &pulls, both, share, &mut own);
                    self.add_virial(&near, &pulls, if both { 1.0 } else { share }, embedded);
                }
            }
            for (sum, part) in self.force[i].iter_mut().zip(own) {
                *sum += part;
            }
        }
    }
}

impl<I> Forces<'_, I> {
    /// Energy and force over distance of each pair.
    #[inline(always)]
    fn pull(&self, i: usize, near: &Near, pulls: &mut Pull) {
        let (potential, per_r) = (self.scene.potential, self.scene.potential.per_r());
        let (species, slope) = (self.scene.species[i], self.slope[i]);
        for k in 0..near.filled() {
            let r = near.r2[k].sqrt();
            pulls.t[k] = r * per_r;
            pulls.inverse[k] = 1.0 / r;
        }
        for k in 0..near.count {
            let j = near.index[k] as usize;
            let other = self.scene.species[j];
            let intervals = potential.intervals(species, other);
            let (m, p) = spline::locate(pulls.t[k], intervals.len());
            let Interval { density, pair } = &intervals[m];
            pulls.z[k] = spline::value(pair, p);
            pulls.dz[k] = spline::slope(pair, p) * per_r;
            let here = spline::slope(density, p) * per_r;
            pulls.embedding[k] = if other == species {
                (slope + self.slope[j]) * here
            } else {
                let there = &potential.intervals(other, species)[m].density;
                slope * here + self.slope[j] * (spline::slope(there, p) * per_r)
            };
        }
        for k in 0..near.filled() {
            let inverse = pulls.inverse[k];
            let phi = pulls.z[k] * inverse;
            let slope = (pulls.dz[k] - phi) * inverse;
            pulls.phi[k] = phi;
            pulls.pull[k] = -(slope + pulls.embedding[k]) * inverse;
        }
    }

    /// Adds the pairs to atom i, and if `both` to the others.
    #[inline(always)]
    fn add(&mut self, near: &Near, pulls: &Pull, both: bool, share: f64, own: &mut [f64; 4]) {
        for k in 0..near.count {
            let (pull, phi) = (pulls.pull[k], pulls.phi[k] * share);
            let f = [near.d[0][k] * pull, near.d[1][k] * pull, near.d[2][k] * pull];
            for (sum, f) in own.iter_mut().zip([f[0], f[1], f[2], phi]) {
                *sum += f;
            }
            if both {
                let other = &mut self.force[near.index[k] as usize];
                for (sum, f) in other.iter_mut().zip([-f[0], -f[1], -f[2], phi]) {
                    *sum += f;
                }
            }
        }
    }

    /// Adds to the virial, if asked, the shares that the energy has in these pairs and in the embedding by them.
    #[inline(always)]
    fn add_virial(&mut self, near: &Near, pulls: &Pull, share: f64, embedded: f64) {
        if let Some(virial) = &mut self.virial {
            for k in 0..near.count {
                let [x, y, z] = [near.d[0][k], near.d[1][k], near.d[2][k]];
                let rest = (embedded - share) * pulls.embedding[k] * pulls.inverse[k];
                let pull = pulls.pull[k] * share - rest;
                for (sum, product) in virial.iter_mut().zip([x * x, y * y, z * z, y * z, x * z, x * y]) {
                    *sum += product * pull;
                }
            }
        }
    }
}
