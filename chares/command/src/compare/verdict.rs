//! Which nodes are worth having, in sentences that claim no more than the repeats show.

use super::model::Mix;
use super::spread;
use serde::Serialize;

/// What some nodes bring to a smaller mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Addition {
    /// The nodes that are added.
    pub(super) added: Vec<String>,
    /// To this mix.
    pub(super) to: Vec<String>,
    /// Part of the time that it takes less; below 0 where it takes more.
    pub(super) saved: f64,
    /// Another comparison is expected within this of it.
    pub(super) spread: Option<f64>,
    /// What would be saved if every equivalent worked all the time.
    pub(super) promised: f64,
    pub(super) finding: Finding,
    pub(super) sentence: String,
}

/// What can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Finding {
    Saves,
    Costs,
    /// The difference is within the spread.
    Unclear,
}

/// One for each mix that holds another one: what its other nodes bring to the largest such, the latest of several.
pub(super) fn steps(mixes: &[Mix], is_predicted: bool) -> Vec<Addition> {
    let step = |mix: &Mix| {
        let holds = |other: &&Mix| {
            other.nodes.len() < mix.nodes.len() && other.nodes.iter().all(|node| mix.nodes.contains(node))
        };
        let base = mixes.iter().filter(holds).max_by_key(|other| other.nodes.len())?;
        Some(Addition::between(base, mix, is_predicted))
    };
    mixes.iter().filter_map(step).collect()
}

impl Addition {
    fn between(base: &Mix, mix: &Mix, is_predicted: bool) -> Self {
        let added: Vec<String> =
            mix.nodes.iter().filter(|node| !base.nodes.contains(node)).cloned().collect();
        let ratio = mix.seconds / base.seconds;
        let spread = spread::of_ratio(base.spread, mix.spread).map(|spread| spread * ratio);
        let saved = 1.0 - ratio;
        let promised = 1.0 - base.equivalents / mix.equivalents;
        let finding = match spread {
            Some(spread) if saved.abs() <= spread => Finding::Unclear,
            _ if saved > 0.0 => Finding::Saves,
            _ => Finding::Costs,
        };
        let names = added.join(" and ");
        let within = match spread {
            Some(spread) if is_predicted => format!(", predicted, give or take {}", percent(spread)),
            Some(spread) => format!(", give or take {}", percent(spread)),
            None => ", one run each: how sure that is, only repeats can tell".into(),
        };
        let sentence = match finding {
            Finding::Unclear => {
                let tried = match mix.runs.len().min(base.runs.len()) {
                    _ if is_predicted => "a prediction can tell".to_string(),
                    repeats => format!("{repeats} repeats could show"),
                };
                let change = signed(-saved);
                format!("adding {names} changes nothing that {tried} ({change} of the time{within})")
            }
            Finding::Saves => format!(
                "adding {names} saves {} of the time (its speed promises {}{within})",
                percent(saved),
                percent(promised)
            ),
            Finding::Costs => {
                format!("adding {names} costs {} more time ({})", percent(-saved), &within[2..])
            }
        };
        Self { added, to: base.nodes.clone(), saved, spread, promised, finding, sentence }
    }
}

/// Which nodes are worth having, in one sentence.
pub(super) fn verdict(steps: &[Addition]) -> String {
    let of = |finding: Finding| {
        let steps = steps.iter().filter(move |step| step.finding == finding);
        steps.map(|step| step.added.join(" with ")).collect::<Vec<_>>().join(", ")
    };
    let [worth, costs, unclear] = [Finding::Saves, Finding::Costs, Finding::Unclear].map(of);
    let parts = [("worth having: ", worth), ("costs time: ", costs), ("no difference shown: ", unclear)];
    let said: Vec<String> = parts
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| what.to_string() + &names)
        .collect();
    if said.is_empty() {
        "no mix holds another one, so no node was tried by itself".into()
    } else {
        said.join("; ")
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn signed(part: f64) -> String {
    format!("{:+.1} %", 100.0 * part)
}
