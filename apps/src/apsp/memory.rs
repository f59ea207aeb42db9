//! What a run needs of memory and disk, and which PE has which blocks: said and checked before it begins.

use crate::division::{self, Blocks, Division, Shortage, Size, Work};
use chares::loadbalance::machines::{Bytes, Machines};
use chares::loadbalance::{Items, PartitionError, placement};
use chares::{Cx, Driver, RunError};
use nix::sys::statvfs::statvfs;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What a run will take.
#[derive(Debug)]
pub(super) struct Plan {
    /// What it is, for people.
    pub(super) what: String,
    /// Bytes on each node.
    pub(super) on_node: u64,
    /// Bytes for each PE besides.
    pub(super) on_pe: u64,
    /// Bytes that the PEs share by their speeds besides.
    pub(super) shared: u64,
    /// Bytes of the launcher.
    pub(super) launcher: u64,
    /// Files, and their bytes.
    pub(super) files: Vec<(PathBuf, u64)>,
    /// Blocks along a side of the array, and the bytes of each; 0 where sources are dealt out while it runs.
    pub(super) blocks: (u32, u64),
}

impl Work for Plan {
    /// The PE of each block.
    type Owners = Vec<u32>;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Vec<u32>>, PartitionError> {
        let (pes, parts) = (machines.pes(), machines.parts(weights));
        let shared = placement::contiguous(&Items::alike(self.shared), &parts)?;
        let memory = pes.iter().map(|pes| {
            let on_pes = self.on_pe.saturating_mul(pes.len() as u64);
            let shared = shared[pes.end as usize] - shared[pes.start as usize];
            self.on_node.saturating_add(on_pes).saturating_add(shared)
        });
        let (groups, block_bytes) = self.blocks;
        // Each round the blocks of the pivot's row go to all nodes of their columns, and the other way round.
        let Blocks { owners, traffic, shares, .. } = division::blocks(groups, machines, weights)?;
        let bytes = traffic.iter().map(|t| Bytes {
            sent: block_bytes as f64 * (t.a_out + t.b_out) as f64,
            received: block_bytes as f64 * (t.a_in + t.b_in) as f64,
        });
        let is_dealt_out = !owners.is_empty();
        Ok(Division {
            weights: weights.to_vec(),
            shares: if is_dealt_out { shares } else { Vec::new() },
            bytes: bytes.collect(),
            memory: memory.collect(),
            owners,
        })
    }

    fn what(&self) -> String {
        self.what.clone()
    }

    fn of_launcher(&self, _: bool) -> u64 {
        self.launcher
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            Shortage::Node => "take a smaller graph, or raise its `memory` in the nodes file",
            Shortage::Host | Shortage::LaunchersHost => "take a smaller graph, or hosts with more memory",
        }
    }
}

/// Divides the work by speed, as far as it fits. States it in the window and in the report.
///
/// # Errors
/// Which node, host or disk has too little room, how much is needed there, and how to mend it.
pub(super) fn divide(main: &mut Driver, plan: &Plan) -> Result<Division<Vec<u32>>, RunError> {
    let machines = main.machines();
    let division = division::divide(plan, machines, machines.speeds())?;
    division.state(main);
    let most = plan.on_node.saturating_add(plan.on_pe);
    let mut sentence = format!("{}: {} here", plan.what, Size(plan.launcher));
    for (share, of) in [(plan.shared, "shared by all nodes"), (most, "on a node of one PE")] {
        if share > 0 {
            sentence += &format!(", {} {of}", Size(share));
        }
    }
    for (path, bytes) in &plan.files {
        sentence += &format!(", {} in {}", Size(*bytes), path.display());
    }
    main.phase(&format!("distributing {sentence}"), 0, 0);
    main.outcome().remark(&format!("planned: {sentence}"));
    fit_on_disks(&plan.files)?;
    Ok(division)
}

fn fit_on_disks(files: &[(PathBuf, u64)]) -> Result<(), RunError> {
    let mut before: BTreeMap<u64, u64> = BTreeMap::new();
    for (path, bytes) in files {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Where the disk does not tell, writing will.
        let (Ok(disk), Ok(known)) = (statvfs(folder), folder.metadata()) else { continue };
        let others = before.entry(known.dev()).or_default();
        let room = free_bytes(disk.blocks_available(), disk.fragment_size()).saturating_sub(*others);
        if *bytes > room {
            let beside = if *others > 0 { " beside the other file" } else { "" };
            return Err(RunError::Output(format!(
                "{} needs {} and its disk has {}{beside}: write --statistics only, or to another disk",
                path.display(),
                Size(*bytes),
                Size(room)
            )));
        }
        *others += bytes;
    }
    Ok(())
}

/// What so many blocks of so many bytes are. Systems of 32 bits count them in 32 bits.
fn free_bytes(blocks: impl Into<u64>, block_bytes: impl Into<u64>) -> u64 {
    blocks.into().saturating_mul(block_bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::Link;

    #[test]
    fn nodes_hold_the_graph_what_each_pe_needs_and_their_share() {
        let (on_node, on_pe, shared) = (100, 10, 1000);
        let (what, files, blocks) = ("a graph".into(), Vec::new(), (4, 8));
        let plan = Plan { what, on_node, on_pe, shared, launcher: 7, files, blocks };
        let link = Link { latency_s: 1e-4, bytes_per_s: 1e9 };
        let machines = Machines::on_one_host(&[&[1.0, 0.5], &[0.5]], link);
        let Division { owners, shares, bytes, memory, .. } = plan.by(&machines, &[1.0, 0.5, 0.5]).unwrap();
        assert_eq!((memory, plan.of_launcher(true)), (vec![100 + 20 + 750, 100 + 10 + 250], 7));
        assert_eq!((owners.len(), shares), (16, vec![0.5, 0.25, 0.25]));
        assert!(bytes[0].sent > 0.0 && bytes[0].sent == bytes[1].received, "{bytes:?}");
        assert!(plan.by(&machines, &[0.0; 3]).is_err());
        let sources = Plan { blocks: (0, 0), ..plan };
        assert!(sources.by(&machines, &[1.0; 3]).unwrap().shares.is_empty(), "nobody knows beforehand");
    }

    #[test]
    fn files_that_their_disk_does_not_hold_together_are_refused() {
        let sentence = |files: &[(PathBuf, u64)]| {
            let error = fit_on_disks(files).unwrap_err();
            assert_eq!(error.exit_code(), 73);
            error.to_string()
        };
        let said = sentence(&[("d.npy".into(), u64::MAX / 2)]);
        assert!(said.contains("d.npy needs 8388608 TiB and its disk has"), "{said}");
        let disk = statvfs(".").unwrap();
        let more_than_half = free_bytes(disk.blocks_available(), disk.fragment_size()) / 5 * 3;
        let said = sentence(&[("d.npy".into(), more_than_half), ("p.npy".into(), more_than_half)]);
        assert!(said.contains("p.npy needs") && said.contains("beside the other file"), "{said}");
        fit_on_disks(&[("d.npy".into(), more_than_half), ("p.npy".into(), 1)]).unwrap();
    }
}
