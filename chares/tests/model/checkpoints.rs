//! Runs that are saved on their way, and go on from there on other nodes: every test of this folder does so too.

use chares::checkpoint::{GoOn, Keeper};
use chares::prelude::*;
use chares::{InProcess, Program};
use runtime::envelope::Packed;
use runtime::saved::RecordHeader;
use std::sync::{Arc, Mutex};

/// A checkpoint that is kept in memory.
#[derive(Clone, Default)]
struct Snapshot {
    driver: Packed,
    records: Vec<(RecordHeader, Packed)>,
}

impl Snapshot {
    fn go_on(&self) -> GoOn {
        GoOn { driver: self.driver.clone(), records: Box::new(self.records.clone().into_iter().map(Ok)) }
    }
}

/// Takes a checkpoint each time that it has been asked so often.
struct InMemory {
    every: u32,
    asked: u32,
    under_way: Snapshot,
    taken: Arc<Mutex<Vec<Snapshot>>>,
}

/// More are not taken of one run.
const MOST: usize = 3;

impl InMemory {
    fn new(every: u32) -> (Self, Arc<Mutex<Vec<Snapshot>>>) {
        let taken = Arc::default();
        (Self { every, asked: 0, under_way: Snapshot::default(), taken: Arc::clone(&taken) }, taken)
    }
}

impl Keeper for InMemory {
    fn is_due(&mut self) -> bool {
        self.asked += 1;
        self.asked.is_multiple_of(self.every) && self.taken.lock().unwrap().len() < MOST
    }
    fn begin(&mut self) -> Result<(), String> {
        self.under_way = Snapshot::default();
        Ok(())
    }
    fn put(&mut self, header: RecordHeader, _: &str, packed: Packed) -> Result<(), String> {
        // What is sent between threads of one process shares its memory: what is kept must not change with it.
        self.under_way.records.push((header, packed));
        Ok(())
    }
    fn commit(&mut self, driver: Packed) -> Result<(), String> {
        self.under_way.driver = driver;
        self.taken.lock().unwrap().push(std::mem::take(&mut self.under_way));
        Ok(())
    }
    fn discard(&mut self, why: &str) {
        panic!("{why}");
    }
}

/// Runs with checkpoints, and goes on from each of them on other nodes with as many PEs; how many there were.
pub(crate) fn run_and_go_on(
    program: impl Fn() -> Program,
    mix: &InProcess,
    every: u32,
    drive: impl Fn(&mut Driver) -> Result<(), RunError>,
) -> usize {
    let (keeper, taken) = InMemory::new(every);
    let mut keeper = Some(keeper);
    let keeper = Mutex::new(keeper.take());
    let first = program().run_in_process(mix, |main| {
        if let Some(keeper) = keeper.lock().unwrap().take() {
            main.keep_checkpoints(Box::new(keeper));
        }
        drive(main)
    });
    first.unwrap_or_else(|e| panic!("{mix:?}, every {every}: {e}"));
    let taken = std::mem::take(&mut *taken.lock().unwrap());
    let total: u32 = mix.pes.iter().sum();
    let others =
        [vec![total], vec![1; total as usize], [&[1], &vec![total - 1; usize::from(total > 1)][..]].concat()];
    for (number, (snapshot, pes)) in taken.iter().zip(others.iter().cycle()).enumerate() {
        let begun: Vec<u32> = [&[0], &mix.pes[..]].concat();
        let other = InProcess { pes: pes.clone(), ..mix.clone() }.begun(&begun);
        let again = program().run_in_process(&other, |main| {
            main.go_on_from(snapshot.go_on())?;
            drive(main)
        });
        again.unwrap_or_else(|e| panic!("from checkpoint {number} of {mix:?} on {pes:?}: {e}"));
    }
    taken.len()
}
