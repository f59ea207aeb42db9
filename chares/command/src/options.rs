//! Options that every run has.

use super::checkpoint::folder_parser;
use super::folders;
use super::live::metrics;
use super::log::LogOptions;
use super::note;
use chares::checkpoint::Protocol;
use clap::{Args, ValueEnum, value_parser};
use loadbalance::balance::{BALANCERS, Choice};
use runtime::config::{ClusterConfig, ConfigError, NodeConfig, Transport};
use runtime::failure::{Failure, Kind};
use runtime::launch::LaunchOptions;
use runtime::monitor::Detail;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tui::Colors;

/// The longest time that can be asked for: three years, which every clock can add.
const TIME_MAX: Duration = Duration::from_secs(100_000_000);

// Where and how an application runs. Documentation here would become that of the commands that have these options.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Run options")]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) nodes: NodesOptions,
    /// What to call the run, for `watch`; if not given, the application with some digits
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    name: Option<String>,
    /// Show the load window while it runs
    #[arg(long)]
    pub(crate) watch: bool,
    /// Show the load window only if standard output is a terminal
    #[arg(long, hide = true)]
    pub(crate) watch_if_terminal: bool,
    /// Write a report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Keep what the load window is told in a file, for `replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write what happens into a file while it happens, as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Write what each PE did, second by second, into a file while it happens, as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,
    /// Tell Prometheus how the run is, at http://ADDRESS/metrics (OpenMetrics; a port alone is one of this machine)
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Where the speeds of PEs come from
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) speed: SpeedSource,
    /// Who moves chares between PEs while the run goes on
    #[arg(long, value_name = "NAME[:OPTION,…]", default_value = "none", value_parser = balance, long_help = balance_help())]
    pub(crate) balance: String,
    /// Save the run into this folder on its way, for `restart`
    #[arg(long, value_name = "DIR", value_parser = folder_parser())]
    pub(crate) checkpoint: Option<PathBuf>,
    /// How often it is saved: seconds, or as 90s, 10m, 2h, or 500steps as the progress counts them; `checkpoint RUN` has it
    /// saved at once
    #[arg(long, value_name = "TIME|STEPS", value_parser = every, default_value = "10m")]
    pub(crate) checkpoint_every: Every,
    /// How it is saved: each PE packs what it has and goes on, or all stand still until nothing is on its way
    #[arg(long, value_name = "HOW", value_enum, default_value = "snapshot")]
    pub(crate) checkpoint_protocol: CheckpointProtocol,
    /// How many checkpoints the folder keeps, at least 2
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(2..), default_value = "2")]
    pub(crate) checkpoint_keep: u32,
    /// End the run after so many seconds
    #[arg(long, visible_alias = "time-limit", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
    /// Print neither progress nor the table at the end
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// When the window uses colours, and how many
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(crate) color: ColorChoice,
    #[command(flatten)]
    pub(crate) log: LogOptions,
    /// Pack and unpack every message, also inside a process, and the state of chares before each entry method (slow;
    /// finds mistakes)
    #[arg(long, hide = true)]
    pub(crate) always_pup: bool,
    /// Do not tell which message started what: the window and recordings then have no arrows, and no critical path
    #[arg(long)]
    pub(crate) no_arrows: bool,
    /// Do not measure what entry methods take and what goes where: what the runtime takes then counts as computing
    #[arg(long)]
    pub(crate) no_measuring: bool,
    /// Move chares to other PEs at random moments that follow from this seed (slow; finds mistakes)
    #[arg(long, hide = true, value_name = "SEED")]
    pub(crate) wander: Option<u64>,
}

/// How a run is saved while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum CheckpointProtocol {
    /// All PEs stand still until nothing is on its way: soon, if no entry method takes long
    Barrier,
    /// Nobody stands still: what was on its way is saved, too
    Snapshot,
}

impl From<CheckpointProtocol> for Protocol {
    fn from(protocol: CheckpointProtocol) -> Self {
        match protocol {
            CheckpointProtocol::Barrier => Self::Barrier,
            CheckpointProtocol::Snapshot => Self::Snapshot,
        }
    }
}

/// How often a run is saved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Every {
    Time(Duration),
    /// After so many units of what the progress counts.
    Steps(u64),
}

