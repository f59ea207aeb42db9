//! Numbers as short text: at most five or six characters, so that columns hold.

use std::time::Duration;

/// Lines of fewer columns have none for an indent.
const INDENTED: usize = 20;

/// A count: `999`, `1.2k`, `34M`.
pub(crate) fn count(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return "0".into();
    }
    if value < 9.95 && value.fract() > 0.0 {
        return format!("{value:.1}");
    }
    if value < 9999.5 {
        return format!("{value:.0}");
    }
    scaled(value, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
}

/// Any number with three digits or more: `0`, `0.25`, `-8.38`, `1234`, `1.2e-5`; most take at most eight columns.
pub(crate) fn value(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-3..99_999.5).contains(&size) {
        return format!("{value:.1e}");
    }
    let digits = usize::try_from(2 - size.log10().floor() as i32).unwrap_or(0);
    let text = format!("{value:.digits$}");
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').into() }
}

/// Bytes in powers of 1024: `512B`, `1.5K`, `3.2G`.
pub(crate) fn bytes(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return "0B".into();
    }
    scaled(value, 1024.0, &["B", "K", "M", "G", "T", "P", "E"])
}

/// So many of something: `1 PE`, `4 PEs`.
pub(crate) fn things(count: usize, name: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {name}{ending}")
}

/// A share from 0 to 1 as a percentage; what is not nothing is never shown as nothing, nor what is not all as all.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() || p <= 0.0 => "0%".into(),
        p if p < 0.1 => "<.1%".into(),
        p if p < 9.95 => format!("{p:.1}%"),
        p if (99.0..100.0).contains(&p) => "99%".into(),
        p => format!("{:.0}%", p.min(999.0)),
    }
}

/// A time of nanoseconds, with this word for microseconds: `340ns`, `1.2us`, `45ms`, `3.4s`, `12m05s`.
pub(crate) fn time(ns: u64, micro: &str) -> String {
    let units = [(1.0, "ns"), (1e3, micro), (1e6, "ms"), (1e9, "s")];
    let value = ns as f64;
    if value >= 99.95e9 {
        return age(Duration::from_nanos(ns));
    }
    let fits = |(size, _): &&(f64, &str)| value < size * 999.5;
    let (size, unit) = units.iter().find(fits).copied().unwrap_or((1e9, "s"));
    let number = value / size;
    if number < 9.95 && size > 1.0 { format!("{number:.1}{unit}") } else { format!("{number:.0}{unit}") }
}

/// `12s`, `3m05s`, `2h10m`, `4d03h`.
pub(crate) fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// `01:02:03`.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A moment to a tenth of a second: `0:07.3`, `12:03.0`, `1:00:00.0`.
pub(crate) fn moment(time: Duration) -> String {
    let (seconds, tenth) = (time.as_secs(), time.subsec_millis() / 100);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}.{tenth}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}.{tenth}"),
    }
}

/// `text` in exactly `width` columns: cut off (marked with `~`) or padded on the right.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let columns = |text: &str| ratatui::text::Span::raw(text.to_owned()).width();
    let mut out = text.to_owned();
    let mut used = columns(&out);
    if used > width {
        while used + 1 > width && out.pop().is_some() {
            used = columns(&out);
        }
        if width > 0 {
            out.push('~');
            used += 1;
        }
    }
    out.push_str(&" ".repeat(width.saturating_sub(used)));
    out
}

/// `text` as lines of at most `width` columns, cut at blanks where there are any; all but the first are indented.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let (mut rest, mut lines) = (text.trim_end(), Vec::new());
    while lines.is_empty() || !rest.is_empty() {
        let indent = if lines.is_empty() || width < INDENTED { "" } else { "  " };
        let fits = bytes_in(rest, width.saturating_sub(indent.len()));
        let cuts_word = rest.get(fits..).is_some_and(|more| !more.is_empty() && !more.starts_with(' '));
        let is_blank = |at: &usize| cuts_word && !rest[..*at].trim().is_empty();
        let (line, more) = rest.split_at(rest[..fits].rfind(' ').filter(is_blank).unwrap_or(fits));
        lines.push(format!("{indent}{}", line.trim_end()));
        rest = more.trim_start();
    }
    lines
}

/// How many bytes of `text` are characters that have room in these columns; the first one is always among them.
fn bytes_in(text: &str, columns: usize) -> usize {
    let mut used = 0;
    let has_no_room = |(_, letter): &(usize, char)| {
        used += ratatui::text::Span::raw(letter.to_string()).width();
        used > columns
    };
    let end = text.char_indices().find(has_no_room).map_or(text.len(), |(at, _)| at);
    end.max(text.chars().next().map_or(0, char::len_utf8))
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= base * 0.9995 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let unit_name = units.get(unit).copied().unwrap_or("");
    if value < 9.95 && unit > 0 { format!("{value:.1}{unit_name}") } else { format!("{value:.0}{unit_name}") }
}
