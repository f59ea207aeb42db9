//! Nodes that leave and join while a run goes on, as viewers hear of it.

use super::options::SpeedSource;
use super::speeds;
use crate::app::AppKernel;
use chares::{Driver, Joining};
use runtime::config::ClusterConfig;
use runtime::monitor::hub::Hub;
use runtime::monitor::wire::{LeftAt, MonitorEvent};
use std::sync::Arc;
use std::time::Duration;

/// For how long the speed of a node that joins is measured, while the others work. Balancers follow what it delivers then.
const MEASURING: Duration = Duration::from_millis(500);

/// Has nodes known by their names, and viewers told when one leaves.
pub(crate) fn tell_who_leaves(main: &mut Driver, hub: &Arc<Hub>, is_quiet: bool) {
    main.name_nodes(hub.info().nodes.into_iter().map(|node| (node.node, node.name)));
    let viewers = Arc::clone(hub);
    main.on_left(move |drained| {
        let left = LeftAt { at_s: viewers.now().as_secs_f64(), how: drained.whereto() };
        viewers.describe(|info| {
            info.nodes
                .iter_mut()
                .filter(|node| node.node == drained.node)
                .for_each(|node| node.left = Some(left.clone()));
        });
        viewers.publish(MonitorEvent::Snapshot(drained.last.clone()));
        if !is_quiet {
            viewers.note(drained.to_string());
        }
    });
}

/// Lets nodes join, if somebody gives them something to do, and has viewers told of them.
pub(crate) fn let_nodes_join(
    main: &mut Driver,
    hub: &Arc<Hub>,
    (source, kernel, config): (SpeedSource, &AppKernel, &ClusterConfig),
    is_quiet: bool,
) {
    if hub.info().balance.is_empty() {
        return;
    }
    let viewers = Arc::clone(hub);
    let measured_with = kernel.number.map(|number| (number, kernel.arguments.clone()));
    main.let_nodes_join(Joining {
        kernel: measured_with.filter(|_| source.is_measured()),
        budget: MEASURING,
        declared_unit: (source == SpeedSource::File).then(|| speeds::fastest_declared(config)),
        tell: Box::new(move |joined| {
            let mut new = joined.info.clone();
            new.joined_s = Some(viewers.now().as_secs_f64());
            viewers.describe(|info| {
                info.nodes.push(new);
                for node in &mut info.nodes {
                    node.pe_speeds = joined.speeds.get(node.pes()).map(<[f64]>::to_vec).unwrap_or_default();
                }
            });
            if !is_quiet {
                viewers.note(joined.to_string());
            }
        }),
    });
}
