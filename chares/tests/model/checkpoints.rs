//! Runs that are saved on their way, and go on from there on other nodes: every test of this folder does so too.

use chares::checkpoint::{GoOn, Keeper, Kept, Mapping, Placing, Protocol, Restored, SavedRun};
use chares::prelude::*;
use chares::{InProcess, On, Program};
use runtime::checkpoint::{Record, SavedVariable};
use runtime::digest::Digested;
use runtime::envelope::Packed;
use runtime::ids::PeId;
use runtime::proto::sim::Random;
use runtime::saved::{RecordHeader, RecordOf, SavedPlace, SavedRecords};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A checkpoint that is kept in memory.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    driver: Packed,
    records: Vec<(RecordHeader, Packed)>,
    pub(crate) variables: Vec<SavedVariable>,
}

impl Snapshot {
    /// How many chares it holds.
    pub(crate) fn chares(&self) -> usize {
        self.records.iter().filter(|(header, _)| matches!(header.of, RecordOf::Chare(_))).count()
    }

    /// How many records it holds of messages that were on their way, by the PEs that received them.
    pub(crate) fn late(&self) -> Vec<PeId> {
        let late = self.records.iter().filter_map(|(header, _)| match header.of {
            RecordOf::Late { by } => Some(by),
            _ => None,
        });
        late.collect()
    }

    /// Bytes of what PEs keep beside their chares.
    pub(crate) fn pe_bytes(&self) -> usize {
        let of_pes = self.records.iter().filter(|(header, _)| matches!(header.of, RecordOf::Pe));
        of_pes.map(|(_, packed)| packed.len_bytes()).sum()
    }

    fn where_pe<'a>(&'a self, is_wanted: impl Fn(PeId) -> bool + 'a) -> SavedRecords<'a> {
        Box::new(self.records.iter().filter(move |(header, _)| is_wanted(header.pe)).cloned().map(Ok))
    }

    pub(crate) fn go_on(&self) -> GoOn {
        let (driver, variables) = (self.driver.clone(), self.variables.clone());
        GoOn { driver, run: Box::new(self.clone()), variables, placing: None, tell: Box::new(|_| {}) }
    }

    /// With chares that are placed anew.
    fn go_on_placed(&self, mapping: Option<Mapping>, speeds: &[f64]) -> GoOn {
        // Some are measured, in a unit of their own.
        let rates = mapping.map(|_| speeds.iter().map(|speed| 1e9 * speed).collect());
        let placing = Placing { mapping, speeds: speeds.to_vec(), rates, tell: Box::new(|_| {}) };
        GoOn { placing: Some(placing), ..self.go_on() }
    }
}

impl SavedRun for Snapshot {
    fn place(&self) -> Option<SavedPlace> {
        None
    }
    fn shared(&self) -> SavedRecords<'_> {
        self.where_pe(|pe| pe == PeId::DRIVER)
    }
    fn counts(&self) -> BTreeMap<PeId, u64> {
        let mut counts = BTreeMap::new();
        for (header, _) in self.records.iter().filter(|(header, _)| header.pe != PeId::DRIVER) {
            *counts.entry(header.pe).or_default() += 1;
        }
        counts
    }
    fn of_pe(&self, pe: PeId, first: u64) -> SavedRecords<'_> {
        Box::new(self.where_pe(move |of| of == pe).skip(first as usize))
    }
    fn heads_of_pe(&self, pe: PeId, count: u64) -> SavedRecords<'_> {
        Box::new(self.where_pe(move |of| of == pe).take(count as usize))
    }
    fn nodes_have_read(&self, bytes: u64) {
        panic!("{bytes} bytes of what is in memory");
    }
    fn restored(&self) -> Restored {
        Restored::default()
    }
}

/// Takes a checkpoint whenever its rule says so, which is told whether the moment is a good one.
pub(crate) struct InMemory {
    rule: Box<dyn FnMut(bool) -> bool + Send>,
    under_way: Snapshot,
    taken: Arc<Mutex<Vec<Snapshot>>>,
    is_awaited: bool,
    protocol: Protocol,
}