// Which nodes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NodesChoice {
    /// The nodes file; if not given that of METACHARE_NODES, else ./nodes.toml, else ~/.config/metachare/nodes.toml, else
    /// several local nodes
    #[arg(long, value_name = "FILE")]
    pub(crate) nodes: Option<PathBuf>,
    /// Use these hosts, with as many PEs as stand behind a colon, in place of a nodes file
    #[arg(
        long,
        visible_alias = "host",
        value_name = "HOST[:PES],…",
        value_delimiter = ',',
        conflicts_with = "nodes"
    )]
    hosts: Vec<String>,
    /// Use the hosts of a host file of Open MPI, MPICH, Charm++ or a batch system
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "hosts"])]
    hostfile: Option<PathBuf>,
    /// Use the built-in local nodes, whatever nodes files there are
    #[arg(long, conflicts_with_all = ["nodes", "hosts", "hostfile"])]
    pub(crate) built_in_nodes: bool,
    /// How many PEs each node has; without nodes, one local node with so many
    #[arg(long, value_name = "PES", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pes: Option<u32>,
    /// Use only these nodes
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
}

// Which nodes, and how they are started.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodesOptions {
    #[command(flatten)]
    choice: NodesChoice,
    /// Give up when a node is silent for so many seconds while it starts
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) start_timeout: Duration,
    /// What carries messages between nodes, whatever the nodes file says
    #[arg(long, value_enum)]
    transport: Option<TransportChoice>,
}

/// What carries messages between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TransportChoice {
    /// Shared memory between processes of one host, QUIC elsewhere
    Auto,
    /// QUIC everywhere
    Quic,
}

/// Where speeds come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
pub(crate) enum SpeedSource {
    /// A short run takes those of the last day that still hold; others run the application's kernel, for a twentieth of
    /// their time
    Auto,
    /// Run the application's kernel on all PEs now, for as long as it takes to be exact
    Measured,
    /// As measured in the last day with the same program, whether that still holds or not; if there is none, auto
    Cached,
    /// All PEs count the same
    Equal,
    /// The `speed` of each node in the nodes file, 1 where it has none
    File,
}

impl SpeedSource {
    /// Whether there are rates, by which something can be predicted.
    pub(crate) fn is_measured(self) -> bool {
        matches!(self, Self::Auto | Self::Measured | Self::Cached)
    }

    /// Its name, as in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Measured => "measured",
            Self::Cached => "cached",
            Self::Equal => "equal",
            Self::File => "file",
        }
    }
}

/// When to use colours, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// As many as COLORTERM and TERM say that the terminal has, none if NO_COLOR is set
    Auto,
    /// Also if NO_COLOR is set
    Always,
    /// None
    Never,
    /// The sixteen of the terminal's own theme
    #[value(name = "16")]
    Named,
    /// 256
    #[value(name = "256")]
    Indexed,
    /// All of 24 bits
    Full,
}

impl ColorChoice {
    /// The colours that the window uses, where the environment says `found`.
    pub(crate) fn of(self, found: Colors) -> Colors {
        match self {
            Self::Auto => found,
            Self::Always if found == Colors::None => Colors::Named,
            Self::Always => found,
            Self::Never => Colors::None,
            Self::Named => Colors::Named,
            Self::Indexed => Colors::Indexed,
            Self::Full => Colors::Full,
        }
    }
}

impl NodesChoice {
    /// Whether hosts are named, in place of a nodes file.
    pub(crate) fn names_hosts(&self) -> bool {
        !self.hosts.is_empty() || self.hostfile.is_some()
    }

    pub(crate) fn load(&self) -> Result<ClusterConfig, Failure> {
        let mut config = self.named().map_err(|e| Failure::new(Kind::Config, e))?;
        if let Some(pes) = self.pes {
            if config.is_built_in() {
                config.nodes = vec![NodeConfig::local("local", pes)];
            }
            config.nodes.iter_mut().for_each(|node| node.pes = Some(pes));
        }
        if self.only.is_empty() {
            return Ok(config);
        }
        config.select(&self.only).map_err(|e| Failure::new(Kind::Config, e))
    }

    /// Those that were named, or are usual here.
    fn named(&self) -> Result<ClusterConfig, ConfigError> {
        if !self.hosts.is_empty() {
            return ClusterConfig::of_hosts(&self.hosts, &this_host());
        }
        if let Some(file) = &self.hostfile {
            return ClusterConfig::of_hostfile(file, &this_host());
        }
        // A demo takes the built-in nodes unless it is given others.
        if self.built_in_nodes && self.nodes.is_none() {
            return Ok(ClusterConfig::embedded(cores()));
        }
        let environment = std::env::var_os(NODES_VARIABLE);
        ClusterConfig::load(self.file(environment).as_deref(), &usual_files())
    }

