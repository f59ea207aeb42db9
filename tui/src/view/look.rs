//! Characters and colours: bars, the glyphs of the computation strip and the styles, with and without Unicode.
//! Every state has its own character as well as its own colour.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use runtime::monitor::wire::PeState;

use crate::WindowOptions;
use crate::figures;
use crate::model::history::Times;
use crate::palette::{self, Colors, Meaning};

const EIGHTHS_UP: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const EIGHTHS_RIGHT: [&str; 8] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
/// From nothing to much, by how dark a character is.
const DENSER: [&str; 10] = [" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"];
const TENTHS: [&str; 10] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "#"];

#[derive(Clone, Copy)]
pub(crate) struct Look {
    colors: Colors,
    pub(crate) unicode: bool,
    /// Whether initialising looks different from computing.
    has_init: bool,
}

impl Look {
    pub(crate) fn new(options: &WindowOptions) -> Self {
        Self { colors: options.colors, unicode: options.unicode, has_init: true }
    }

    /// The same for a program of which it is known whether it has said that its initialisation is over.
    pub(crate) fn of_program(self, is_init_over: bool) -> Self {
        Self { has_init: is_init_over, ..self }
    }

    /// Times as they are shown.
    pub(crate) fn told(self, times: Times) -> Times {
        if self.has_init { times } else { Times { compute: times.working(), init: 0, ..times } }
    }

