//! State of the window: model plus what the user chose. `update` takes one event and says when to leave; no I/O.
#![deny(clippy::disallowed_methods)]

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use runtime::monitor::wire::MonitorEvent;

use crate::input::{self, Command, Spot};
use crate::model::Model;
use crate::model::history::Times;
use crate::model::node::{Node, Pe};
use crate::player::Player;
use crate::screen::Screen;
use crate::view::traffic::Unit;
use crate::view::{self, help, result};
use crate::{AtEnd, Left, WindowOptions};

/// Time per column, quarter seconds.
const SCALES: [i64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// More PEs than this are first shown by node.
const PES_AT_ONCE: usize = 64;
/// Of more nodes than this there is a map, which is shown first.
const NODES_IN_FULL: usize = 16;
/// Characters of a filter.
const FILTER_MAX: usize = 40;

/// What may happen to the window.
pub(crate) enum Event {
    Monitor(Box<MonitorEvent>),
    /// The feed is closed; nothing follows.
    Closed,
    Key(KeyEvent),
    Mouse(MouseEvent),
    Resize(u16, u16),
    Tick,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    #[default]
    Pes,
    Nodes,
    /// A cell for each PE; only of the load, and of many nodes. Other screens have lines by node then.
    Map,
}

impl View {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pes => "PEs",
            Self::Nodes => "nodes",
            Self::Map => "map",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Pe,
    Idle,
    Busy,
    Queue,
    Entries,
}

impl Sort {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pe => "pe",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Queue => "queue",
            Self::Entries => "entries",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Pe => Self::Idle,
            Self::Idle => Self::Busy,
            Self::Busy => Self::Queue,
            Self::Queue => Self::Entries,
            Self::Entries => Self::Pe,
        }
    }
}

/// What the user chose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) view: View,
    view_chosen: bool,
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    pub(crate) typing: bool,
    pub(crate) only_node: Option<u16>,
    /// Where that node was opened.
    opened_in: View,
    pub(crate) selected: usize,
    pub(crate) detail: Option<u32>,
    pub(crate) help: bool,
    /// The first line of the help that is shown.
    pub(crate) help_from: usize,
    pub(crate) log: bool,
    pub(crate) screen: Screen,
    /// Whether all lines of what the run came to are to be seen, in place of the load.
    pub(crate) result: bool,
    /// What the screen of traffic is about.
    pub(crate) unit: Unit,
    /// The selected line of screens whose lines are no PEs or nodes.
    pub(crate) row: usize,
    /// `None` as long as it follows from how long the run has lasted.
    scale: Option<usize>,
}

impl Choice {
    /// Whether what is selected is a node.
    pub(crate) fn is_by_node(&self) -> bool {
        self.view != View::Pes
    }

    fn wants(&self, node: &Node) -> bool {
        let filter = self.filter.to_lowercase();
        self.only_node.is_none_or(|only| only == node.last.node)
            && (node.name().to_lowercase().contains(&filter)
                || node.info.host.to_lowercase().contains(&filter))
    }
}

pub(crate) struct App {
    live: Model,
    frozen: Option<Box<Model>>,
    /// Plays a recording; nothing is live then.
    pub(crate) player: Option<Player>,
    pub(crate) choice: Choice,
    pub(crate) options: WindowOptions,
    /// The run's time when the viewer began: the times of the run, not of the viewer, are shown.
    ahead: Duration,
    /// Where a click does something in the last picture.
    pub(crate) spots: Vec<Spot>,
    size: (u16, u16),
    changed: bool,
}

impl App {
    pub(crate) fn new(options: &WindowOptions) -> Self {
        let choice = Choice { screen: options.screen, ..Choice::default() };
        let options = options.clone();
        let (spots, size) = (Vec::new(), (80, 24));
        Self {
            live: Model::default(),
            frozen: None,
            player: None,
            ahead: Duration::ZERO,
            choice,
            options,
            spots,
            size,
            changed: true,
        }
    }

