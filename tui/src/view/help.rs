//! The help screen: what the columns of the present screen mean, and all keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::put;
use crate::app::App;
use crate::screen::Screen;

const KEYS: [(&str, &str); 15] = [
    ("1-7, or w e t c m", "screens: load, why, entries, traffic, work, log, maps"),
    ("q", "leave; the run goes on"),
    ("ctrl-C", "end the run"),
    ("Esc, left", "back: help, detail, screen, filter; then Esc leaves"),
    ("Tab", "switch: PEs, nodes and, of 17 or more, their map"),
    ("up down k j PgUp PgDn g G", "move, also in this help"),
    ("Enter, right", "open: the PEs of a node, the detail of a PE"),
    ("+ -  or  ] [", "more / less time per column"),
    ("s", "sort by pe, idle, busy, queue, entries; traffic: unit"),
    ("/", "filter by node or host name"),
    ("Space", "freeze the picture; recording goes on"),
    ("l", "output of the program"),
    ("r", "at the end: all of what the run came to"),
    ("mouse", "wheel: move; click: a screen below, a line, again: open it"),
    ("?", "this help"),
];

/// Keys that mean something else, or more, while a recording is played.
const PLAYER_KEYS: [(&str, &str); 12] = [
    ("1-7, or w e t c m", "screens: load, why, entries, traffic, work, log, maps"),
    ("q", "leave"),
    ("Space", "pause, go on; at the end begin anew"),
    ("left right", "5 seconds back, on"),
    ("PgUp PgDn  Home End", "a tenth of the recording back, on; start, end"),
    ("< >", "half, twice as fast"),
    ("Tab", "switch: PEs, nodes and, of 17 or more, their map"),
    ("up down k j ctrl-B ctrl-F", "move, also in this help"),
    ("Enter", "open: the PEs of a node, the detail of a PE"),
    ("Esc", "back: help, detail, screen, filter; then leave"),
    ("mouse", "wheel: move; click: a screen below, a line, again: open it"),
    ("+  -  s  /  l  r  ?", "scale, sort, filter, output, result, this help"),
];

/// What stands in the columns of a screen.
fn columns(screen: Screen) -> &'static [&'static str] {
    match screen {
        Screen::Load => &[
            "S: C computing  I idle  N init  R runtime  T throttled  X node lost  - has left",
            "no core: it has work and waits for a core; throttled: by cpu_share or quota",
            "over time: a column's height is the share of computing; init: before init_over",
            "idle: share of the PE's life without work; entries: entry methods run",
            "queue, q: messages (bytes) that wait; entry method: it runs now, or ran last",
            "speed: sum over PEs, fastest PE = 1; x0.50: delivers half; data: its share",
            "↑ ↓: messages/s and bytes/s to other nodes, from them; mem: taken/its limit",
            "map: the last 2 s of each PE, or of nodes; 1-9: tenths of them computing, # all",
        ],
        Screen::Why => &[
            "parts of the last 5 s: comp computing, runt in the runtime, core waiting for",
            "  a core, thro stopped by cpu_share or a quota, idle without a message, netw",
            "  the same while the message that ended it was on its way from another node",
            "queue: messages that wait; waits for: what would let it compute; of messages",
            "  those that most of its waiting ended with; a narrow window has fewer parts",
            "all wait for: the chain of entry methods and messages behind what ran last",
            "  (critical path), by what its time went to; who is not on it delays nobody",
            "network: how long messages are on their way, if that is what all wait for",
            "below: each host's cores, how many of them others use, and their clock",
        ],
        Screen::Entries => &[
            "calls, time: since the start, by the clock on the wall; part: of all time;",
            "  where calls are shorter than some microseconds some stand for the others",
            "mean, slowest: of a call; PE, at, element: of the slowest one",
            "slowest calls: of each node those that it told of as the slowest of their kind,",
            "  and followed ones, whose element is not known (?)",
            "below: what runs on each PE now, and for how long",
        ],
        Screen::Traffic => &[
            "each line is a sender, each column a receiver; * half of the busiest or more",
            "s changes what is counted: bytes/s, msg/s (last 2 s), bytes, messages in all",
            "where numbers do not fit: a shade for each receiver; below: busiest links",
            "on way: from sending to what it starts where a PE waits; mean of both ways",
        ],
        Screen::Work => &[
            "chares: that live there; busy: part of the last 2 s in which it worked",
            "came, went: chares that moved; of types: how many of each type",
            "heaviest chares: processor time as a part of their PE's time; only measured",
            "  where somebody balances (--balance)",
            "below: decisions; imbalance: longest time of a PE over the ideal one, 1 best",
        ],
        Screen::Log => &[
            "times are the age of the run; ! is a warning; the newest is at the bottom",
            "slow nodes, lost nodes, decisions, checkpoints, phases, standard error",
        ],
        Screen::Maps => &[
            "what the program shows of itself: numbers over a plane, as they were last",
            "above each: its least value, the marks from that to its greatest, and this",
            "left and below: what its axes are, and where they begin and end",
        ],
    }
}

/// How many lines there are.
pub(crate) fn lines(app: &App) -> usize {
    keys(app).len() + 1 + columns(app.choice.screen).len()
}

fn keys(app: &App) -> &'static [(&'static str, &'static str)] {
    if app.player.is_some() { &PLAYER_KEYS } else { &KEYS }
}

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let screen = app.choice.screen;
    let title = Line::styled(format!(" {}: ", screen.name()), look.strong());
    let columns = columns(screen).iter().map(|text| {
        let text = if look.unicode { (*text).to_owned() } else { text.replace("↑ ↓", "out, in") };
        Line::raw(format!(" {text}"))
    });
    let key = |(key, what): &(&'static str, &'static str)| {
        let key = Span::styled(format!(" {key:<26}"), look.accent().patch(look.strong()));
        Line::from(vec![key, Span::raw(*what)])
    };
    let lines = std::iter::once(title).chain(columns).chain(keys(app).iter().map(key));
    for (number, line) in lines.skip(app.choice.help_from).enumerate() {
        put(frame, area, number, line);
    }
}
