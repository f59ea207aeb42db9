//! Runs that go on while a checkpoint of them is kept, however long that takes.

use crate::checkpoints::{InMemory, Snapshot, count, counting, go_on_elsewhere};
use chares::checkpoint::{Keeper, Kept, Protocol};
use chares::prelude::*;
use chares::{InProcess, RunError};
use runtime::checkpoint::SavedVariable;
use runtime::digest::Digested;
use runtime::envelope::Packed;
use runtime::saved::RecordHeader;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Keeps one checkpoint as another keeper would, but only when it is told to, or fails if it is told why.
struct Slow {
    keeper: InMemory,
    told: Receiver<Result<(), String>>,
    discarded: Arc<Mutex<Vec<String>>>,
}

impl Keeper for Slow {
    fn is_due(&mut self, is_good_moment: bool) -> Option<Protocol> {
        self.keeper.is_due(is_good_moment)
    }
    fn begin(&mut self) -> Result<bool, String> {
        self.keeper.begin()
    }
    fn put(
        &mut self,
        header: RecordHeader,
        name: &str,
        packed: Packed,
        digested: Vec<Digested>,
    ) -> Result<(), String> {
        self.keeper.put(header, name, packed, digested)
    }
    fn commit(&mut self, driver: Packed, variables: Vec<SavedVariable>) -> Result<Kept, String> {
        self.told.recv_timeout(Duration::from_secs(60)).map_err(|_| "nobody said anything".to_string())??;
        self.keeper.commit(driver, variables)
    }
    fn discard(&mut self, why: &str) {
        self.discarded.lock().unwrap().push(why.into());
    }
}

type Outcome = (Result<u64, RunError>, Vec<Snapshot>, Vec<String>);

/// A run of which one checkpoint is begun at each of these waits, or as soon as the one before is done with.
fn run(
    waits: &[u32],
    drive: impl FnOnce(&mut Driver, &Sender<Result<(), String>>) -> Result<u64, RunError>,
) -> Outcome {
    let (mut asked, waits) = (0, waits.to_vec());
    let (keeper, taken) = InMemory::by(move |_| {
        asked += 1;
        waits.contains(&asked)
    });
    let (tell, told) = channel();
    let discarded = Arc::default();
    let slow = Slow { keeper, told, discarded: Arc::clone(&discarded) };
    let result = counting().run_in_process(&InProcess::new(&[2, 1]), |main| {
        main.keep_checkpoints(Box::new(slow));
        let outcome = drive(main, &tell);
        // Nobody says anything any more.
        drop(tell);
        outcome
    });
    let taken = std::mem::take(&mut *taken.lock().unwrap());
    let discarded = std::mem::take(&mut *discarded.lock().unwrap());
    (result, taken, discarded)
}

#[test]
fn the_driver_goes_on_while_a_checkpoint_is_kept_and_the_end_waits_for_it() {
    let (counted, taken, discarded) = run(&[2], |main, tell| {
        let counted = count(main, 50)?;
        tell.send(Ok(())).unwrap();
        Ok(counted)
    });
    assert_eq!((counted.unwrap(), discarded), (450, vec![]));
    let [snapshot] = &taken[..] else { panic!("{} checkpoints", taken.len()) };
    // It is of before the end.
    for (steps, pes) in [(49, &[3][..]), (50, &[1, 2]), (60, &[1, 1, 1])] {
        let gone_on =
            go_on_elsewhere(counting(), &InProcess::new(&[2, 1]), (snapshot.go_on(), None), pes, |main| {
                assert_eq!(count(main, steps)?, 9 * steps);
                main.has_caught_up()
            });
        gone_on.unwrap();
    }
}

#[test]
fn one_that_cannot_be_kept_is_given_up_and_the_next_is_taken() {
    let (counted, taken, discarded) = run(&[1, 2], |main, tell| {
        count(main, 3)?;
        tell.send(Err("the disk is full".into())).unwrap();
        main.finish_keeping()?;
        let counted = count(main, 4)?;
        tell.send(Ok(())).unwrap();
        Ok(counted)
    });
    assert_eq!((counted.unwrap(), taken.len()), (36, 1));
    assert_eq!(discarded, ["the disk is full"]);
}

#[test]
fn a_run_that_fails_meanwhile_ends() {
    for said in [None, Some(Ok(())), Some(Err("the disk is full".to_string()))] {
        let may_be_whole = said.as_ref().is_some_and(Result::is_ok);
        let (failed, taken, _) = run(&[1], |main, tell| {
            count(main, 2)?;
            said.into_iter().for_each(|said| tell.send(said).unwrap());
            Err(RunError::Failed("why".into()))
        });
        assert_eq!(failed.unwrap_err().to_string(), "why");
        assert!(may_be_whole || taken.is_empty());
    }
}
