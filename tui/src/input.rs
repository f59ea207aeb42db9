//! Keys and the mouse to commands. Pure; the mode decides whether a letter is a command or part of a filter.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::{Position, Rect};

use crate::player::Wish;
use crate::screen::Screen;

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Leave the window; the run goes on.
    Leave,
    /// Close what is open on top, or leave.
    Back,
    /// End the run.
    Interrupt,
    Help,
    Log,
    /// Show all of what the run came to, or the load again.
    Result,
    /// Show that screen.
    Show(Screen),
    /// Show it, or the load again.
    Toggle(Screen),
    Pause,
    /// More time per column.
    Coarser,
    /// Less time per column.
    Finer,
    Sort,
    Filter,
    FilterPush(char),
    FilterPop,
    FilterDone,
    SwitchView,
    Open,
    /// Back to what it was opened from, or to the left on a map.
    Left,
    /// Open, or to the right on a map.
    Right,
    Up,
    Down,
    /// Up in a list, and the one before on a map.
    Previous,
    Next,
    PageUp,
    PageDown,
    First,
    Last,
    /// Select that item of the list on the screen, or open it if it is selected.
    Choose(usize),
}

/// The command of a key, or nothing. `typing`: a filter is being typed.
pub(crate) fn command(key: KeyEvent, typing: bool) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Command::Interrupt),
            KeyCode::Char('f') => Some(Command::PageDown),
            KeyCode::Char('b') => Some(Command::PageUp),
            _ => None,
        };
    }
    if typing {
        return match key.code {
            KeyCode::Char(c) => Some(Command::FilterPush(c)),
            KeyCode::Backspace => Some(Command::FilterPop),
            KeyCode::Enter => Some(Command::FilterDone),
            KeyCode::Esc => Some(Command::Back),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char('q') => Command::Leave,
        KeyCode::Esc => Command::Back,
        // Only `Esc` may also leave the window: a stray arrow should not.
        KeyCode::Left | KeyCode::Char('h') => Command::Left,
        KeyCode::Backspace => Command::FilterPop,
        KeyCode::Char('?') | KeyCode::F(1) => Command::Help,
        KeyCode::Char('l') => Command::Log,
        KeyCode::Char('r') => Command::Result,
        KeyCode::Char('w') => Command::Toggle(Screen::Why),
        KeyCode::Char('e') => Command::Toggle(Screen::Entries),
        KeyCode::Char('t') => Command::Toggle(Screen::Traffic),
        KeyCode::Char('c') => Command::Toggle(Screen::Work),
        KeyCode::Char('m') => Command::Toggle(Screen::Maps),
        KeyCode::Char(' ') => Command::Pause,
        KeyCode::Char('+' | '=' | ']') => Command::Coarser,
        KeyCode::Char('-' | '_' | '[') => Command::Finer,
        KeyCode::Char('s') => Command::Sort,
        KeyCode::Char('/') => Command::Filter,
        KeyCode::Tab | KeyCode::BackTab => Command::SwitchView,
        KeyCode::Enter => Command::Open,
        KeyCode::Right => Command::Right,
        KeyCode::Up => Command::Up,
        KeyCode::Down => Command::Down,
        KeyCode::Char('k') => Command::Previous,
        KeyCode::Char('j') => Command::Next,
        KeyCode::PageUp => Command::PageUp,
        KeyCode::PageDown => Command::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Command::First,
        KeyCode::End | KeyCode::Char('G') => Command::Last,
        KeyCode::Char(key) => Command::Show(Screen::of_key(key)?),
        _ => return None,
    })
}

/// Where a click does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) area: Rect,
    pub(crate) does: Command,
}

/// The command of the mouse, or nothing. `spots`: where a click does something in the picture that is shown.
pub(crate) fn pointed(mouse: MouseEvent, spots: &[Spot]) -> Option<Command> {
    match mouse.kind {
        MouseEventKind::ScrollUp => Some(Command::Up),
        MouseEventKind::ScrollDown => Some(Command::Down),
        MouseEventKind::Down(MouseButton::Left) => {
            let at = Position::new(mouse.column, mouse.row);
            spots.iter().find(|spot| spot.area.contains(at)).map(|spot| spot.does)
        }
        MouseEventKind::Down(MouseButton::Right) => Some(Command::FilterPop),
        _ => None,
    }
}

/// What a key asks of a recording that is played, if that differs from its command in a window on a run.
pub(crate) fn wish(key: KeyEvent, typing: bool) -> Option<Wish> {
    if key.kind == KeyEventKind::Release || typing || key.modifiers.contains(KeyModifiers::CONTROL) {
        return None;
    }
    Some(match key.code {
        KeyCode::Char(' ') => Wish::Pause,
        KeyCode::Char('<' | ',') => Wish::Slower,
        KeyCode::Char('>' | '.') => Wish::Faster,
        KeyCode::Left => Wish::Earlier,
        KeyCode::Right => Wish::Later,
        KeyCode::PageUp => Wish::MuchEarlier,
        KeyCode::PageDown => Wish::MuchLater,
        KeyCode::Home => Wish::Beginning,
        KeyCode::End => Wish::Ending,
        _ => return None,
    })
}
