//! Whether the work was divided by speeds that machines did not have.

use super::{list, name_of};
use serde_json::Value;

/// A share that is so many times the right one, or the other way round, is wrong.
const WRONG: f64 = 1.25;
/// Where one PE of a node is busy for so many times as long as the mean of its PEs, that PE has too much, and not its node.
const ALIKE: f64 = 1.3;

/// Less than this part of the cores makes no difference to a speed that is measured.
const TAKEN: f64 = 0.05;

/// What a node had of the work, and how long its PEs were busy with it.
struct Done {
    name: String,
    share: f64,
    busy: f64,
}

/// What to say of the node whose share is furthest from what it delivered, if that is far, and the shares of the work are
/// known; `busy` has the node of each PE, and for how many seconds it was busy.
pub(super) fn wrong(report: &Value, busy: &[(&str, f64)]) -> Option<String> {
    let done =
        list(&report["nodes"]).iter().map(|node| of_node(node, busy)).collect::<Option<Vec<Done>>>()?;
    let delivered: f64 = done.iter().map(|node| node.share / node.busy).sum();
    // By these shares all would have been done at the same time.
    let right = |node: &Done| node.share / node.busy / delivered;
    let off = |node: &Done| (node.share / right(node)).ln().abs();
    let worst = done.iter().max_by(|one, other| off(one).total_cmp(&off(other)))?;
    let slowed = list(&report["slowdowns"]).iter().any(|slow| name_of(&slow["node"]) == worst.name);
    // What is no number is not far.
    let is_far = off(worst) > WRONG.ln();
    if slowed || done.len() < 2 || !is_far {
        return None;
    }
    let (begins, why) = why(report);
    Some(format!(
        "{begins}: {} had {:.0}% of the work, and by the rate that it really delivered {:.0}% would be right; {why}",
        worst.name,
        100.0 * worst.share,
        100.0 * right(worst)
    ))
}

/// What is wrong with shares, by where the speeds came from that they are by, and how that comes and what to do.
fn why(report: &Value) -> (&'static str, String) {
    let wrong = "the shares are wrong";
    match report["speed_source"].as_str() {
        Some("equal") => {
            (wrong, "all PEs counted the same: --speed auto divides by what each can do".into())
        }
        Some("file") => {
            (wrong, "the nodes file gives its speed otherwise: mend it there, or say --speed auto".into())
        }
        // To measure again would show the same.
        Some("measured") => {
            let taken = report["speeds_taken"].as_f64().filter(|taken| *taken >= TAKEN);
            let then = taken.map_or_else(
                || "its speed was another one then".into(),
                |taken| format!("others had {:.0}% of the cores then", 100.0 * taken),
            );
            (
                "shares by the speeds that this run has measured did not hold",
                format!("{then}, or its part is another kind of work: --balance auto moves chares while it runs"),
            )
        }
        _ => (
            wrong,
            "its speed was measured otherwise, or its part is another kind of work: --speed measured measures it anew, \
             --balance auto moves chares meanwhile"
                .into(),
        ),
    }
}

/// `None` if the node's share is not known, or its PEs were not busy alike.
fn of_node(node: &Value, busy: &[(&str, f64)]) -> Option<Done> {
    let (name, share) = (name_of(&node["name"]), node["share"].as_f64()?);
    let busy: Vec<f64> = busy.iter().filter(|(node, _)| *node == name).map(|(_, busy)| *busy).collect();
    let mean = busy.iter().sum::<f64>() / busy.len() as f64;
    let most = busy.iter().copied().fold(0.0, f64::max);
    (share > 0.0 && mean > 0.0 && most <= ALIKE * mean).then_some(Done { name, share, busy: mean })
}