    /// A window on a recording, which it outlasts.
    pub(crate) fn of_player(player: Player, options: &WindowOptions) -> Self {
        let options = WindowOptions { at_end: AtEnd::Stays, ..options.clone() };
        let mut app = Self { player: Some(player), ..Self::new(&options) };
        app.begin_by_node();
        app
    }

    /// Time per column of a strip of so many, nanoseconds: as it was chosen, else the least in which all of the run that is
    /// known fits.
    pub(crate) fn column(&self, columns: usize) -> i64 {
        Self::column_of(self.scale(columns))
    }

    fn scale(&self, columns: usize) -> usize {
        let known = self.model().edge();
        let columns = i64::try_from(columns).unwrap_or(i64::MAX);
        let fits = |scale: &usize| Self::column_of(*scale).saturating_mul(columns) >= known;
        let last = SCALES.len() - 1;
        self.choice.scale.unwrap_or_else(|| (0..last).find(fits).unwrap_or(last))
    }

    fn column_of(scale: usize) -> i64 {
        SCALES[scale.min(SCALES.len() - 1)] * crate::model::history::SECOND / 4
    }

    /// What is to be shown: the present, the moment of the pause, or that of the player.
    pub(crate) fn model(&self) -> &Model {
        match &self.player {
            Some(player) => player.model(),
            None => self.frozen.as_deref().unwrap_or(&self.live),
        }
    }

    pub(crate) fn paused(&self) -> bool {
        self.player.as_ref().map_or(self.frozen.is_some(), Player::paused)
    }

    /// The run has ended, whether or not the display is frozen before that; one that was recorded has.
    pub(crate) fn ended(&self) -> bool {
        self.player.is_some() || self.live.end.is_some()
    }

    /// Whether the picture may differ from the last one drawn; asking clears it.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Nodes to show, in the order to show them.
    pub(crate) fn nodes(&self) -> Vec<&Node> {
        let mut nodes: Vec<&Node> =
            self.model().nodes.values().filter(|node| self.choice.wants(node)).collect();
        let edge = self.model().edge();
        match self.choice.sort {
            Sort::Pe => {}
            Sort::Idle => {
                nodes.sort_by_cached_key(|node| std::cmp::Reverse(permille(node.lifetime(), |t| t.idle)))
            }
            Sort::Busy => nodes.sort_by_cached_key(|node| {
                std::cmp::Reverse(permille(node.between(edge - RECENT, edge), Times::working))
            }),
            Sort::Queue => nodes.sort_by_cached_key(|node| std::cmp::Reverse(node.queue())),
            Sort::Entries => nodes.sort_by_cached_key(|node| std::cmp::Reverse(node.entries())),
        }
        nodes
    }

    /// PEs to show, in the order to show them.
    pub(crate) fn pes(&self) -> Vec<(&Node, &Pe)> {
        let wanted = self.model().nodes.values().filter(|node| self.choice.wants(node));
        let mut pes: Vec<(&Node, &Pe)> =
            wanted.flat_map(|node| node.pes.iter().map(move |pe| (node, pe))).collect();
        let edge = self.model().edge();
        match self.choice.sort {
            Sort::Pe => {}
            Sort::Idle => {
                pes.sort_by_cached_key(|(_, pe)| std::cmp::Reverse(permille(pe.lifetime(), |t| t.idle)));
            }
            Sort::Busy => pes.sort_by_cached_key(|(_, pe)| {
                std::cmp::Reverse(permille(pe.history.between(edge - RECENT, edge), Times::working))
            }),
            Sort::Queue => pes.sort_by_cached_key(|(_, pe)| std::cmp::Reverse(pe.last.queue_messages)),
            Sort::Entries => pes.sort_by_cached_key(|(_, pe)| std::cmp::Reverse(pe.last.entries)),
        }
        pes
    }

