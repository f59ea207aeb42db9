//! The top lines: what runs, since when, how far it is, how strong the metacomputer is and what moves between nodes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::{put, spread};
use crate::app::{App, RECENT};
use crate::figures;
use crate::model::Model;
use crate::model::history::Times;
use crate::model::node::Node;
use runtime::monitor::wire::SavingCost;
use std::time::Duration;

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let model = app.model();
    put(frame, area, 0, title(app, model, look, area.width));
    put(frame, area, 1, progress(model, look, area.width));
    put(frame, area, 2, totals(model, look, area.width));
}

fn title(app: &App, model: &Model, look: Look, width: u16) -> Line<'static> {
    let mut left = vec![Span::styled(format!(" {} ", or(&model.run.program, "metachare")), look.selected())];
    left.push(Span::styled(format!(" {} ", or(&model.run.app, "waiting for the run")), look.strong()));
    left.push(Span::styled(format!(" {} ", model.run.run_id), look.faint()));
    if !model.run.balance.is_empty() {
        let moved = model.run.balanced.iter().fold(0usize, |sum, one| sum.saturating_add(one.moves as usize));
        let text = format!(" {} moved {} ", model.run.balance, figures::things(moved, "chare"));
        left.push(Span::styled(text, look.faint()));
    }
    if let Some(saved) = model.run.saved.filter(|saved| saved.at_s.is_finite()) {
        let age_s = (model.elapsed().as_secs_f64() - saved.at_s).max(0.0);
        let age = figures::clock(Duration::try_from_secs_f64(age_s).unwrap_or_default());
        let cost = model.saving.map_or_else(String::new, |cost| saving(cost, model.elapsed()));
        left.push(Span::styled(
            format!(" saved {age} ago ({}{cost}) ", figures::bytes(saved.bytes as f64)),
            look.faint(),
        ));
    }
    let mut right = Vec::new();
    if model.dropped > 0 {
        right
            .push(Span::styled(format!(" ! {} MISSED ", figures::count(model.dropped as f64)), look.alarm()));
        right.push(Span::raw(" "));
    }
    let is_lost = |node: &&Node| node.loss.is_some() && !node.has_left();
    let lost = model.nodes.values().filter(is_lost).count();
    if lost > 0 {
        right.push(Span::styled(format!(" {lost} LOST "), look.alarm()));
        right.push(Span::raw(" "));
    }
    if model.is_not_saved {
        right.push(Span::styled(" NOT SAVED ", look.alarm()));
        right.push(Span::raw(" "));
    }
    right.push(Span::raw(format!("{}  ", figures::clock(model.elapsed()))));
    right.push(match &model.end {
        _ if app.paused() => Span::styled(" PAUSED ", look.selected()),
        None if model.nodes.is_empty() => Span::styled("waiting ", look.faint()),
        None if app.player.is_some() => Span::styled("replay ", look.accent()),
        None => Span::styled("running ", look.compute()),
        Some(end) if end.code == Some(0) => Span::styled("ended ", look.strong()),
        Some(_) => Span::styled(" FAILED ", look.alarm()),
    });
    // What is wrong is worth more room than the name of the run.
    let rights: usize = right.iter().map(Span::width).sum();
    while left.len() > 1 && left.iter().map(Span::width).sum::<usize>() + rights >= usize::from(width) {
        left.pop();
    }
    if left[0].width() + rights >= usize::from(width) {
        return Line::from(right);
    }
    spread(left, right, width)
}

/// How long the last checkpoint took, and for which part of the run checkpoints were taken.
fn saving(SavingCost { last_s, all_s }: SavingCost, elapsed: Duration) -> String {
    let part = all_s / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    format!(" in {}, {} of the run", figures::time((last_s * 1e9) as u64, "us"), figures::percent(part))
}