/// More are not taken of one run.
const MOST: usize = 4;

impl InMemory {
    /// One each time that it has been asked so often. The driver goes on meanwhile, unless every wait is to have one.
    pub(crate) fn new(every: u32) -> (Self, Arc<Mutex<Vec<Snapshot>>>) {
        let mut asked = 0u32;
        let (keeper, taken) = Self::by(move |_| {
            asked += 1;
            asked.is_multiple_of(every)
        });
        (Self { is_awaited: every == 1, ..keeper }, taken)
    }

    /// The driver goes on meanwhile.
    pub(crate) fn meanwhile(self) -> Self {
        Self { is_awaited: false, ..self }
    }

    /// Nobody stands still for it.
    pub(crate) fn by_snapshot(self) -> Self {
        Self { protocol: Protocol::Snapshot, ..self.meanwhile() }
    }

    /// One whenever the rule says so.
    pub(crate) fn by(rule: impl FnMut(bool) -> bool + Send + 'static) -> (Self, Arc<Mutex<Vec<Snapshot>>>) {
        let (taken, under_way) = (Arc::default(), Snapshot::default());
        let keeper = Self {
            rule: Box::new(rule),
            under_way,
            taken: Arc::clone(&taken),
            is_awaited: true,
            protocol: Protocol::Barrier,
        };
        (keeper, taken)
    }
}

/// Drives a run of which checkpoints are taken by that rule; what it gave, and they.
pub(crate) fn run_and_keep<R>(
    program: Program,
    mix: &InProcess,
    rule: impl FnMut(bool) -> bool + Send + 'static,
    drive: impl FnOnce(&mut Driver) -> Result<R, RunError>,
) -> (R, Vec<Snapshot>) {
    let (keeper, taken) = InMemory::by(rule);
    let result = program.run_in_process(mix, |main| {
        main.keep_checkpoints(Box::new(keeper));
        drive(main)
    });
    let taken = std::mem::take(&mut *taken.lock().unwrap());
    (result.unwrap(), taken)
}

impl Keeper for InMemory {
    fn is_due(&mut self, is_good_moment: bool) -> Option<Protocol> {
        let is_due = (self.rule)(is_good_moment) && self.taken.lock().unwrap().len() < MOST;
        is_due.then_some(self.protocol)
    }
    fn begin(&mut self) -> Result<bool, String> {
        self.under_way = Snapshot::default();
        Ok(false)
    }
    fn put(
        &mut self,
        header: RecordHeader,
        type_name: &str,
        packed: Packed,
        _: Vec<Digested>,
    ) -> Result<(), String> {
        // As a store has it: what all share is of no PE, whoever has saved it.
        let record = Record::of_run(header, type_name, packed);
        let header = record.header().ok_or("it is no record of a run")?;
        // What is sent between threads of one process shares its memory: what is kept must not change with it.
        self.under_way.records.push((header, record.packed));
        Ok(())
    }
    fn commit(&mut self, driver: Packed, variables: Vec<SavedVariable>) -> Result<Kept, String> {
        self.under_way.driver = driver;
        self.under_way.variables = variables;
        self.taken.lock().unwrap().push(std::mem::take(&mut self.under_way));
        Ok(Kept::default())
    }
    fn discard(&mut self, why: &str) {
        panic!("{why}");
    }
    fn is_awaited(&self) -> bool {
        self.is_awaited
    }
}

