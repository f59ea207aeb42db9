//! What a run needs of memory and disk, said and checked before it begins.

use crate::memory::{self, Lack, Need, Size};
use chares::loadbalance::{Part, PartitionError, PartitionOptions, data_partition};
use chares::{Cx, Driver, NodeShape, RunError};
use nix::sys::statvfs::statvfs;
use std::collections::BTreeMap;
use std::fmt;
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
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Need for Plan {
    fn of_nodes(&self, nodes: &[NodeShape], speeds: &[f64]) -> Result<Vec<u64>, PartitionError> {
        let parts: Vec<Part> = speeds.iter().copied().map(Part::new).collect();
        let shares = data_partition(self.shared, &parts, &PartitionOptions::default())?;
        let of_node = |node: &NodeShape| {
            let (first, last) = (node.pes.start as usize, node.pes.end as usize);
            let shared: u64 = shares[first..last].iter().map(|share| share.end - share.start).sum();
            let on_pes = self.on_pe.saturating_mul(node.pes.len() as u64);
            self.on_node.saturating_add(on_pes).saturating_add(shared)
        };
        Ok(nodes.iter().map(of_node).collect())
    }

    fn of_launcher(&self, _: bool) -> u64 {
        self.launcher
    }

    fn mend(&self, place: Lack) -> &'static str {
        match place {
            Lack::Node => "take a smaller graph, or raise its `memory` in the nodes file",
            Lack::Host | Lack::LaunchersHost => "take a smaller graph, or hosts with more memory",
        }
    }
}

/// States the plan, in the window and in the report, and refuses what does not fit.
///
/// # Errors
/// Which node, host or disk has too little room, how much is needed there, and how to mend it.
pub(super) fn check(main: &mut Driver, plan: &Plan) -> Result<(), RunError> {
    memory::check(main, plan)?;
    let most = plan.on_node.saturating_add(plan.on_pe);
    let mut sentence = format!("{plan}: {} here", Size(plan.launcher));
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
    fit_on_disks(&plan.files)
}

fn fit_on_disks(files: &[(PathBuf, u64)]) -> Result<(), RunError> {
    let mut before: BTreeMap<u64, u64> = BTreeMap::new();
    for (path, bytes) in files {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Where the disk does not tell, writing will.
        let (Ok(disk), Ok(known)) = (statvfs(folder), folder.metadata()) else { continue };
        let others = before.entry(known.dev()).or_default();
        let room = disk.blocks_available().saturating_mul(disk.fragment_size()).saturating_sub(*others);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_hold_the_graph_what_each_pe_needs_and_their_share() {
        let (on_node, on_pe, shared) = (100, 10, 1000);
        let plan = Plan { what: "a graph".into(), on_node, on_pe, shared, launcher: 7, files: Vec::new() };
        let node = |pes| NodeShape { pes, ..NodeShape::default() };
        let needs = plan.of_nodes(&[node(0..2), node(2..3)], &[1.0, 0.5, 0.5]).unwrap();
        assert_eq!((needs, plan.of_launcher(true)), (vec![100 + 20 + 750, 100 + 10 + 250], 7));
        assert!(plan.of_nodes(&[node(0..1)], &[0.0]).is_err());
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
        let more_than_half = disk.blocks_available() * disk.fragment_size() / 5 * 3;
        let said = sentence(&[("d.npy".into(), more_than_half), ("p.npy".into(), more_than_half)]);
        assert!(said.contains("p.npy needs") && said.contains("beside the other file"), "{said}");
        fit_on_disks(&[("d.npy".into(), more_than_half), ("p.npy".into(), 1)]).unwrap();
    }
}