    /// The nodes file that was named, on the command line or by the environment, where an empty name is none.
    fn file(&self, environment: Option<OsString>) -> Option<PathBuf> {
        self.nodes.clone().or(environment.filter(|name| !name.is_empty()).map(PathBuf::from))
    }

    /// Which nodes are taken, and who has named them.
    fn sentence(&self, config: &ClusterConfig, environment: Option<OsString>) -> String {
        let names: Vec<&str> = config.nodes.iter().map(|node| node.name.as_str()).collect();
        let names = shortened(&names);
        if config.is_built_in() && self.built_in_nodes {
            return format!("on the built-in local nodes {names}");
        }
        if config.is_built_in() {
            return format!(
                "there is no nodes file: on the built-in local nodes {names}; --nodes FILE or --hosts name others, \
                 --built-in-nodes wants these"
            );
        }
        let by = match (&self.nodes, &self.hostfile) {
            (Some(_), _) => " (--nodes)",
            (_, Some(_)) => " (--hostfile)",
            _ if !self.hosts.is_empty() => "",
            _ if self.file(environment).is_some() => " (METACHARE_NODES)",
            _ => "",
        };
        format!("on the nodes of {}{by}: {names}", config.source)
    }

    /// The same nodes on the command line of another command; which of them is left open.
    fn as_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.hosts.is_empty() {
            words.extend(["--hosts".into(), self.hosts.join(",")]);
        } else if let Some(file) = &self.hostfile {
            words.extend(["--hostfile".into(), file.display().to_string()]);
        } else if let Some(file) = &self.nodes {
            words.extend(["--nodes".into(), file.display().to_string()]);
        } else if self.built_in_nodes {
            words.push("--built-in-nodes".into());
        }
        words.extend(self.pes.iter().flat_map(|pes| ["--pes".into(), pes.to_string()]));
        words
    }
}

/// The variable of the environment that names a nodes file.
const NODES_VARIABLE: &str = "METACHARE_NODES";
/// The nodes file of a folder, and that of the current one.
const HERE: &str = "nodes.toml";

/// Where nodes files are looked for that nobody names.
fn usual_files() -> Vec<PathBuf> {
    let own = folders::of_user("XDG_CONFIG_HOME", ".config").map(|folder| folder.join(HERE));
    std::iter::once(PathBuf::from(HERE)).chain(own).collect()
}

impl NodesOptions {
    pub(crate) fn load(&self) -> Result<ClusterConfig, Failure> {
        let mut config = self.choice.load()?;
        match self.transport {
            Some(TransportChoice::Auto) => config.network.transport = Transport::Auto,
            Some(TransportChoice::Quic) => config.network.transport = Transport::Quic,
            None => {}
        }
        Ok(config)
    }

    /// Says which nodes are taken, and who has named them: whoever finds other machines busy than were meant sees why.
    pub(crate) fn say_which(&self, config: &ClusterConfig) {
        note(&self.choice.sentence(config, std::env::var_os(NODES_VARIABLE)));
    }

    /// The same nodes and patience on the command line of another command; which of the nodes is left open.
    pub(crate) fn as_words(&self) -> Vec<String> {
        let mut words = vec!["--start-timeout".into(), self.start_timeout.as_secs_f64().to_string()];
        words.extend(self.choice.as_words());
        if let Some(transport) = self.transport.and_then(|choice| choice.to_possible_value()) {
            words.extend(["--transport".into(), transport.get_name().into()]);
        }
        words
    }

    /// How they are started.
    pub(crate) fn launch(&self, config: &ClusterConfig) -> Result<LaunchOptions, Failure> {
        launch_options(config, self.start_timeout)
    }
}

/// How nodes are started; `METACHARE_SSH` names another ssh and its first arguments.
pub(crate) fn launch_options(
    config: &ClusterConfig,
    start_deadline: Duration,
) -> Result<LaunchOptions, Failure> {
    let mut options =
        LaunchOptions { binaries: config.binaries.clone(), start_deadline, ..LaunchOptions::default() };
    if let Some(ssh) = std::env::var_os("METACHARE_SSH") {
        let ssh =
            ssh.into_string().map_err(|_| Failure::new(Kind::Usage, "METACHARE_SSH is no text; unset it"))?;
        options.ssh = ssh.split_whitespace().map(ToString::to_string).collect();
    }
    Ok(options)
}