/// The node that delivers least of its speed, and how many others deliver less than theirs.
pub(crate) fn draw_slowdown(frame: &mut Frame<'_>, area: Rect, model: &Model, look: Look) {
    let slowdowns = model.slowdowns();
    let Some(first) = slowdowns.first() else { return };
    let name = model.nodes.get(&first.node).map_or_else(|| format!("node{}", first.node), Node::name);
    let others = slowdowns.len() - 1;
    let others = if others > 0 { format!(" (and {others} more)") } else { String::new() };
    put(frame, area, 0, Line::styled(format!(" {}{others} ", first.sentence(&name)), look.alarm()));
}

/// Cells that a bar needs to say anything.
const BAR_MIN: usize = 5;

/// What the application does, e.g. `column 412 of 2048`, a bar, and the time that it may still take.
fn progress(model: &Model, look: Look, width: u16) -> Line<'static> {
    let Some(progress) = &model.progress else {
        let text = model.run.arguments.join(" ");
        return Line::styled(
            format!(" {}", figures::fit(&text, usize::from(width.saturating_sub(2)))),
            look.faint(),
        );
    };
    let phase = &progress.phase;
    let name = Span::styled(format!(" {} ", phase.name), look.strong());
    let done = figures::count(phase.done as f64);
    if phase.total == 0 {
        let done = if phase.done == 0 { String::new() } else { format!("{done} done ") };
        return Line::from(vec![name, Span::raw(done), Span::styled(phase.detail.clone(), look.faint())]);
    }
    let share = (phase.done as f64 / phase.total as f64).min(1.0);
    let mut line = Line::from(name);
    let about = if phase.is_forecast { "~" } else { "" };
    line.push_span(Span::raw(format!("{done} of {about}{} ", figures::count(phase.total as f64))));
    let rest = if model.end.is_none() {
        progress.remaining(model.now).map_or(String::new(), |left| format!("  {left}"))
    } else {
        String::new()
    };
    let text = format!(" {}{rest} ", figures::percent(share));
    let detail = Span::styled(format!("{} ", phase.detail), look.faint());
    if !phase.detail.is_empty() && line.width() + detail.width() + BAR_MIN + text.len() <= usize::from(width)
    {
        line.push_span(detail);
    }
    let room = usize::from(width).saturating_sub(line.width() + text.len());
    line.extend(look.bar(share, room, look.accent()));
    line.push_span(Span::raw(text));
    line
}

fn totals(model: &Model, look: Look, width: u16) -> Line<'static> {
    let edge = model.edge();
    let recent = model
        .nodes
        .values()
        .filter(|node| node.loss.is_none())
        .fold(Times::default(), |sum, node| sum.plus(node.between(edge - RECENT, edge)));
    let busy = recent.share(recent.working());
    let (messages, bytes) = model.traffic();
    // A narrow window has no room for all the words, but for the bar.
    let (fastest, between) =
        if width >= 110 { (" the fastest node", " between nodes") } else { (" fastest", "") };
    let there = || model.nodes.values().filter(|node| !node.has_left());
    let pes = figures::things(there().map(|node| node.pes.len()).sum(), "PE");
    let nodes = figures::things(there().count(), "node");
    let mut left = vec![Span::raw(format!(" {pes} on {nodes}  "))];
    left.push(match model.equivalents() {
        Some(sum) => Span::styled(format!("{sum:.2}x{fastest}  "), look.accent()),
        None => Span::styled("speeds not measured yet  ", look.faint()),
    });
    left.push(Span::raw(format!("{} msg/s  {}/s{between}", figures::count(messages), figures::bytes(bytes))));
    let mut right = vec![Span::raw(" busy ")];
    let taken: usize = left.iter().map(Span::width).sum::<usize>() + 12;
    right.extend(look.bar(busy, usize::from(width).saturating_sub(taken).min(30), look.compute()));
    right.push(Span::raw(format!("{:>5}", figures::percent(busy))));
    spread(left, right, width)
}

fn or(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise.into() } else { text.into() }
}
