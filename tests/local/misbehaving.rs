//! A program that does what programs should not do, for tests of how runs end.

use clap::Args;
use command::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Lines {
    #[arg(long, default_value_t = 3, help = "Lines to print")]
    lines: u32,
    #[arg(long, help = "With escape sequences, and to standard error too")]
    escapes: bool,
}

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Steady {
    #[arg(long, default_value_t = 0.02, help = "Units of work")]
    work: f64,
    #[arg(
        long,
        default_value_t = 1.0,
        help = "Units that a PE does in a second, however busy the machine is"
    )]
    pace: f64,
}

/// Claims work by the clock instead of doing any, so that every PE has exactly its pace.
fn idler(steady: &Steady) -> chares::KernelCall {
    let pace = steady.pace;
    Box::new(move || {
        let began = std::time::Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        pace * began.elapsed().as_secs_f64()
    })
}

/// Prints on its node.
#[derive(Serialize, Deserialize)]
struct Talker;

/// Print these lines, then say so.
#[derive(Clone, Serialize, Deserialize)]
struct Talk(Lines, Callback<chares::Sum<u64>>);

chares::entries!(Talker: Talk; reduces chares::Sum<u64> as "Said");

impl Chare for Talker {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}

impl Entry<Talk> for Talker {
    fn receive(&mut self, Talk(lines, done): Talk, ctx: &mut Ctx<'_, Self>) {
        for n in 0..lines.lines {
            if lines.escapes {
                println!("\u{1b}]0;owned\u{7}\u{1b}[31mline {n}");
                eprintln!("\u{1b}[2Jerror {n}\u{9b}1m");
            } else {
                println!("line {n}");
            }
        }
        ctx.contribute(chares::Sum(u64::from(lines.lines)), done);
    }
}

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Naps {
    #[arg(long, default_value_t = 10, help = "Seconds that an entry method sleeps")]
    seconds: u64,
}

/// Sleeps in an entry method.
#[derive(Serialize, Deserialize)]
struct Sleeper;

/// Sleep for so many seconds, then say so.
#[derive(Clone, Serialize, Deserialize)]
struct Sleep(u64, Callback<chares::Sum<u64>>);

chares::entries!(Sleeper: Sleep; reduces chares::Sum<u64> as "Slept");

impl Chare for Sleeper {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}

impl Entry<Sleep> for Sleeper {
    fn receive(&mut self, Sleep(seconds, done): Sleep, ctx: &mut Ctx<'_, Self>) {
        std::thread::sleep(Duration::from_secs(seconds));
        ctx.contribute(chares::Sum(seconds), done);
    }
}

fn sleeping(main: &mut Driver, naps: Naps) -> Result<(), RunError> {
    let sleepers = main.array::<Sleeper>(2, ());
    main.init_over()?;
    let (callback, slept) = main.pending();
    sleepers.broadcast(main, Sleep(naps.seconds, callback));
    slept.wait(main).map(drop)
}

/// Asks chares again and again, and says how long it waited most.
fn asking(main: &mut Driver, naps: Naps) -> Result<(), RunError> {
    let sleepers = main.array::<Sleeper>(2, ());
    main.init_over()?;
    let (began, mut most) = (Instant::now(), Duration::ZERO);
    while began.elapsed() < Duration::from_secs(naps.seconds) {
        let asked = Instant::now();
        let (callback, slept) = main.pending();
        sleepers.broadcast(main, Sleep(0, callback));
        slept.wait(main)?;
        most = most.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("waited {} ms at most", most.as_millis());
    Ok(())
}

/// Never looks at its run again, in the middle of a file.
fn stubborn(main: &mut Driver, _: Lines) -> Result<(), RunError> {
    let unfinished = |e: std::io::Error| RunError::Output(e.to_string());
    let _file = command::Replacement::create("results.txt".as_ref()).map_err(unfinished)?;
    main.init_over()?;
    loop {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn panicking(main: &mut Driver, _: Lines) -> Result<(), RunError> {
    main.init_over()?;
    panic!("a driver's mistake");
}

fn printing(main: &mut Driver, lines: Lines) -> Result<(), RunError> {
    main.init_over()?;
    (0..lines.lines).for_each(|n| println!("line {n}"));
    Ok(())
}

fn steady(main: &mut Driver, _: Steady) -> Result<(), RunError> {
    main.init_over()
}

fn talking(main: &mut Driver, lines: Lines) -> Result<(), RunError> {
    let talkers = main.array::<Talker>(2, ());
    main.init_over()?;
    let (callback, said) = main.pending();
    talkers.broadcast(main, Talk(lines, callback));
    said.wait(main).map(drop)
}

fn main() -> std::process::ExitCode {
    let program = Program::new("misbehaving", "1.0").chare::<Talker>().chare::<Sleeper>();
    let steady = App::new("steady", "Does nothing, at a steady pace", steady)
        .kernel(idler)
        .kernel_key(|_| String::new())
        .work(|steady| steady.work);
    program
        .app(steady)
        .app(App::new("stubborn", "Does not wait for its run", stubborn))
        .app(App::new("panicking", "Panics", panicking))
        .app(App::new("printing", "Prints", printing))
        .app(App::new("sleeping", "Sleeps in entry methods", sleeping))
        .app(App::new("asking", "Asks chares again and again", asking))
        .app(App::new("talking", "Prints on the nodes", talking))
        .main()
}