    /// Takes one event in at the viewer's time `now`; `Some` when the window is to be left.
    pub(crate) fn update(&mut self, event: Event, now: Duration) -> Option<Left> {
        match event {
            Event::Monitor(event) => {
                if let MonitorEvent::At(nanos) = *event {
                    self.ahead = Duration::from_nanos(nanos).saturating_sub(now);
                }
                self.live.apply(*event, now.saturating_add(self.ahead));
                self.begin_by_node();
                self.changed |= self.frozen.is_none() || self.ended();
            }
            Event::Closed => {
                self.live.finish(None, "the feed closed before the run said that it ended");
                self.changed = true;
            }
            Event::Key(key) => {
                if let (Some(player), Some(wish)) = (&mut self.player, input::wish(key, self.choice.typing)) {
                    player.obey(wish);
                    self.changed = true;
                    return None;
                }
                let command = input::command(key, self.choice.typing);
                self.changed |= command.is_some();
                return match command {
                    Some(command) => self.obey(command),
                    None if self.ended() && !self.choice.typing && self.player.is_none() => Some(Left::Ended),
                    None => None,
                };
            }
            Event::Mouse(mouse) => {
                let command = input::pointed(mouse, &self.spots);
                self.changed |= command.is_some();
                return command.and_then(|command| self.obey(command));
            }
            Event::Resize(width, height) => {
                self.size = (width, height);
                self.changed = true;
            }
            Event::Tick => {
                if let Some(player) = &mut self.player {
                    self.changed |= player.tick(now);
                    self.begin_by_node();
                    return None;
                }
                let now = now.saturating_add(self.ahead);
                // Ages and the elapsed time are shown in seconds.
                self.changed |=
                    self.frozen.is_none() && !self.ended() && now.as_secs() != self.live.now.as_secs();
                self.live.tick(now);
            }
        }
        let leaves = match self.options.at_end {
            AtEnd::Stays => false,
            AtEnd::StaysIfWell => self.live.end.as_ref().is_some_and(|end| end.code != Some(0)),
            AtEnd::Leaves => self.ended(),
        };
        leaves.then_some(Left::Ended)
    }

    fn begin_by_node(&mut self) {
        if self.choice.view_chosen {
            return;
        }
        if self.model().nodes.len() > NODES_IN_FULL {
            (self.choice.view, self.choice.selected) = (View::Map, 0);
            self.choice.view_chosen = true;
        } else if self.choice.view == View::Pes {
            let model = self.model();
            let announced: u64 = model.nodes.values().map(|node| u64::from(node.info.pe_count)).sum();
            if model.pe_count() > PES_AT_ONCE || announced > PES_AT_ONCE as u64 {
                self.choice.view = View::Nodes;
            }
        }
    }

