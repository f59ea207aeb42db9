//! What memory chares and connections take: of each run one figure, because memory that a process has had and given
//! back is not seen a second time.

use super::conductor::{Conductor, Kind, Make, Weigh};
use super::measure::{Arguments, Figures};
use super::player::{Meet, Play, Player, Throw};
use chares::On;
use chares::prelude::*;

/// Chares that are made at once: what their messages take meanwhile stays small beside them.
const BATCH: u64 = 1_000;
/// Batches that are weighed.
const BATCHES: u64 = 200;

pub(super) fn measure(main: &mut Driver, arguments: &Arguments) -> Result<Figures, RunError> {
    let batches = if arguments.brief { BATCHES / 10 } else { BATCHES };
    let pes = main.pe_count();
    // Connections first, and with single chares only: arrays, waves and variables reach all nodes, over connections
    // between them.
    let connection = connection(main, pes)?;
    let conductor: Element<Conductor> = main.chare((), On::Pe(0));
    make(main, &conductor)?;
    let before = weigh(main, &conductor)?;
    (0..batches).try_for_each(|_| make(main, &conductor))?;
    let chare = (weigh(main, &conductor)? - before) / (batches * BATCH) as f64;
    Ok([("memory/chare", chare), ("memory/connection", connection)]
        .map(|(key, figure)| (key.to_string(), vec![figure]))
        .into())
}

fn make(main: &mut Driver, conductor: &Element<Conductor>) -> Result<(), RunError> {
    let (done, made) = main.pending();
    conductor.send(main, Make(Kind::Idlers, BATCH, done));
    made.wait(main).map(drop)
}

/// The last node meets all others.
fn connection(main: &mut Driver, pes: u32) -> Result<f64, RunError> {
    let last = pes - 1;
    let scale: Element<Conductor> = main.chare((), On::Pe(last));
    let one: Element<Player> = main.chare((), On::Pe(last));
    let others: Vec<Element<Player>> = (0..last).map(|pe| main.chare((), On::Pe(pe))).collect();
    weigh(main, &scale)?;
    let before = weigh(main, &scale)?;
    for other in &others {
        other.send(main, Meet(one));
        one.send(main, Meet(*other));
        let (done, played) = main.pending();
        one.send(main, Play(Throw::Back(64), 10, done));
        played.wait(main)?;
    }
    Ok((weigh(main, &scale)? - before) / others.len() as f64)
}

fn weigh(main: &mut Driver, scale: &Element<Conductor>) -> Result<f64, RunError> {
    let (asker, bytes) = main.pending();
    scale.send(main, Weigh(asker));
    Ok(bytes.wait(main)? as f64)
}
