//! Chares that say all of themselves in one place, asked and told by methods of their proxies, on every mix.

use crate::on_every_mix;
use chares::prelude::*;
use chares::{Exchange, Gather, Max, On, Part};

/// An account with what has been paid into it.
#[chare]
struct Account {
    balance: u64,
    payments: Vec<(u32, String)>,
    #[rebuild(table)]
    table: Vec<u64>,
}

fn table() -> Vec<u64> {
    (0..10).map(|n| n * n).collect()
}

#[chare(name = "bank::Account", reduces(Max<u64> as "Richest"))]
impl Account {
    fn new(ctx: &mut Ctx<'_, Self>, first: u64, step: u64) -> Self {
        Self { balance: first + step * u64::from(ctx.index()), payments: Vec::new(), table: table() }
    }

    /// Takes in a payment.
    #[entry]
    fn pay(&mut self, amount: u64, from: u32, why: String) {
        self.balance += amount;
        self.payments.push((from, why));
    }

    #[entry]
    fn pay_to(&mut self, ctx: &mut Ctx<'_, Self>, to: Element<Self>, amount: u64) {
        self.balance -= amount;
        to.pay(ctx, amount, ctx.index(), format!("{amount} from {}", ctx.index()));
    }

    /// What it holds.
    #[entry]
    fn balance(&self) -> u64 {
        self.balance
    }

    #[reduce]
    fn total(&self) -> Sum<u64> {
        Sum(self.balance)
    }

    #[reduce(ordered)]
    fn reasons(&self, of: u32) -> Gather<String> {
        Gather(self.payments.iter().filter(|(from, _)| *from == of).map(|(_, why)| why.clone()).collect())
    }

    #[entry]
    fn tell_richest(&self, ctx: &mut Ctx<'_, Self>, to: Callback<Max<u64>>) {
        ctx.contribute(Max(self.balance), to);
    }

    /// Asks another, who answers to `got`.
    #[entry]
    fn ask_of(&mut self, ctx: &mut Ctx<'_, Self>, other: u32, done: Callback<u64>) {
        self.balance = 0;
        let (me, other) = (ctx.this(), ctx.array().at(other));
        other.balance().reply_to(ctx, me.got_callback());
        other.balance().reply_to(ctx, done);
    }

    #[entry]
    fn got(&mut self, balance: u64) {
        self.balance += balance + self.table[9];
    }
}

#[test]
fn entry_methods_are_methods_of_proxies_and_answers_are_waited_for_or_sent_on() {
    on_every_mix(
        || Program::new("bank", "1"),
        |main| {
            let accounts: Array<Account> = main.array(7, (100, 10));
            assert_eq!(accounts.at(3).balance().ask(main)?, 130);
            accounts.pay(main, 1, 99, "opened".into());
            main.quiescence()?;
            accounts.at(6).pay_to(main, accounts.at(0), 50);
            accounts.at(5).with(-1).pay_to(main, accounts.at(0), 5);
            main.quiescence()?;
            let pending = [0, 5, 6].map(|at| accounts.at(at).balance().pending(main));
            let found = pending.each_ref().map(|one| one.wait(main));
            assert_eq!(found.map(Result::unwrap), [156, 146, 111]);
            assert_eq!(accounts.total().ask(main)?.0, 7 * 101 + 210);
            assert_eq!(accounts.at(2).total().ask(main)?.0, 121, "one is asked too");
            let Gather(opened) = accounts.reasons(99).ask(main)?;
            assert_eq!(opened, vec!["opened"; 7]);
            let (to, richest) = main.pending();
            accounts.tell_richest(main, to);
            assert_eq!(richest.wait(main)?.0, 156);
            let (to, asked) = main.pending();
            accounts.at(1).ask_of(main, 2, to);
            assert_eq!(asked.wait(main)?, 121);
            main.quiescence()?;
            assert_eq!(accounts.at(1).balance().ask(main)?, 121 + 81, "what is rebuilt is there");
            let alone: Element<Account> = main.chare((7, 0), On::BySpeed);
            alone.pay(main, 3, 0, String::new());
            main.quiescence()?;
            assert_eq!(alone.balance().ask(main)?, 10);
            let some = accounts.section(main, [1, 4]);
            some.pay(main, 1, 7, "some".into());
            main.quiescence()?;
            assert_eq!(accounts.reasons(7).ask(main)?.0, ["some", "some"]);
            Ok(())
        },
    );
}

/// A wheel of cells, each of which takes a step when both neighbours have said how they were before it.
#[chare]
struct Cell {
    value: u64,
    step: u32,
    last: u32,
    done: Callback<Gather<u64>>,
    heard: Inbox<u32, u64>,
    turned: Exchange<u64>,
}

#[chare(reduces(Gather<u64>))]
impl Cell {
    fn new(ctx: &mut Ctx<'_, Self>, _size: u32) -> Self {
        let value = u64::from(ctx.index()) + 1;
        let (heard, turned) = (Inbox::default(), Exchange::default());
        Self { value, step: 0, last: 0, done: Callback::ignore(), heard, turned }
    }

    #[entry]
    fn go(&mut self, ctx: &mut Ctx<'_, Self>, steps: u32, done: Callback<Gather<u64>>) {
        (self.last, self.done) = (self.step + steps, done);
        self.tell(ctx);
    }

    fn tell(&self, ctx: &mut Ctx<'_, Self>) {
        let (cells, here) = (ctx.array(), ctx.index());
        let size = cells.shape()[0];
        for to in [(here + 1) % size, (here + size - 1) % size] {
            cells.at(to).hear(ctx, self.step, self.value);
        }
    }

    #[entry]
    fn hear(&mut self, step: u32, value: u64) {
        self.heard.hold(step, value);
    }

    #[when(self.heard.take(&self.step, 2) if self.step < self.last)]
    fn turn(&mut self, ctx: &mut Ctx<'_, Self>, neighbours: Vec<u64>) {
        self.value = (3 * self.value + neighbours.iter().sum::<u64>()) % 1_000_003;
        self.step += 1;
        if self.step < self.last {
            self.tell(ctx);
        } else {
            let value = self.value;
            self.turned.send(ctx, |to| value * u64::from(to));
        }
    }

    #[entry]
    fn part(&mut self, part: Part<u64>) {
        self.turned.hold(part);
    }

    #[when(self.turned.take(ctx))]
    fn all_have(&mut self, ctx: &mut Ctx<'_, Self>, parts: Vec<u64>) {
        ctx.contribute_ordered(Gather(vec![parts.iter().sum()]), self.done);
    }
}

#[test]
fn what_waits_goes_on_when_all_of_it_is_there() {
    on_every_mix(
        || Program::new("wheel", "1"),
        |main| {
            let cells: Array<Cell> = main.array(5, 5);
            let mut expected: Vec<u64> = (1..=5).collect();
            for steps in [1, 4, 2] {
                let (to, done) = main.pending();
                cells.go(main, steps, to);
                for _ in 0..steps {
                    let old = expected.clone();
                    let around = |at: usize| 3 * old[at] + old[(at + 1) % 5] + old[(at + 4) % 5];
                    expected = (0..5).map(|at| around(at) % 1_000_003).collect();
                }
                let sum: u64 = expected.iter().sum();
                assert_eq!(done.wait(main)?.0, (0..5).map(|at| at * sum).collect::<Vec<_>>());
            }
            Ok(())
        },
    );
}