    fn obey(&mut self, command: Command) -> Option<Left> {
        let choice = &mut self.choice;
        match command {
            Command::Leave => return Some(if self.ended() { Left::Ended } else { Left::Detached }),
            Command::Interrupt => return Some(if self.ended() { Left::Ended } else { Left::Interrupted }),
            Command::Back => return self.back(),
            Command::Help => (choice.help, choice.help_from) = (!choice.help, 0),
            Command::Log => choice.log = !choice.log,
            Command::Result => {
                (self.choice.result, self.choice.row) = (!self.choice.result && result::is_there(self), 0);
            }
            Command::Show(screen) => self.show(screen),
            Command::Toggle(screen) if choice.screen == screen => self.show(Screen::Load),
            Command::Toggle(screen) => self.show(screen),
            Command::Pause => {
                self.frozen = if self.frozen.is_some() { None } else { Some(Box::new(self.live.clone())) };
            }
            Command::Coarser | Command::Finer => {
                let scale = self.scale(view::strip_columns(self, self.size.0));
                let is_coarser = command == Command::Coarser;
                let next = if is_coarser { scale + 1 } else { scale.saturating_sub(1) };
                self.choice.scale = Some(next.min(SCALES.len() - 1));
            }
            Command::Sort if choice.screen == Screen::Traffic => choice.unit = choice.unit.next(),
            Command::Sort => choice.sort = choice.sort.next(),
            Command::Filter => {
                choice.typing = true;
                choice.detail = None;
                choice.help = false;
            }
            Command::FilterPush(c) if choice.filter.chars().count() < FILTER_MAX => {
                choice.filter.push(c);
                choice.selected = 0;
            }
            Command::FilterPush(_) => {}
            Command::FilterPop => self.pop(),
            Command::FilterDone => choice.typing = false,
            Command::SwitchView => {
                self.choice.view = self.next_view();
                self.choice.view_chosen = true;
                self.choice.only_node = None;
                self.choice.selected = 0;
            }
            Command::Open => self.open(),
            Command::Left if self.shows_map() => self.go(-1),
            Command::Right if self.shows_map() => self.go(1),
            Command::Left => self.pop(),
            Command::Right => self.open(),
            Command::Up | Command::Down if self.shows_map() => self.go_across(command == Command::Down),
            Command::Up | Command::Previous => self.go(-1),
            Command::Down | Command::Next => self.go(1),
            Command::PageUp => self.go(-self.page()),
            Command::PageDown => self.go(self.page()),
            Command::First => self.go(isize::MIN / 2),
            Command::Last => self.go(isize::MAX / 2),
            Command::Choose(place) => self.choose(place),
        }
        None
    }

    /// What the key for it shows next: the map is one of the load's if there are many nodes.
    pub(crate) fn next_view(&self) -> View {
        let has_map = self.choice.screen == Screen::Load && self.model().nodes.len() > NODES_IN_FULL;
        match self.choice.view {
            View::Pes if has_map => View::Map,
            View::Map if has_map => View::Nodes,
            View::Pes => View::Nodes,
            View::Map | View::Nodes => View::Pes,
        }
    }

    /// Whether the arrows move over a map.
    fn shows_map(&self) -> bool {
        let choice = &self.choice;
        choice.screen == Screen::Load && choice.view == View::Map && self.rows().is_none() && !choice.help
    }

    /// Selects what is below the selected node in the last picture of the map, or above it.
    fn go_across(&mut self, is_down: bool) {
        let place = |spot: &Spot| match spot.does {
            Command::Choose(place) => Some((place, spot.area)),
            _ => None,
        };
        let all = || self.spots.iter().filter_map(place);
        let Some((_, from)) = all().rfind(|(place, _)| *place <= self.choice.selected) else {
            return;
        };
        let row = if is_down { from.y.checked_add(1) } else { from.y.checked_sub(1) };
        let in_row = all().filter(|(_, area)| Some(area.y) == row);
        if let Some((place, _)) = in_row.min_by_key(|(_, area)| area.x.abs_diff(from.x)) {
            self.choice.selected = place;
        }
    }

    /// The screens that there are: that of maps only if the program shows some.
    pub(crate) fn screens(&self) -> impl Iterator<Item = Screen> {
        let has_maps = !self.model().maps.is_empty();
        Screen::ALL.into_iter().filter(move |screen| has_maps || *screen != Screen::Maps)
    }

    fn show(&mut self, screen: Screen) {
        if !self.screens().any(|there| there == screen) {
            return;
        }
        let choice = &mut self.choice;
        (choice.screen, choice.detail, choice.help, choice.row) = (screen, None, false, 0);
    }

    fn back(&mut self) -> Option<Left> {
        let choice = &mut self.choice;
        if choice.help {
            choice.help = false;
        } else if choice.detail.is_some() {
            choice.detail = None;
        } else if choice.screen != Screen::Load {
            self.show(Screen::Load);
        } else if choice.result {
            choice.result = false;
        } else if choice.typing || !choice.filter.is_empty() {
            choice.typing = false;
            choice.filter.clear();
        } else if choice.only_node.is_some() {
            choice.only_node = None;
            choice.view = choice.opened_in;
            choice.selected = 0;
        } else {
            return Some(if self.ended() { Left::Ended } else { Left::Detached });
        }
        None
    }