/// Runs with a checkpoint every so many waits, and goes on from each of them on other nodes with as many PEs, where chares may
/// be placed anew if they may move at all; how many there were.
pub(crate) fn run_and_go_on(
    program: impl Fn() -> Program,
    mix: &InProcess,
    (every, may_move, protocol): (u32, bool, Protocol),
    drive: impl Fn(&mut Driver) -> Result<(), RunError>,
) -> usize {
    let new = || {
        let (keeper, taken) = InMemory::new(every);
        if protocol == Protocol::Snapshot { (keeper.by_snapshot(), taken) } else { (keeper, taken) }
    };
    let (keeper, taken) = new();
    let keeper = Mutex::new(Some(keeper));
    let first = program().run_in_process(mix, |main| {
        if let Some(keeper) = keeper.lock().unwrap().take() {
            main.keep_checkpoints(Box::new(keeper));
        }
        drive(main)
    });
    first.unwrap_or_else(|e| panic!("{mix:?}, every {every}, {protocol:?}: {e}"));
    let taken = std::mem::take(&mut *taken.lock().unwrap());
    // While all stand still nothing is on its way when they pack.
    let late: usize = taken.iter().map(|snapshot| snapshot.late().len()).sum();
    assert!(late == 0 || protocol == Protocol::Snapshot, "{late} messages of {mix:?} came late");
    let total: u32 = mix.pes.iter().sum();
    let others = [
        vec![total],
        vec![1; total as usize],
        vec![total + 2, 1],
        [&[1], &vec![total - 1; usize::from(total > 1)][..]].concat(),
    ];
    for (number, (snapshot, pes)) in taken.iter().zip(others.iter().cycle()).enumerate() {
        let mappings = [None, Some(Mapping::Cyclic), Some(Mapping::Keep), Some(Mapping::Comm)];
        let mapping = if may_move { mappings[number % 4] } else { Some(Mapping::Keep) };
        let go_on = snapshot.go_on_placed(mapping, &[1.0, 0.5]);
        // Of the last run checkpoints are taken too, and from one of those another goes on.
        let is_last = number + 1 == taken.len();
        let (keeper, again) = is_last.then(new).unzip();
        let from = || format!("from checkpoint {number} ({protocol:?}) of {mix:?} on {pes:?}");
        let gone_on = go_on_elsewhere(program(), mix, (go_on, keeper), pes, &drive);
        gone_on.unwrap_or_else(|e| panic!("{}: {e}", from()));
        if let Some(again) = again.and_then(|again| again.lock().unwrap().pop()) {
            let gone_on = go_on_elsewhere(program(), mix, (again.go_on(), None), &[total + 3], &drive);
            gone_on.unwrap_or_else(|e| panic!("{}, and from there: {e}", from()));
        }
    }
    taken.len()
}

/// Drives a run of that mix from a checkpoint on, on nodes with so many PEs, and may keep checkpoints of it.
pub(crate) fn go_on_elsewhere(
    program: Program,
    mix: &InProcess,
    (go_on, keeper): (GoOn, Option<InMemory>),
    pes: &[u32],
    drive: impl FnOnce(&mut Driver) -> Result<(), RunError>,
) -> Result<(), RunError> {
    let begun: Vec<u32> = [&[0], &mix.pes[..]].concat();
    let other = InProcess { pes: pes.to_vec(), ..mix.clone() }.begun(&begun);
    program.run_in_process(&other, |main| {
        keeper.into_iter().for_each(|keeper| main.keep_checkpoints(Box::new(keeper)));
        main.go_on_from(go_on)?;
        drive(main)
    })
}

#[derive(Serialize, Deserialize)]
struct Counter(u64);
#[derive(Serialize, Deserialize)]
struct Count(u64, Callback<Sum<u64>>);
chares::entries!(Counter: Count; reduces Sum<u64>);
impl Chare for Counter {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self(0)
    }
}
impl Entry<Count> for Counter {
    fn receive(&mut self, Count(by, to): Count, ctx: &mut Ctx<'_, Self>) {
        self.0 += by;
        ctx.contribute(Sum(self.0), to);
    }
}

pub(crate) fn counting() -> Program {
    Program::new("counting", "1").chare::<Counter>()
}

/// Counts `steps` times; the sum of the last time.
pub(crate) fn count(main: &mut Driver, steps: u64) -> Result<u64, RunError> {
    let counters = main.array::<Counter>(9, ());
    let mut last = 0;
    for _ in 0..steps {
        let (to, sum) = main.pending();
        counters.broadcast(main, Count(1, to));
        last = sum.wait(main)?.0;
    }
    Ok(last)
}

