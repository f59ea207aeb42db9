//! How far the copies of the executable to other hosts are, on the terminal: the first run over a slow line may
//! take minutes before anything else can be shown.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use runtime::launch::Copying;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A copy that is done sooner is not worth a word.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the terminal may take to be clear again.
const CLEARED: Duration = Duration::from_millis(300);

/// Does `work`, which is given whom to tell of copies: they are shown on standard error, if that is a terminal and
/// they are wanted. When the work is done its result is all that is left on the terminal.
pub(crate) fn shown<T>(is_wanted: bool, work: impl FnOnce(Option<Sender<Copying>>) -> T) -> T {
    if !is_wanted || !std::io::stderr().is_terminal() {
        return work(None);
    }
    let (sender, told) = channel::<Copying>();
    let (cleared, is_clear) = channel::<()>();
    let thread = std::thread::Builder::new().name("copies".into()).spawn(move || {
        let mut copies = Copies::new(ProgressDrawTarget::stderr());
        told.iter().for_each(|copying| copies.tell(&copying, Instant::now()));
        drop(copies);
        drop(cleared);
    });
    let done = work(thread.is_ok().then_some(sender));
    // Ends when the last who could tell is gone, which is now or very soon.
    let _ = is_clear.recv_timeout(CLEARED);
    done
}

/// The copies under way, each with a bar once it has taken long enough.
struct Copies {
    area: MultiProgress,
    under_way: BTreeMap<String, (Instant, Option<ProgressBar>)>,
}

impl Copies {
    fn new(target: ProgressDrawTarget) -> Self {
        Self { area: MultiProgress::with_draw_target(target), under_way: BTreeMap::new() }
    }

    fn tell(&mut self, copying: &Copying, now: Instant) {
        let (began, bar) = self.under_way.entry(copying.node.clone()).or_insert((now, None));
        if copying.done_bytes >= copying.total_bytes {
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
            self.under_way.remove(&copying.node);
        } else if now.duration_since(*began) >= PATIENCE {
            let bar = bar.get_or_insert_with(|| self.area.add(bar_for(copying)));
            bar.set_position(copying.done_bytes);
        }
    }
}

impl Drop for Copies {
    /// What was not finished has failed, and the error says so.
    fn drop(&mut self) {
        self.under_way.values().filter_map(|(_, bar)| bar.as_ref()).for_each(ProgressBar::finish_and_clear);
    }
}

fn bar_for(copying: &Copying) -> ProgressBar {
    let bar = ProgressBar::new(copying.total_bytes).with_prefix(copying.node.clone());
    let template = "copying the program to {prefix} [{wide_bar}] {bytes}/{total_bytes} {eta}";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_a_bar_only_while_it_lasts_long() {
        let mut copies = Copies::new(ProgressDrawTarget::hidden());
        let began = Instant::now();
        let mut tell = |node: &str, done_bytes: u64, seconds: u64| {
            let copying = Copying { node: node.into(), done_bytes, total_bytes: 100 };
            copies.tell(&copying, began + Duration::from_secs(seconds));
            let bars = copies.under_way.values().filter_map(|(_, bar)| bar.as_ref());
            bars.map(|bar| (bar.prefix(), bar.position())).collect::<Vec<_>>()
        };
        assert_eq!(tell("fast", 0, 0), []);
        assert_eq!(tell("slow", 0, 0), []);
        assert_eq!(tell("fast", 100, 1), []);
        assert_eq!(tell("slow", 10, 1), []);
        assert_eq!(tell("slow", 20, 2), [("slow".to_string(), 20)]);
        assert_eq!(tell("slow", 30, 3), [("slow".to_string(), 30)]);
        assert_eq!(tell("slow", 100, 9), []);
    }
}