    /// Takes back one step of narrowing, but never leaves.
    fn pop(&mut self) {
        if self.choice.typing {
            self.choice.filter.pop();
        } else if self.choice.help
            || self.choice.detail.is_some()
            || self.choice.screen != Screen::Load
            || self.choice.result
            || self.choice.only_node.is_some()
        {
            self.back();
        }
    }

    fn open(&mut self) {
        if self.choice.help || self.choice.detail.is_some() || self.rows().is_some() {
            return;
        }
        match self.choice.view {
            View::Pes => {
                self.choice.detail = self.pes().get(self.choice.selected).map(|(_, pe)| pe.last.pe);
            }
            View::Nodes | View::Map => {
                if let Some(node) = self.nodes().get(self.choice.selected).map(|node| node.last.node) {
                    self.choice.only_node = Some(node);
                    self.choice.opened_in = std::mem::take(&mut self.choice.view);
                    self.choice.view_chosen = true;
                    self.choice.selected = 0;
                }
            }
        }
    }

    /// How many lines the present screen has, if they are no PEs or nodes.
    fn rows(&self) -> Option<usize> {
        match self.choice.screen {
            Screen::Load if self.choice.result && result::is_there(self) => {
                Some(result::lines(self, self.size.0).len())
            }
            Screen::Load | Screen::Why | Screen::Work => None,
            Screen::Maps => Some(0),
            Screen::Entries => Some(self.model().entries(&self.nodes()).len()),
            Screen::Traffic => Some(self.model().links(&self.nodes()).len()),
            Screen::Log => Some(self.model().remarks.len()),
        }
    }

    fn go(&mut self, steps: isize) {
        if self.choice.help {
            let last = help::lines(self).saturating_sub(1);
            self.choice.help_from = self.choice.help_from.saturating_add_signed(steps).min(last);
            return;
        }
        if let Some(rows) = self.rows() {
            // The newest remark is at the bottom, and they are counted from there; so are the lines of the result.
            let from_below = matches!(self.choice.screen, Screen::Log | Screen::Load);
            let steps = if from_below { steps.saturating_neg() } else { steps };
            let last = rows.saturating_sub(1);
            self.choice.row = self.choice.row.min(last).saturating_add_signed(steps).min(last);
            return;
        }
        let count = match self.choice.view {
            View::Pes => self.pes().len(),
            View::Nodes | View::Map => self.nodes().len(),
        };
        let place = self.choice.selected.min(count.saturating_sub(1));
        self.choice.selected = place.saturating_add_signed(steps).min(count.saturating_sub(1));
        // In the detail the arrows go from PE to PE.
        if self.choice.detail.is_some() {
            self.choice.detail = self.pes().get(self.choice.selected).map(|(_, pe)| pe.last.pe);
        }
    }

    /// A click on what is selected opens it.
    fn choose(&mut self, place: usize) {
        let chosen = if self.rows().is_some() { &mut self.choice.row } else { &mut self.choice.selected };
        if std::mem::replace(chosen, place) == place {
            self.open();
        }
    }

    fn page(&self) -> isize {
        let lines = isize::try_from(self.size.1.saturating_sub(8).max(1)).unwrap_or(1);
        if self.choice.is_by_node() { (lines / 2).max(1) } else { lines }
    }
}

/// What counts as recent, nanoseconds.
pub(crate) const RECENT: i64 = 2 * crate::model::history::SECOND;

fn permille(times: crate::model::history::Times, part: impl Fn(crate::model::history::Times) -> u64) -> u64 {
    u64::try_from(u128::from(part(times)) * 1000 / u128::from(times.total().max(1))).unwrap_or(1000)
}