/// The nodes file of that name, or else the usual one, or the built-in nodes.
pub(crate) fn nodes_file(named: Option<&Path>) -> Result<ClusterConfig, Failure> {
    let environment = std::env::var_os(NODES_VARIABLE).filter(|name| !name.is_empty());
    let named = named.map(Path::to_path_buf).or(environment.map(PathBuf::from));
    ClusterConfig::load(named.as_deref(), &usual_files()).map_err(|e| Failure::new(Kind::Config, e))
}

impl RunOptions {
    /// The name that the run is to have, if no other run here has it.
    pub(crate) fn free_name(&self) -> Result<Option<String>, Failure> {
        let Some(name) = &self.name else { return Ok(None) };
        // Where nobody can be watched no name is taken.
        if runtime::monitor::socket::runs().unwrap_or_default().contains(name) {
            let sentence =
                format!("--name: a run called {name:?} is under way here; give this one another name");
            return Err(Failure::new(Kind::Usage, sentence));
        }
        Ok(Some(name.clone()))
    }

    /// How much PEs are to find out about what they do.
    pub(crate) fn detail(&self) -> Detail {
        match (self.no_measuring, self.no_arrows) {
            (true, _) => Detail::Counts,
            (false, true) => Detail::Times,
            (false, false) => Detail::Single,
        }
    }

    /// Who balances, if anybody does, and how that was written: by what `--balance` or a run that goes on says.
    pub(crate) fn balancer(&self, said: &str) -> Result<Option<(Choice, String)>, Failure> {
        if said == "none" {
            return Ok(None);
        }
        if self.no_measuring {
            let sentence =
                "--no-measuring: a balancer has to know what chares cost; leave it out, or --balance";
            return Err(Failure::new(Kind::Usage, sentence));
        }
        let choice = said.parse().map_err(|e| Failure::new(Kind::Usage, e))?;
        Ok(Some((choice, said.into())))
    }

    pub(crate) fn shows_window(&self) -> bool {
        let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        self.watch || (self.watch_if_terminal && is_terminal)
    }

    /// Whether the speeds that were asked for are to be had: otherwise all nodes would count the same, and nobody
    /// would be told.
    pub(crate) fn check_speed(
        &self,
        is_asked_for: bool,
        has_kernel: bool,
        config: &ClusterConfig,
    ) -> Result<(), Failure> {
        let wrong = |sentence: String| Err(Failure::new(Kind::Usage, sentence));
        let has_speeds = config.nodes.iter().any(|node| node.speed.is_some());
        match self.speed {
            SpeedSource::File if !has_speeds => wrong(format!(
                "--speed file: no node of {} has a `speed`; set it there, or leave --speed out",
                config.source
            )),
            SpeedSource::Auto | SpeedSource::Measured | SpeedSource::Cached if is_asked_for && !has_kernel => wrong(
                "--speed: this application has no kernel to measure; leave it out, or give the speeds in the nodes \
                 file and say `--speed file`"
                    .into(),
            ),
            _ => Ok(()),
        }
    }
}

/// A time in seconds from the command line.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    times(text.trim(), 1.0)
        .ok_or_else(|| format!("give seconds, more than 0 and at most {}", TIME_MAX.as_secs()))
}

/// A time from the command line, with or without a unit.
fn every(text: &str) -> Result<Every, String> {
    let Some(steps) = text.trim().strip_suffix("steps") else { return time(text).map(Every::Time) };
    let steps = steps.trim().parse().ok().filter(|&steps: &u64| steps > 0);
    steps.map(Every::Steps).ok_or_else(|| "give a count of steps as 500steps, at least 1".into())
}

fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.trim().char_indices().next_back() {
        Some((at, 's')) => (&text.trim()[..at], 1.0),
        Some((at, 'm')) => (&text.trim()[..at], 60.0),
        Some((at, 'h')) => (&text.trim()[..at], 3600.0),
        _ => (text.trim(), 1.0),
    };
    times(number, unit).ok_or_else(|| {
        format!("give a time as 90s, 10m or 2h, more than 0 and at most {} s", TIME_MAX.as_secs())
    })
}

/// So many times so many seconds, if a clock can add them and they are more than none.
fn times(number: &str, seconds: f64) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
    (!time.is_zero() && time <= TIME_MAX).then_some(time)
}

/// A name for a run, which becomes part of a file's name and of certificates.
fn run_name(text: &str) -> Result<String, String> {
    let is_name = (1..=60).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    is_name.then(|| text.into()).ok_or_else(|| {
        "use 1 to 60 letters, digits, '.', '_' and '-', of which the first is a letter or digit".into()
    })
}

/// What `--balance` says, checked.
fn balance(text: &str) -> Result<String, String> {
    text.parse::<Choice>().map(|_| text.into()).map_err(|error| error.to_string())
}