    pub(crate) fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }

    fn colored(self, meaning: Meaning) -> Style {
        meaning.color(self.colors).map_or(Style::new(), |color| Style::new().fg(color))
    }

    pub(crate) fn compute(self) -> Style {
        self.colored(Meaning::Compute)
    }

    pub(crate) fn idle(self) -> Style {
        self.colored(Meaning::Idle)
    }

    pub(crate) fn init(self) -> Style {
        self.colored(Meaning::Init)
    }

    pub(crate) fn overhead(self) -> Style {
        self.colored(Meaning::Overhead)
    }

    pub(crate) fn core_wait(self) -> Style {
        self.colored(Meaning::CoreWait)
    }

    pub(crate) fn throttled(self) -> Style {
        self.colored(Meaning::Throttled)
    }

    pub(crate) fn accent(self) -> Style {
        self.colored(Meaning::Accent)
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn faint(self) -> Style {
        self.colored(Meaning::Faint)
    }

    /// For what must not be overlooked.
    pub(crate) fn alarm(self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.colors != Colors::None {
            style.fg(Color::White).bg(Color::Red)
        } else {
            style.add_modifier(Modifier::REVERSED)
        }
    }

    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// One column of the computation bar: what dominated and, if that was computing or idling, how much was
    /// computed; a little computing shows as a little, and only none as none.
    pub(crate) fn cell(self, times: Times) -> (&'static str, Style) {
        if times.total() == 0 {
            return (" ", Style::new());
        }
        let times = self.told(times);
        let Times { compute, idle, init, overhead, core_wait, throttled } = times;
        let most = [compute, idle, init, overhead, core_wait, throttled].into_iter().fold(0, u64::max);
        if most == core_wait && core_wait > compute {
            return (self.pick("┊", "!"), self.core_wait());
        }
        if most == throttled && throttled > compute {
            return (self.pick("≈", "~"), self.throttled());
        }
        if most == times.init && times.init > times.compute {
            return (self.pick("▒", "i"), self.init());
        }
        if most == times.overhead && times.overhead > times.compute {
            return (self.pick("╳", "x"), self.overhead());
        }
        match times.share(times.compute) {
            share if share <= 0.0 => (self.pick("·", "."), self.idle()),
            share if self.unicode => (step(&EIGHTHS_UP, share), self.compute()),
            share => (step(&TENTHS, share), self.compute()),
        }
    }

    /// Row `row` (0 at the bottom) of a column `rows` high that stacks computing, runtime, initialising, waiting for a core,
    /// being throttled and idling; a little computing shows in the lowest row.
    pub(crate) fn stacked(self, times: Times, row: u16, rows: u16) -> (&'static str, Style) {
        if times.total() == 0 {
            return (" ", Style::new());
        }
        let times = self.told(times);
        let (bottom, rows) = (f64::from(row), f64::from(rows.max(1)));
        // How much of this row a state fills that begins at `from` and ends at `to`, both in rows from the bottom.
        let part = |from: f64, to: f64| (to.min(bottom + 1.0) - from.max(bottom)).max(0.0);
        let compute = times.share(times.compute) * rows;
        let computing = part(0.0, compute);
        let mut below = compute;
        let others = [
            (times.overhead, self.pick("╳", "x"), self.overhead()),
            (times.init, self.pick("▒", "i"), self.init()),
            (times.core_wait, self.pick("┊", "!"), self.core_wait()),
            (times.throttled, self.pick("≈", "~"), self.throttled()),
        ];
        let others = others.map(|(time, glyph, style)| {
            let from = below;
            below += times.share(time) * rows;
            (part(from, below), glyph, style)
        });
        let rest = 1.0 - computing - others.iter().map(|(part, ..)| part).sum::<f64>();
        let most = others.iter().map(|(part, ..)| *part).fold(0.0, f64::max);
        // What fills most of the row is shown; a thin slice between others would come and go by chance.
        if computing > 0.0 && (row == 0 || most <= computing.max(rest)) {
            let steps: &[&'static str] = if self.unicode { &EIGHTHS_UP } else { &TENTHS };
            return (step(steps, computing), self.compute());
        }
        let most = others.into_iter().find(|(part, ..)| *part > 0.0 && *part >= most && *part >= rest);
        most.map_or((self.pick("·", "."), self.idle()), |(_, glyph, style)| (glyph, style))
    }

    /// One cell of a matrix, of a share of the largest; a little shows as a little.
    pub(crate) fn shade(self, share: f64) -> Span<'static> {
        if share <= 0.0 {
            return Span::styled(self.pick("·", "."), self.faint());
        }
        let steps: &[&'static str] = if self.unicode { &EIGHTHS_UP } else { &TENTHS };
        let style = if share >= 0.5 { self.core_wait() } else { self.accent() };
        Span::styled(step(steps, share), style)
    }

    /// How many dots of a map are one above the other in a character.
    pub(crate) fn dots(self) -> usize {
        if self.unicode && palette::heat(0, self.colors).is_some() { 2 } else { 1 }
    }

    /// A character of a map: the steps of its upper and its lower dot, 0 to 255 each; the same if it has only one.
    pub(crate) fn heat(self, upper: u8, lower: u8) -> Span<'static> {
        let colors = palette::heat(upper, self.colors).zip(palette::heat(lower, self.colors));
        match colors {
            Some((upper, lower)) if self.unicode => Span::styled("▀", Style::new().fg(upper).bg(lower)),
            Some((upper, _)) => Span::styled(" ", Style::new().bg(upper)),
            None => Span::raw(DENSER[usize::from(upper) * DENSER.len() / 256]),
        }
    }

    /// A character on the colour of a share in a map; without that colour where there are too few colours.
    pub(crate) fn heated(self, letter: &'static str, share: f64) -> Span<'static> {
        // A share lies between 0 and 1.
        let step = (share.clamp(0.0, 1.0) * 255.0) as u8;
        // The darkest on what is light, and the other way round.
        let ink = if step < 128 { 255 } else { 0 };
        match palette::heat(step, self.colors).zip(palette::heat(ink, self.colors)) {
            Some((paper, ink)) => Span::styled(letter, Style::new().fg(ink).bg(paper)),
            None => Span::raw(letter),
        }
    }

    /// The same with letters and digits in place of bars.
    pub(crate) fn letters(self) -> Self {
        Self { unicode: false, ..self }
    }

    /// A time in at most six columns: `340ns`, `1.2µs`, `45ms`, `3.4s`, `12m05s`.
    pub(crate) fn time(self, ns: u64) -> String {
        figures::time(ns, self.pick("µs", "us"))
    }

    pub(crate) fn state(self, state: PeState) -> (&'static str, Style) {
        match state {
            PeState::Idle | PeState::Asleep => ("I", self.idle()),
            PeState::Init if self.has_init => ("N", self.init()),
            PeState::Compute | PeState::Init => ("C", self.compute()),
            PeState::Overhead => ("R", self.overhead()),
            PeState::Throttled => ("T", self.throttled()),
        }
    }

    /// A bar of `width` columns filled to `share`; any share above nothing shows at least one mark.
    pub(crate) fn bar(self, share: f64, width: usize, style: Style) -> Vec<Span<'static>> {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        let steps = if self.unicode { 8 } else { 1 };
        let all = width * steps;
        // Shares lie between 0 and 1, so this lies between 0 and `all`.
        let mut filled = (share * all as f64).round() as usize;
        if share > 0.0 {
            filled = filled.max(1).min(all);
        }
        let mut text = self.pick("█", "#").repeat(filled / steps);
        if !filled.is_multiple_of(steps) {
            text.push_str(EIGHTHS_RIGHT[filled % steps - 1]);
        }
        let rest = width - filled.div_ceil(steps);
        vec![Span::styled(text, style), Span::styled(self.pick("·", ".").repeat(rest), self.faint())]
    }
}

/// The last step only for all (within a thousandth), so that a little of anything else is seen; the first for any.
fn step(steps: &[&'static str], share: f64) -> &'static str {
    let last = steps.len() - 1;
    let place = if share >= 0.999 { last } else { (share * last as f64).floor() as usize };
    steps[place.min(last)]
}
