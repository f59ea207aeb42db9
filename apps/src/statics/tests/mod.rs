//! The physics against reference numbers, and properties that hold for any crystal.

mod aberrations;
mod boxes;
mod defects;
pub(super) mod faults;
mod golden;
mod lists;
mod properties;
mod studies;

use super::block::Block;
use super::crystal::lattice::{Kind, Lattice};
use super::crystal::oriented::AS_IT_IS;
use super::crystal::{Crystal, Side};
use super::partition::Partition;
use super::potential::analytic::{Model, built_in};
use super::potential::{Format, Potential};
use super::serial::System;
use std::path::{Path, PathBuf};

/// Where Debian's `lammps-data` puts the potentials.
const POTENTIALS: &str = "/usr/share/lammps/potentials";

/// A potential of Debian's `lammps-data`; none, with the reason printed, where that is not installed. Where `CI` is set
/// it has to be.
fn installed(files: &[&str], names: &[&str]) -> Option<Potential> {
    let files: Vec<PathBuf> = files.iter().map(|file| Path::new(POTENTIALS).join(file)).collect();
    if !Path::new(POTENTIALS).exists() && std::env::var_os("CI").is_none() {
        eprintln!("skipped: {POTENTIALS} is not there (apt-get install lammps-data)");
        return None;
    }
    let format = Format::of_name(&files[0]).unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    Some(Potential::read(&files, format, &names).unwrap())
}

fn mishin() -> Option<Potential> {
    installed(&["Cu_mishin1.eam.alloy"], &["Cu"])
}

/// Two elements, A and B, both of which are built-in copper: what is known of copper is known of their compounds.
pub(super) fn twice_copper() -> Potential {
    let copper = built_in(Model::SuttonChen, "Cu").unwrap();
    let (points, most, nearest) = (3000, 40.0, 1.0);
    let table =
        |value: &dyn Fn(f64) -> f64| (0..points).map(|n| format!("{:e}\n", value(f64::from(n)))).collect();
    let d_r = copper.cutoff() / f64::from(points - 1);
    let at = |n: f64| copper.pair(0, 0, (n * d_r).max(nearest));
    let embedding: String = table(&|n| copper.embed(0, n * most / f64::from(points)).0);
    let density: String = table(&|n| at(n).0);
    let pair: String = table(&|n| n * d_r * at(n).1);
    let element = format!("29 63.5 3.6 fcc\n{embedding}{density}");
    let grid = format!("{points} {:e} {points} {d_r:e} {:e}", most / f64::from(points), copper.cutoff());
    let file = tempfile::Builder::new().suffix(".setfl").tempfile().unwrap();
    let text = format!("a\nb\nc\n2 A B\n{grid}\n{element}{element}{pair}{pair}{pair}");
    std::fs::write(file.path(), text).unwrap();
    Potential::read(&[file.path().into()], Format::Setfl, &["A", "B"].map(str::to_owned)).unwrap()
}

const PERIODIC: [Side; 3] = [Side::Periodic; 3];

fn crystal(kind: Kind, a: f64, cells: [usize; 3], sides: [Side; 3]) -> Crystal {
    Crystal::new(&Lattice::named(kind, a, None).unwrap(), &AS_IT_IS, cells, sides).unwrap()
}

fn system(potential: &Potential, crystal: &Crystal, blocks: [usize; 3]) -> System {
    let partition = Partition::with_blocks(crystal, blocks).unwrap();
    let blocks = (0..partition.len()).map(|block| Block::new(partition.atoms(crystal, block)));
    System::new(potential.clone(), crystal.bounds(), blocks.collect(), 0.5)
}

/// Moves every atom by up to `size` A, in a way that depends on its id only.
fn shake(system: &mut System, size: f64) {
    for block in system.blocks_mut() {
        for own in 0..block.own() {
            let i = (block.ids[own] + 1) as f64;
            let by = [i + 0.3, 1.7 * i + 0.9, 2.3 * i + 1.7].map(|phase| size * phase.sin());
            for (x, by) in block.at[own].iter_mut().zip(by) {
                *x += by;
            }
        }
    }
    system.rebuild();
}

/// Force on each atom, by id.
fn forces(system: &System) -> Vec<[f64; 3]> {
    let mut forces: Vec<(u64, [f64; 3])> = Vec::new();
    for block in system.blocks() {
        forces.extend(block.ids.iter().zip(&block.force).map(|(&id, f)| (id, [f[0], f[1], f[2]])));
    }
    forces.sort_unstable_by_key(|(id, _)| *id);
    forces.into_iter().map(|(_, force)| force).collect()
}
