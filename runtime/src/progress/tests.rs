//! Whatever PEs and the network's thread do at the same time, no task is left without somebody who runs it.

use super::*;
use crate::proto::sim::Random;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::oneshot;

const DEADLINE: Duration = Duration::from_secs(30);

/// A network whose only task counts how often it was woken.
struct Network {
    progress: Arc<Progress>,
    work: Arc<Notify>,
    done: Arc<AtomicU64>,
    thread: JoinHandle<()>,
    end: oneshot::Sender<()>,
}

impl Network {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let progress = Progress::new(runtime);
        let (work, done) = (Arc::new(Notify::new()), Arc::new(AtomicU64::new(0)));
        let (task_work, task_done) = (Arc::clone(&work), Arc::clone(&done));
        progress.runtime().spawn(async move {
            loop {
                task_work.notified().await;
                task_done.fetch_add(1, Ordering::SeqCst);
            }
        });
        let (end, ended) = oneshot::channel();
        let served = Arc::clone(&progress);
        let thread = std::thread::spawn(move || served.serve(ended).unwrap());
        Self { progress, work, done, thread, end }
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    fn wake(&self) {
        self.progress.wake(&self.work);
    }

    fn end(self) {
        self.end.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

/// Does `step` until it is true.
fn until(what: &str, mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < DEADLINE, "{what}");
        std::hint::spin_loop();
    }
}

fn take_turn(network: &Network) {
    until("an idle PE got no turn", || match network.progress.turn_soon() {
        Some(turn) => {
            turn.run(|| true);
            true
        }
        None => {
            std::thread::yield_now();
            false
        }
    });
}

#[test]
fn an_idle_pe_gets_the_turn_from_the_sleeping_thread_and_the_thread_gets_it_back() {
    let network = Network::start();
    for round in 0..20 {
        take_turn(&network);
        // The PE computes from here on, and sends in the middle of that.
        network.wake();
        until("nobody ran the tasks while the PE computed", || network.done() > round);
        // Now the thread has the turn; it sleeps in it.
        until("the thread does not take over", || network.progress.may_sleep());
    }
    network.end();
}

#[test]
fn what_a_pe_sends_leaves_in_its_own_turn() {
    let network = Network::start();
    until("an idle PE got no turn", || {
        let turn = network.progress.turn_soon();
        std::thread::yield_now();
        turn.is_some_and(|turn| {
            let before = network.done();
            network.wake();
            assert!(network.progress.has_kept(), "who has the turn does not sleep, so nobody is to be woken");
            turn.run(|| true);
            network.done() == before + 1
        })
    });
    network.end();
}

#[test]
fn a_pe_that_goes_to_sleep_leaves_the_turn_to_the_thread() {
    let network = Network::start();
    take_turn(&network);
    network.progress.leave();
    until("the thread does not take over", || network.progress.may_sleep());
    network.end();
}

#[test]
fn what_is_sent_while_the_thread_takes_the_turn_wakes_it() {
    let network = Network::start();
    for round in 0..20 {
        take_turn(&network);
        until("the thread does not take over", || network.progress.may_sleep());
        // The sender has seen the turn free before, and comes too late for what the thread passes on.
        network.progress.keep(&network.work);
        until("what was sent waits for the thread to wake up", || network.done() > round);
    }
    network.end();
}

/// Each PE sends, and then waits until what it has sent is done: in turns of its own, asleep, or at work.
#[test]
fn nothing_is_lost_however_threads_come_between_each_other() {
    const PES: u64 = 3;
    const SENDS: usize = 3_000;
    let network = Network::start();
    std::thread::scope(|scope| {
        for pe in 0..PES {
            let (network, mut random) = (&network, Random::new(pe + 1));
            scope.spawn(move || {
                // A task of its own, so that it waits for what it has sent itself.
                let (work, done) = (Arc::new(Notify::new()), Arc::new(AtomicU64::new(0)));
                let (task_work, task_done) = (Arc::clone(&work), Arc::clone(&done));
                network.progress.runtime().spawn(async move {
                    loop {
                        task_work.notified().await;
                        task_done.fetch_add(1, Ordering::SeqCst);
                    }
                });
                for sent in 0..SENDS {
                    for _ in 0..random.below(200) {
                        std::hint::spin_loop();
                    }
                    network.progress.wake(&work);
                    let is_idle = random.below(16) > 0;
                    if random.below(32) == 0 {
                        network.progress.leave();
                    }
                    until("what was sent is not done", || {
                        if let Some(turn) = is_idle.then(|| network.progress.turn_soon()).flatten() {
                            turn.run(|| random.below(3) == 0);
                        }
                        std::thread::yield_now();
                        done.load(Ordering::SeqCst) > sent as u64
                    });
                }
            });
        }
    });
    network.end();
}
