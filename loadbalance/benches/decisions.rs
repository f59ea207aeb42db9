//! How long a decision takes and what memory: all balancers, from 10,000 chares on 16 PEs to 1,000,000 on 16,384.
//!
//! ```text
//! cargo bench -p metachare-loadbalance --bench decisions
//! ```
//!
//! Targets: 10,000 chares on 16 PEs in 10 ms, 100,000 on 64 in 100 ms.

use loadbalance::Part;
use loadbalance::balance::auto::{Auto, Sample, Settings};
use loadbalance::balance::random::Random;
use loadbalance::balance::{BALANCERS, Balancer, Chare, Choice, Edge, View};
use std::time::Instant;

const SIZES: [(u32, u32); 4] = [(10_000, 16), (100_000, 64), (1_000_000, 1024), (1_000_000, 16_384)];
/// Decisions of which the median is taken.
const TURNS: usize = 5;

fn main() {
    let names = BALANCERS.iter().map(|named| named.name.to_owned()).filter(|name| name != "none");
    let mut texts: Vec<String> = names.collect();
    texts.push("diffusion:hops=1".into());
    texts.push("greedy-refine:comm".into());
    println!(
        "seconds of a decision (median of {TURNS}); what it leaves of the imbalance; chares moved; peak memory"
    );
    for (chares, pes) in SIZES {
        let view = view(chares, pes);
        let before = view.check().map_or(0.0, |checked| checked.times.imbalance());
        println!("\n{chares} chares on {pes} PEs, longest over ideal time {before:.3}");
        for text in &texts {
            let Ok(Choice::Always(balancer)) = text.parse() else { continue };
            line(text, balancer.as_ref(), &view);
        }
        auto(&view);
    }
}

fn line(text: &str, balancer: &dyn Balancer, view: &View) {
    let base = memory("VmRSS");
    // Whether the kernel forgets the old peak does not matter but for the column of memory.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (seconds, decision) = median(|| balancer.decide(view));
    let peak = memory("VmHWM").saturating_sub(base);
    match decision {
        Ok(decision) => println!(
            "{text:20} {:9.2} ms {:7.3} {:8} {:6} MiB",
            seconds * 1e3,
            decision.after,
            decision.moves.len(),
            peak >> 10
        ),
        Err(why) => println!("{text:20} {why}"),
    }
}

/// `auto` looks at a view three times before it decides: the time of the decision.
fn auto(view: &View) {
    let sample = |second: u32| Sample {
        now_s: f64::from(second),
        view,
        gone: &[],
        span_s: 1.0,
        left_s: None,
        left_work: None,
        bytes_per_s: 1e9,
        away_s: 1e-6,
        decide_s: 0.0,
    };
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let mut auto = Auto::new(Settings::default());
        (1..4).for_each(|second| _ = auto.observe(&sample(second)));
        let begin = Instant::now();
        let answer = auto.observe(&sample(4));
        times.push(begin.elapsed().as_secs_f64());
        assert!(answer.is_ok());
    }
    times.sort_by(f64::total_cmp);
    println!("{:20} {:9.2} ms", "auto", times[TURNS / 2] * 1e3);
}

fn median<T>(mut decide: impl FnMut() -> T) -> (f64, T) {
    let mut timed = || {
        let begin = Instant::now();
        let result = decide();
        (begin.elapsed().as_secs_f64(), result)
    };
    let mut turns: Vec<(f64, T)> = (0..TURNS).map(|_| timed()).collect();
    turns.sort_by(|one, other| one.0.total_cmp(&other.0));
    turns.swap_remove(TURNS / 2)
}

/// Kilobytes of this process, as the kernel counts them.
fn memory(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// PEs of four speeds on nodes of eight; loads between 0.5 and 1.5; neighbours in the list live together and talk to each
/// other, and every sixteenth PE has three times its share.
fn view(chares: u32, pes: u32) -> View {
    let mut random = Random::new(1);
    let part = |pe: u32| Part { node: pe as usize / 8, speed: [1.0, 0.8, 0.5, 0.25][pe as usize / 8 % 4] };
    let parts: Vec<Part> = (0..pes).map(part).collect();
    let weight = |pe: u32| parts[pe as usize].speed * if pe % 16 == 3 { 3.0 } else { 1.0 };
    let total: f64 = (0..pes).map(weight).sum();
    let mut view = View::new(&parts, []);
    let mut before = 0.0;
    for pe in 0..pes {
        before += weight(pe);
        let end = (f64::from(chares) * before / total).round() as usize;
        while view.chares.len() < end {
            view.chares.push(Chare { pe, load: 0.5 + random.part(), bytes: 10_000, ..Chare::default() });
        }
    }
    let side = f64::from(chares).sqrt() as u32;
    for chare in 0..view.chares.len() as u32 {
        view.places.push([f64::from(chare / side), f64::from(chare % side), 0.0]);
        for other in [chare + 1, chare + side] {
            if (other as usize) < view.chares.len() {
                view.edges.push(Edge { one: chare, other, bytes: 1000, messages: 1 });
            }
        }
    }
    view
}
