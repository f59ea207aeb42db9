//! What a program shows while it runs changes nothing of what it does.

use super::checkpoints::InMemory;
use chares::prelude::*;
use chares::{Axis, InProcess, Map, Program};
use runtime::monitor::hub::Hub;
use runtime::monitor::wire::{MonitorEvent, RunInfo};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Cell(u64);
#[derive(Serialize, Deserialize)]
struct Grow(Callback<Sum<u64>>);
#[derive(Serialize, Deserialize)]
struct Tell(Callback<u64>);
chares::entries!(Cell: Grow, Tell; reduces Sum<u64>);
impl Chare for Cell {
    type Index = u32;
    type Init = ();
    fn new((): (), ctx: &mut Ctx<'_, Self>) -> Self {
        Self(ctx.index().into())
    }
}
impl Entry<Grow> for Cell {
    fn receive(&mut self, Grow(to): Grow, ctx: &mut Ctx<'_, Self>) {
        self.0 += 1;
        ctx.contribute(Sum(self.0), to);
    }
}
impl Entry<Tell> for Cell {
    fn receive(&mut self, Tell(to): Tell, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, self.0);
    }
}

/// Shows maps to the viewers of a hub.
fn look(main: &mut Driver, hub: &Arc<Hub>) {
    let (asked, told) = (Arc::clone(hub), Arc::clone(hub));
    main.on_maps(move || asked.shows_maps(), move |map| told.publish(MonitorEvent::Map(map)));
}

const CELLS: u32 = 5;
const STEPS: u64 = 6;

fn program() -> Program {
    Program::new("cells", "1").chare::<Cell>()
}

/// Asks all cells; `leaves` answers are not waited for.
fn map(main: &mut Driver, cells: Array<Cell>, leaves: u32) -> Result<Vec<Map>, RunError> {
    let (to, told) = main.pending();
    cells.broadcast(main, Tell(to));
    let answers = (leaves..CELLS).map(|_| told.wait(main));
    let values: Vec<f64> = answers.map(|value| Ok(value? as f64)).collect::<Result<_, RunError>>()?;
    let axes = [Axis::new("x", 0.0, 5.0), Axis::new("y", 0.0, 1.0)];
    Ok(vec![Map::new("cells", axes, values.len(), &values)])
}

/// Lets cells grow, and shows them after each step; the sum at the end and how often they were shown.
fn drive(main: &mut Driver, leaves: u32) -> Result<(u64, u64), RunError> {
    let cells = main.array::<Cell>(CELLS, ());
    let (mut sum, mut shown) = (0, 0);
    for step in 0..STEPS {
        let (to, grown) = main.pending();
        cells.broadcast(main, Grow(to));
        sum = grown.wait(main)?.0;
        main.show_last(|main| {
            shown += 1;
            map(main, cells, if step % 2 == 0 { leaves } else { 0 })
        })?;
    }
    main.quiescence()?;
    Ok((sum, shown))
}

const SUM: u64 = 10 + STEPS * CELLS as u64;

#[test]
fn maps_are_made_only_if_somebody_looks_and_not_too_often() {
    let mix = InProcess::new(&[2, 1]);
    assert_eq!(program().run_in_process(&mix, |main| drive(main, 0)).unwrap(), (SUM, 0));
    let hub = Arc::new(Hub::new(RunInfo::default()));
    let watched = |leaves| {
        program().run_in_process(&mix, |main| {
            look(main, &hub);
            drive(main, leaves)
        })
    };
    let plain = hub.subscribe();
    assert_eq!(watched(0).unwrap(), (SUM, 0), "who looks sees no maps");
    let viewer = hub.subscribe_to_maps();
    assert_eq!(watched(0).unwrap(), (SUM, STEPS));
    let ranges = viewer.try_iter().filter_map(|event| match event {
        MonitorEvent::Map(map) => Some(map.range()[0]),
        _ => None,
    });
    assert_eq!(ranges.collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(watched(3).unwrap(), (SUM, STEPS), "answers that nobody waits for are nobody's");
    let often = program().run_in_process(&mix, |main| {
        look(main, &hub);
        let mut shown = 0;
        for _ in 0..50 {
            main.show(|_| {
                shown += 1;
                Ok(Vec::new())
            })?;
        }
        std::thread::sleep(Duration::from_millis(150));
        main.show(|_| {
            shown += 1;
            Ok(Vec::new())
        })?;
        Ok(shown)
    });
    assert!((2..10).contains(&often.unwrap()));
    assert!(plain.try_iter().all(|event| !matches!(event, MonitorEvent::Map(_))));
}

#[test]
fn what_makes_maps_only_asks() {
    let hub = Arc::new(Hub::new(RunInfo::default()));
    let _viewer = hub.subscribe_to_maps();
    let made = program().run_in_process(&InProcess::new(&[1]), |main| {
        look(main, &hub);
        main.show(|main| {
            main.array::<Cell>(1, ());
            Ok(Vec::new())
        })
    });
    assert!(made.unwrap_err().to_string().contains("may only ask"));
}

/// A run that was watched goes on where nobody looks, and the other way round.
#[test]
fn runs_go_on_from_checkpoints_whoever_looks() {
    let hub = Arc::new(Hub::new(RunInfo::default()));
    let _viewer = hub.subscribe_to_maps();
    for (is_watched, leaves) in [(true, 0), (true, 2), (false, 0)] {
        let (keeper, taken) = InMemory::new(1);
        let keeper = Mutex::new(Some(keeper));
        let first = program().run_in_process(&InProcess::new(&[2, 1]), |main| {
            main.keep_checkpoints(Box::new(keeper.lock().unwrap().take().unwrap()));
            if is_watched {
                look(main, &hub);
            }
            drive(main, leaves)
        });
        assert_eq!(first.unwrap(), (SUM, if is_watched { STEPS } else { 0 }));
        let taken = taken.lock().unwrap();
        assert!(!taken.is_empty());
        for (snapshot, is_watched) in taken.iter().flat_map(|snapshot| [(snapshot, true), (snapshot, false)])
        {
            let mix = InProcess::new(&[1, 1, 1]).begun(&[0, 2, 1]);
            let again = program().run_in_process(&mix, |main| {
                if is_watched {
                    look(main, &hub);
                }
                main.go_on_from(snapshot.go_on())?;
                drive(main, leaves)
            });
            assert_eq!(again.unwrap().0, SUM);
        }
    }
}
