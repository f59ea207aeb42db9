//! A comparison as text: for a terminal of 80 columns, as Markdown and as CSV.

use super::model::{Comparison, Mix, Model};
use crate::report::fitting;
use std::fmt::Write as _;

/// Columns of a mix's name.
const LABEL: usize = 16;
/// Columns of the longest bar.
const BAR: f64 = 40.0;

impl Comparison {
    /// For a terminal: both tables, the chart, and what follows from them.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("{}\n\n", self.subject());
        let predicts = self.mixes.iter().any(|mix| mix.predicted.is_some());
        let _ = write!(
            out,
            "{:<LABEL$} {:>6} {:>9} {:>6} {:>7} {:>6} {:>6}",
            "mix", "equiv.", "seconds", "+-", "speedup", "effic.", "+-"
        );
        out += if predicts { "  predicted  error\n" } else { "\n" };
        for (mix, label) in self.mixes.iter().zip(self.labels()) {
            let _ = write!(
                out,
                "{label:<LABEL$.LABEL$} {:>6} {:>9} {:>6} {:>7} {:>6} {:>6}",
                fitting(mix.equivalents, 2, 6),
                fitting(mix.seconds, 2, 9),
                or_gap(mix.spread.map(|spread| self.spread_of_seconds(spread * mix.seconds))),
                fitting(mix.speedup, 2, 7),
                fitting(mix.efficiency, 3, 6),
                or_gap(mix.efficiency_spread.map(|spread| fitting(spread * mix.efficiency, 3, 6))),
            );
            if let Some(predicted) = &mix.predicted {
                let error = format!("{:+.0}%", 100.0 * predicted.error);
                let _ = write!(out, "  {:>9} {error:>6}", fitting(predicted.seconds, 2, 9));
            }
            out.push('\n');
        }
        out += "\nwhere the time went, in % of the PEs' time by speed, beyond what the reference needs\n";
        let _ = writeln!(
            out,
            "{:<LABEL$} {:>6} {:>6} {:>9} {:>10} {:>8} {:>6}",
            "mix", "lost", "idle", "overhead", "imbalance", "compute", "other"
        );
        for (mix, label) in self.mixes.iter().zip(self.labels()) {
            let lost = mix.lost;
            let [all, idle, overhead, imbalance, compute, other] =
                [lost.sum(), lost.idle, lost.overhead, lost.imbalance, lost.compute, lost.other].map(tenths);
            let _ = writeln!(
                out,
                "{label:<LABEL$.LABEL$} {all:>6} {idle:>6} {overhead:>9} {imbalance:>10} {compute:>8} {other:>6}"
            );
        }
        out.push('\n');
        out += &self.chart();
        out.push('\n');
        out += &self.words().iter().map(|sentence| format!("{sentence}\n")).collect::<String>();
        out
    }

    fn spread_of_seconds(&self, spread_s: f64) -> String {
        if self.is_guess { "guess".into() } else { fitting(spread_s, 2, 6) }
    }

    /// Speedup of each mix: what is reached of its equivalents.
    fn chart(&self) -> String {
        let longest = self.mixes.iter().map(|mix| mix.equivalents.max(mix.speedup)).fold(1.0, f64::max);
        let columns = |value: f64| (value / longest * BAR).round().max(0.0) as usize;
        let bar = |(mix, label): (&Mix, String)| {
            let reached = columns(mix.speedup);
            let missing = columns(mix.equivalents).saturating_sub(reached);
            format!(
                "{label:<LABEL$.LABEL$} {}{} {:.2} of {:.2}\n",
                "#".repeat(reached),
                ".".repeat(missing),
                mix.speedup,
                mix.equivalents
            )
        };
        let bars: String = self.mixes.iter().zip(self.labels()).map(bar).collect();
        format!("speedup over {} alone (#), of the mix's equivalents (.)\n{bars}", self.reference.node)
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut out = format!(
            "{}\n\n| mix | equivalents | seconds | speedup | mixed-node efficiency | idle | overhead | \
             imbalance | compute | other | predicted |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            self.subject()
        );
        for mix in &self.mixes {
            let Mix { lost, spread, efficiency, .. } = mix;
            let around = |value: f64, spread: Option<f64>, decimals: usize| {
                let around = spread.map(|spread| format!(" ± {:.decimals$}", spread * value));
                format!("{value:.decimals$}{}", around.unwrap_or_default())
            };
            let predicted = mix.predicted.as_ref();
            let predicted = predicted.map(|p| format!("{:.2} s ({:+.0} %)", p.seconds, 100.0 * p.error));
            let _ = writeln!(
                out,
                "| {} | {:.2} | {} | {:.2} | {} | {} % | {} % | {} % | {} % | {} % | {} |",
                mix.nodes.join(", ").replace('|', "\\|"),
                mix.equivalents,
                around(mix.seconds, *spread, 2),
                mix.speedup,
                around(*efficiency, mix.efficiency_spread, 3),
                tenths(lost.idle),
                tenths(lost.overhead),
                tenths(lost.imbalance),
                tenths(lost.compute),
                tenths(lost.other),
                or_gap(predicted),
            );
        }
        out.push('\n');
        out += &self.words().iter().map(|sentence| format!("- {sentence}\n")).collect::<String>();
        out
    }

    /// As CSV: one row for each mix, numbers in full.
    pub(crate) fn csv(&self) -> String {
        let mut out = "mix,pes,equivalents,runs,seconds,spread,speedup,efficiency,efficiency_spread,idle,\
                       overhead,imbalance,compute,other,predicted_s,prediction_error\n"
            .to_string();
        for mix in &self.mixes {
            let predicted = mix.predicted.as_ref();
            let Mix { lost, .. } = mix;
            let numbers = [
                Some(mix.pes as f64),
                Some(mix.equivalents),
                Some(mix.runs.len() as f64),
                Some(mix.seconds),
                mix.spread,
                Some(mix.speedup),
                Some(mix.efficiency),
                mix.efficiency_spread,
                Some(lost.idle),
                Some(lost.overhead),
                Some(lost.imbalance),
                Some(lost.compute),
                Some(lost.other),
                predicted.map(|p| p.seconds),
                predicted.map(|p| p.error),
            ];
            let numbers: Vec<String> = numbers
                .into_iter()
                .map(|number| number.map_or_else(String::new, |n| n.to_string()))
                .collect();
            let _ = writeln!(out, "{},{}", quoted(&mix.nodes.join(" ")), numbers.join(","));
        }
        out
    }

    /// What was done.
    fn subject(&self) -> String {
        let runs = || self.mixes.iter().map(|mix| mix.runs.len());
        let (least, most) = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
        let runs = if least == most { count(most, "run", "runs") } else { format!("{least} to {most} runs") };
        let (mixes, nodes) =
            (count(self.mixes.len(), "mix", "mixes"), count(self.nodes.len(), "node", "nodes"));
        let commit = self.commit.get(..10).unwrap_or(&self.commit);
        let Self { app, program, version, .. } = self;
        let how = if self.is_predicted { "predicted, not run".into() } else { format!("{runs} each") };
        format!("{app} of {program} {version} ({commit}) on {mixes} of {nodes}, {how}")
    }

    /// What follows, sentence by sentence.
    fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.steps.iter().map(|step| step.sentence.clone()).collect();
        words.push(self.verdict.clone());
        if let Some(model) = &self.model {
            let errors = self.mixes.iter().filter_map(|mix| mix.predicted.as_ref());
            let worst = errors.map(|predicted| predicted.error.abs()).reduce(f64::max);
            let worst = worst.map(|worst| format!("off by at most {:.0} %; ", 100.0 * worst));
            let Model { statement, network } = model;
            words.push(format!("prediction: {}{statement}; {network}", worst.unwrap_or_default()));
        }
        if !self.reference.is_measured {
            let (node, seconds) = (&self.reference.node, self.reference.seconds);
            words.push(format!(
                "no run is of {node} alone, the fastest node: its {seconds:.2} s are reckoned from its measured rate"
            ));
        }
        if self.is_guess {
            let seconds = "how much work this is is a guess, so all seconds may be several times as many";
            words.push(format!("{seconds}; what mixes are to each other holds all the same"));
        }
        if let Some(spread) = self.mixes.iter().filter_map(|mix| mix.spread).reduce(f64::max) {
            let percent = 100.0 * spread;
            words.push(if self.is_guess {
                format!("+-: how far predictions were that rested on no guess, {percent:.1} % of the seconds")
            } else if self.is_predicted {
                format!("+-: how far predictions were from what was measured, {percent:.1} % of the seconds")
            } else {
                format!(
                    "+-: where another such comparison is expected with 95 % certainty, here within {percent:.1} %"
                )
            });
        }
        words.extend(self.warnings.iter().map(|warning| format!("beware: {warning}")));
        words
    }

    /// Short names of the mixes: one that goes on from the row above says only what it adds.
    fn labels(&self) -> Vec<String> {
        let above = std::iter::once(None).chain(self.mixes.iter().map(Some));
        let label = |(above, mix): (Option<&Mix>, &Mix)| {
            let goes_on = above.is_some_and(|above| above.nodes.iter().all(|node| mix.nodes.contains(node)));
            let is_new = |node: &&String| !goes_on || above.is_none_or(|above| !above.nodes.contains(*node));
            let names: Vec<&str> = mix.nodes.iter().filter(is_new).map(String::as_str).collect();
            format!("{}{}", if goes_on { "+ " } else { "" }, names.join(","))
        };
        above.zip(&self.mixes).map(label).collect()
    }
}

/// A part of 1 in per cent, and never minus nothing.
fn tenths(part: f64) -> String {
    let text = format!("{:.1}", 100.0 * part);
    if text == "-0.0" { "0.0".into() } else { text }
}

fn or_gap(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// A field of CSV.
fn quoted(text: &str) -> String {
    let needs = text.contains([',', '"', '\n', '\r']);
    if needs { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}