fn balance_help() -> String {
    let line = |name: &str, about: &str| format!("\n- {name}: {about}");
    let auto = line("auto", "whenever it pays, by whichever of the others brings most");
    let others = BALANCERS.iter().map(|one| line(one.name, one.about));
    let all: String = std::iter::once(auto).chain(others).collect();
    format!("Who moves chares between PEs while the run goes on, by the processor time that they take:{all}")
}

/// The first names, and how many more there are.
pub(crate) fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

/// The name of this machine; empty if the system does not tell.
pub(crate) fn this_host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().into()
}

/// How many cores this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(nodes: Option<&str>) -> NodesChoice {
        NodesChoice { nodes: nodes.map(PathBuf::from), ..NodesChoice::default() }
    }

    #[test]
    fn the_command_line_names_the_nodes_file_before_the_environment_and_an_empty_name_is_none() {
        let file = |named: Option<&str>, environment: Option<&str>| {
            options(named).file(environment.map(OsString::from)).map(|path| path.display().to_string())
        };
        assert_eq!(file(None, None), None);
        assert_eq!(file(None, Some("")), None);
        assert_eq!(file(None, Some("b")).as_deref(), Some("b"));
        assert_eq!(file(Some("a"), Some("b")).as_deref(), Some("a"));
    }

    #[test]
    fn the_first_line_says_which_nodes_are_taken_and_who_has_named_them() {
        let config = |source: &str| ClusterConfig { source: source.into(), ..ClusterConfig::embedded(4) };
        let names = "large, medium, small";
        let by_variable = || Some(OsString::from("b.toml"));
        let of_file = config("b.toml");
        for (choice, environment, end) in [
            (options(None), None, ""),
            (options(None), by_variable(), " (METACHARE_NODES)"),
            (options(Some("b.toml")), None, " (--nodes)"),
            (options(Some("b.toml")), by_variable(), " (--nodes)"),
            (
                NodesChoice { hostfile: Some("b.toml".into()), ..options(None) },
                by_variable(),
                " (--hostfile)",
            ),
        ] {
            let said = choice.sentence(&of_file, environment);
            assert_eq!(said, format!("on the nodes of b.toml{end}: {names}"));
        }
        let hosts = NodesChoice { hosts: vec!["a".into()], ..options(None) };
        let said = hosts.sentence(&config("--hosts"), by_variable());
        assert_eq!(said, format!("on the nodes of --hosts: {names}"));
        let built_in = NodesChoice { built_in_nodes: true, ..options(None) };
        let embedded = ClusterConfig::embedded(4);
        assert_eq!(
            built_in.sentence(&embedded, by_variable()),
            format!("on the built-in local nodes {names}")
        );
        assert!(options(None).sentence(&embedded, None).starts_with("there is no nodes file: "));
    }

    #[test]
    fn names_of_runs_are_names_of_files_everywhere() {
        for name in ["a", "night-3", "Ann.2026_11"] {
            assert_eq!(run_name(name).as_deref(), Ok(name));
        }
        for name in ["", "-a", ".a", "a/b", "a b", "é", &"a".repeat(61)] {
            assert!(run_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn times_may_have_units() {
        for (text, seconds) in [("90", 90.0), ("0.5s", 0.5), ("10m", 600.0), (" 2h ", 7200.0)] {
            assert_eq!(time(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "m", "10 parsecs", "-1m", "0s", "1e9h", "nan"] {
            assert!(time(text).unwrap_err().starts_with("give a time"), "{text}");
        }
    }

    #[test]
    fn a_run_is_saved_by_time_or_by_steps() {
        assert_eq!(every("500steps"), Ok(Every::Steps(500)));
        assert_eq!(every("1 steps"), Ok(Every::Steps(1)));
        assert_eq!(every("90s"), Ok(Every::Time(Duration::from_secs(90))));
        for text in ["steps", "0steps", "-1steps", "1.5steps", "10msteps"] {
            assert!(every(text).unwrap_err().starts_with("give a count of steps"), "{text}");
        }
        assert!(every("often").unwrap_err().starts_with("give a time"));
    }

    #[test]
    fn times_are_seconds_that_a_clock_can_add() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("1e8"), Ok(TIME_MAX));
        for text in ["0", "-0", "-1", "1e300", "1e9", "1e-12", "nan", "inf", "", "5s", "--quiet"] {
            let sentence = seconds(text).unwrap_err();
            assert_eq!(sentence, "give seconds, more than 0 and at most 100000000", "{text}");
        }
    }
}
