//! The help screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::put;

const KEYS: [(&str, &str); 14] = [
    ("q", "leave; the run goes on"),
    ("ctrl-C", "end the run"),
    ("Esc, left", "back: close help, detail, filter; Esc then leaves"),
    ("Tab", "switch between PEs and nodes"),
    ("up down k j PgUp PgDn g G", "move"),
    ("Enter, right", "open: the PEs of a node, the detail of a PE"),
    ("+ -  or  ] [", "more / less time per column"),
    ("w", "why PEs do not compute: what each waits for"),
    ("s", "sort by pe, idle, busy, queue, entries"),
    ("/", "filter by node or host name"),
    ("Space", "freeze the picture; recording goes on"),
    ("l", "output of the program"),
    ("?", "this help"),
    ("", ""),
];

/// Keys that mean something else, or more, while a recording is played.
const PLAYER_KEYS: [(&str, &str); 11] = [
    ("q", "leave"),
    ("Space", "pause, go on; at the end begin anew"),
    ("left right", "5 seconds back, on"),
    ("PgUp PgDn  Home End", "a tenth of the recording back, on; start, end"),
    ("< >", "half, twice as fast"),
    ("Tab", "switch between PEs and nodes"),
    ("up down k j ctrl-B ctrl-F", "move"),
    ("Enter", "open: the PEs of a node, the detail of a PE"),
    ("Esc", "back: close help, detail, filter; then leave"),
    ("w  + -  s  /  l  ?", "why, scale, sort, filter, output, this help"),
    ("", ""),
];

const STATES: [&str; 5] = [
    "S: C computing  I idle  N initialising  R runtime  T throttled  X node lost",
    "no core: it has work and waits for a core; throttled: by cpu_share or quota",
    "computation over time: a column's height is the share of computing",
    "idle: share of the PE's life without work; entries: entry methods run",
    "speed: sum over PEs, fastest PE = 1; x0.50: delivers half; data: its share",
];

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, plays: bool, look: Look) {
    let keys = if plays { &PLAYER_KEYS[..] } else { &KEYS[..] };
    for (line, (key, what)) in keys.iter().copied().enumerate() {
        let key = Span::styled(format!(" {key:<26}"), look.accent().patch(look.strong()));
        put(frame, area, line, Line::from(vec![key, Span::raw(what)]));
    }
    for (line, text) in STATES.into_iter().enumerate() {
        put(frame, area, keys.len() + line, Line::styled(format!(" {text}"), look.faint()));
    }
}