/// A checkpoint of a run that counts, the last of it.
fn snapshot() -> Snapshot {
    let (keeper, taken) = InMemory::new(1);
    let keeper = Mutex::new(Some(keeper));
    let counted = counting().run_in_process(&InProcess::new(&[2, 1]), |main| {
        if let Some(keeper) = keeper.lock().unwrap().take() {
            main.keep_checkpoints(Box::new(keeper));
        }
        count(main, 5)
    });
    assert_eq!(counted.unwrap(), 45);
    let mut taken = taken.lock().unwrap();
    taken.pop().expect("a run that waits has checkpoints")
}

/// What a run says that goes on from a checkpoint with this driver.
fn go_on<R>(
    snapshot: &Snapshot,
    pes: &[u32],
    drive: impl Fn(&mut Driver) -> Result<R, RunError>,
) -> Result<R, RunError> {
    counting().run_in_process(&InProcess::new(pes).begun(&[0, 2, 1]), |main| {
        main.go_on_from(snapshot.go_on())?;
        drive(main)
    })
}

#[test]
fn a_driver_that_does_something_else_is_told_so() {
    let snapshot = snapshot();
    assert_eq!(go_on(&snapshot, &[3], |main| count(main, 5)).unwrap(), 45);
    // Who counts longer than then goes on where the checkpoint was.
    assert_eq!(go_on(&snapshot, &[1, 1, 1], |main| count(main, 7)).unwrap(), 63);
    let other = go_on(&snapshot, &[3], |main| main.quiescence()).unwrap_err().to_string();
    assert!(other.contains("it waited for result 1 (Sum<u64>) then, and for quiescence now"), "{other}");
    assert!(other.contains("`Driver::once`"), "{other}");
    let less = go_on(&snapshot, &[3], |main| count(main, 2).and_then(|_| main.has_caught_up()));
    let less = less.unwrap_err().to_string();
    assert!(less.contains("it ended where it waited for result 3 (Sum<u64>) then"), "{less}");
    let more = go_on(&snapshot, &[3], |main| {
        main.array::<Counter>(1, ());
        count(main, 5)
    });
    let more = more.unwrap_err().to_string();
    assert!(more.contains("it has made 2 collections, sections and variables"), "{more}");
}

#[test]
fn a_checkpoint_is_for_as_many_pes_as_the_run_had() {
    let snapshot = snapshot();
    let refused = counting().run_in_process(&InProcess::new(&[2]), |main| {
        main.go_on_from(snapshot.go_on())?;
        count(main, 5)
    });
    let refused = refused.unwrap_err().to_string();
    assert_eq!(refused, "the checkpoint is of a run with 3 PEs, and this one has 2");
}

#[test]
fn chares_are_placed_anew_by_the_speeds_of_now() {
    let snapshot = snapshot();
    for mapping in [None, Some(Mapping::Cyclic), Some(Mapping::Comm)] {
        let go_on = snapshot.go_on_placed(mapping, &[0.75, 0.25, 1.0, 0.25]);
        let outcome = counting().run_in_process(&InProcess::new(&[1, 2, 1]).begun(&[0, 2, 1]), |main| {
            main.go_on_from(go_on)?;
            let counted = count(main, 7)?;
            let pes = main.snapshots()?.into_iter().flat_map(|node| node.pes);
            let chares: Vec<u64> = pes.map(|pe| pe.chares).collect();
            Ok((counted, chares, main.speeds()))
        });
        // Whoever asks hears of them from now on, as far as they are of PEs with which the run began.
        let speeds = vec![0.75, 0.25, 1.0];
        assert_eq!(outcome.unwrap(), (63, vec![3, 1, 4, 1], speeds), "{mapping:?}");
    }
}

