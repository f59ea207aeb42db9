//! What a run needs of memory and disk, said and checked before it begins.

use crate::memory::{self, Lack, Need, Size};
use chares::loadbalance::{Part, PartitionError, PartitionOptions, data_partition};
use chares::{Cx, Driver, NodeShape, RunError};
use std::fmt;
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
    plan.files.iter().try_for_each(|(path, bytes)| fits_on_disk(path, *bytes))
}

fn fits_on_disk(path: &Path, bytes: u64) -> Result<(), RunError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Where the disk does not tell, writing will.
    let Ok(disk) = nix::sys::statvfs::statvfs(folder) else { return Ok(()) };
    let room = disk.blocks_available().saturating_mul(disk.fragment_size());
    if bytes <= room {
        return Ok(());
    }
    Err(RunError::Output(format!(
        "{} needs {} and its disk has {}: write --statistics only, or to another disk",
        path.display(),
        Size(bytes),
        Size(room)
    )))
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
    fn a_file_that_no_disk_holds_is_refused() {
        let error = fits_on_disk(Path::new("d.npy"), u64::MAX / 2).unwrap_err();
        let (code, sentence) = (error.exit_code(), error.to_string());
        assert!(code == 73 && sentence.contains("d.npy needs 8388608.0 TiB and its disk has"), "{sentence}");
        fits_on_disk(Path::new("d.npy"), 1).unwrap();
    }
}
