//! The log screen: warnings and remarks with the age of the run at which they came, the newest at the bottom.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::{put, split};
use crate::app::App;
use crate::figures;
use crate::model::remarks::Weight;

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let remarks = &app.model().remarks;
    // Rows are counted from the newest back.
    let back = app.choice.row.min(remarks.len().saturating_sub(1));
    let title = match back {
        0 => format!(" {}", figures::things(remarks.len(), "remark")),
        _ => format!(" {}, {back} newer ones below", figures::things(remarks.len(), "remark")),
    };
    put(frame, area, 0, Line::styled(title, look.faint()));
    let rest = split(area, 1).1;
    let end = remarks.len() - back;
    let begin = end.saturating_sub(usize::from(rest.height));
    for (line, remark) in remarks.iter().skip(begin).take(end - begin).enumerate() {
        let (mark, style) = match remark.weight {
            Weight::Note => (" ", Style::new()),
            Weight::Warning => ("!", look.core_wait()),
        };
        let at = Span::styled(format!("{mark}{:>9} ", figures::moment(remark.at)), look.faint());
        put(frame, rest, line, Line::from(vec![at, Span::styled(remark.text.clone(), style)]));
    }
}
