//! The panel with the newest lines of the program's output, tagged with the node that printed them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::put;
use crate::app::App;

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    if area.height == 0 {
        return;
    }
    let model = app.model();
    let rule = look.pick("─", "-");
    let title = format!("{rule}{rule} output, {} lines ", model.lines.len());
    let rest = usize::from(area.width).saturating_sub(Span::raw(title.as_str()).width());
    put(frame, area, 0, Line::styled(format!("{title}{}", rule.repeat(rest)), look.faint()));
    let room = usize::from(area.height - 1);
    let skipped = model.lines.len().saturating_sub(room);
    for (line, output) in model.lines.iter().skip(skipped).enumerate() {
        let name = match (output.node, model.nodes.get(&output.node)) {
            (0, _) => "launcher".to_owned(),
            (_, Some(node)) => node.name(),
            (number, None) => format!("node{number}"),
        };
        let mark = if output.is_error { "!" } else { " " };
        let style = if output.is_error { look.strong() } else { Style::new() };
        let tag = Span::styled(format!("{mark}[{name}] "), look.accent());
        put(frame, area, line + 1, Line::from(vec![tag, Span::styled(output.text.clone(), style)]));
    }
}
