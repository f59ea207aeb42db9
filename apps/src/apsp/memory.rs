//! What a run needs of memory and disk, said and checked before it begins.

use chares::{Cx, Driver, NodeShape, RunError};
use std::fmt;
use std::path::PathBuf;

/// What a process takes besides: stacks, and what connections have under way.
const NODE_RESERVE_BYTES: u64 = 20 << 20;
const PE_RESERVE_BYTES: u64 = 4 << 20;

/// What a run will take.
#[derive(Debug)]
pub(super) struct Plan {
    /// What it is, for people.
    pub(super) what: String,
    /// Bytes on each node.
    pub(super) nodes: Vec<u64>,
    /// Bytes of the launcher.
    pub(super) launcher: u64,
    /// Files, and their bytes.
    pub(super) files: Vec<(PathBuf, u64)>,
}

/// States the plan, in the window and in the report, and refuses what does not fit.
///
/// # Errors
/// Which node, host or disk has too little room, how much is needed there, and how to mend it.
pub(super) fn check(main: &mut Driver, plan: &Plan) -> Result<(), RunError> {
    let most = plan.nodes.iter().copied().max().unwrap_or(0);
    let files: Vec<String> =
        plan.files.iter().map(|(path, bytes)| format!(", {} in {}", Size(*bytes), path.display())).collect();
    let sentence =
        format!("{}: {} a node, {} here{}", plan.what, Size(most), Size(plan.launcher), files.concat());
    main.phase(&format!("distributing {sentence}"), 0, 0);
    main.outcome().remark(&format!("planned: {sentence}"));
    main.outcome().fact("planned_memory_bytes", plan.nodes.clone());
    refuse(plan, main.launcher(), main.nodes()).map_or(Ok(()), |sentence| Err(RunError::Input(sentence)))?;
    let free = |path: &PathBuf| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        nix::sys::statvfs::statvfs(folder.unwrap_or_else(|| std::path::Path::new("."))).ok()
    };
    for (path, bytes) in &plan.files {
        let Some(disk) = free(path) else { continue };
        let room = disk.blocks_available().saturating_mul(disk.fragment_size());
        if *bytes > room {
            return Err(RunError::Input(format!(
                "{} needs {} and its disk has {}: write --statistics only, or take some --sources",
                path.display(),
                Size(*bytes),
                Size(room)
            )));
        }
    }
    Ok(())
}

/// Why the plan does not fit into memory; `None` if it does.
fn refuse(plan: &Plan, launcher: &NodeShape, nodes: &[NodeShape]) -> Option<String> {
    let reserve = |node: &NodeShape| NODE_RESERVE_BYTES + PE_RESERVE_BYTES * node.pes.len() as u64;
    let too_big = |place: String, need: u64, room: u64| {
        let Plan { what, .. } = plan;
        format!(
            "{what} needs {} on {place}, which may take {}: take a smaller graph or more memory",
            Size(need),
            Size(room)
        )
    };
    for (node, &bytes) in nodes.iter().zip(&plan.nodes) {
        let need = bytes.saturating_add(node.memory_bytes).saturating_add(reserve(node));
        if let Some(room) = node.memory_limit_bytes.filter(|&room| need > room) {
            return Some(too_big(format!("node {:?}", node.name), need, room));
        }
    }
    let mut hosts: Vec<&str> = nodes.iter().chain([launcher]).map(|node| node.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.into_iter().find_map(|host| {
        let here = || nodes.iter().zip(&plan.nodes).filter(|(node, _)| node.host == host);
        let own = if launcher.host == host { plan.launcher } else { 0 };
        let need =
            here().fold(own, |sum, (node, &bytes)| sum.saturating_add(bytes).saturating_add(reserve(node)));
        let told = here().map(|(node, _)| node).chain((launcher.host == host).then_some(launcher));
        let room = told.filter_map(|node| node.host_memory_bytes).min()?;
        (need > room).then(|| too_big(format!("host {host:?}"), need, room))
    })
}

/// A size for people.
pub(super) struct Size(pub(super) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.0 as f64 / f64::from(1 << 20);
        match mib {
            0.0..1024.0 => write!(f, "{mib:.1} MiB"),
            1024.0..1_048_576.0 => write!(f, "{:.1} GiB", mib / 1024.0),
            _ => write!(f, "{:.1} TiB", mib / 1_048_576.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let node = |name: &str, host: &str, limit, host_memory| NodeShape {
            name: name.into(),
            host: host.into(),
            pes: 0..1,
            memory_limit_bytes: limit,
            memory_bytes: 0,
            host_memory_bytes: host_memory,
        };
        let gib = 1u64 << 30;
        let plan =
            |nodes: Vec<u64>, launcher| Plan { what: "a graph".into(), nodes, launcher, files: Vec::new() };
        let launcher = node("launcher", "localhost", None, Some(4 * gib));
        let nodes = [
            node("a", "localhost", None, Some(4 * gib)),
            node("b", "far", Some(gib), None),
            node("c", "far", None, None),
        ];
        let said = |plan: &Plan| refuse(plan, &launcher, &nodes).unwrap_or_default();
        assert_eq!(
            said(&plan(vec![gib; 3], gib)),
            "a graph needs 1.0 GiB on node \"b\", which may take 1.0 GiB: take a smaller graph or more memory"
        );
        assert_eq!(said(&plan(vec![gib, gib / 2, 100 * gib], gib)), "");
        assert!(said(&plan(vec![2 * gib, 0, 0], 2 * gib)).contains("4.0 GiB on host \"localhost\""));
        assert_eq!(Size(3 << 40).to_string(), "3.0 TiB");
    }
}