/// How many messages a PE has made and processed is in its own record: without it nobody would know that all is done.
#[test]
fn a_checkpoint_that_lacks_a_pe_is_refused() {
    let good = snapshot();
    for pe in 0..3 {
        let mut snapshot = good.clone();
        snapshot.records.retain(|(header, _)| header.pe != PeId(pe) || header.of != RecordOf::Pe);
        assert_eq!(snapshot.records.len(), good.records.len() - 1);
        let why = go_on(&snapshot, &[2, 1], |main| count(main, 5)).unwrap_err().to_string();
        let missing =
            format!("what was saved of PE {pe} is not whole: the record of the PE itself is missing");
        assert!(why.contains(&missing), "{why}");
    }
}

/// Whatever a checkpoint holds, a run that goes on from it ends, with a sentence or rightly.
#[test]
fn damaged_checkpoints_are_refused_in_a_sentence() {
    let (mut random, good) = (Random::new(19), snapshot());
    for number in 0..16 {
        let mut snapshot = good.clone();
        let records = snapshot.records.len() as u64;
        match number % 4 {
            0 => drop(snapshot.records.remove(random.below(records) as usize)),
            1 => {
                let at = random.below(records) as usize;
                let again = snapshot.records[at].clone();
                snapshot.records.push(again);
            }
            2 => {
                let record = &mut snapshot.records[random.below(records) as usize].1;
                record.body = random.mutated(&record.body).into();
            }
            _ => snapshot.driver.body = random.mutated(&snapshot.driver.body).into(),
        }
        if let Err(why) = go_on(&snapshot, &[2, 1], |main| count(main, 5)) {
            let why = why.to_string();
            assert!(!why.is_empty() && why.len() < 600, "{why}");
        }
    }
}

/// A single chare that knows which one it is.
#[derive(Serialize, Deserialize)]
struct Numbered(u32);
#[derive(Serialize, Deserialize)]
struct Say(Callback<u32>);
chares::entries!(Numbered: Say);
impl Chare for Numbered {
    type Index = ();
    type Init = u32;
    fn new(number: u32, _: &mut Ctx<'_, Self>) -> Self {
        Self(number)
    }
}
impl Entry<Say> for Numbered {
    fn receive(&mut self, Say(to): Say, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, self.0);
    }
}

/// Makes a chare a round, and asks all that there are which they are.
fn number(main: &mut Driver, rounds: u32, on: On) -> Result<(), RunError> {
    let mut made: Vec<Element<Numbered>> = Vec::new();
    for round in 0..rounds {
        made.push(main.chare(round, on));
        for (number, chare) in (0..).zip(&made) {
            let (to, said) = main.pending();
            chare.send(main, Say(to));
            let said = said.wait(main)?;
            if said != number {
                return Err(RunError::Failed(format!(
                    "chare {number} says in round {round} that it is {said}"
                )));
            }
        }
    }
    Ok(())
}

/// Where a chare has its home is a part of its address, and depends on speeds and on chance.
#[test]
fn a_driver_that_is_run_again_means_the_same_single_chares() {
    for on in [On::BySpeed, On::AtRandom, On::ByLoad, On::Here] {
        let program = || Program::new("numbered", "1").chare::<Numbered>();
        let begun = InProcess::new(&[2, 1]).speeds(&[1.0, 3.0, 2.0]);
        let (_, mut taken) = run_and_keep(program(), &begun, |_| true, |main| number(main, 7, on));
        // Again and again on other machines, each time from where the one before it had come to.
        for (pes, rounds) in [(&[1, 1, 1][..], 14), (&[3], 21), (&[1, 2], 28)] {
            let from = taken.pop().expect("a run that waits has checkpoints");
            let (keeper, next) = InMemory::new(1);
            let outcome = go_on_elsewhere(program(), &begun, (from.go_on(), Some(keeper)), pes, |main| {
                number(main, rounds, on)
            });
            assert!(outcome.is_ok(), "{on:?} on {pes:?}: {outcome:?}");
            taken = std::mem::take(&mut *next.lock().unwrap());
        }
    }
}
