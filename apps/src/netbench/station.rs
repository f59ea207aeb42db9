//! The chare on every PE that takes part: it sends, answers, and takes the time on its own clock.

use chares::prelude::*;
use chares::{Gather, Message, Section, Stopwatch};
use serde::{Deserialize, Serialize};

/// Bytes up to which a message is written as a list; longer ones are bulk data, as in any application.
const FEW: u64 = 64;

/// Sends things to others, or to itself.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Station {
    order: Option<Order>,
    /// Seconds of each sample of the order.
    seconds: Vec<f64>,
    began: Option<Stopwatch>,
    /// Answers that are still to come for this sample.
    awaited: u64,
    /// What it sends.
    data: Data,
    /// Those with whom it does collective operations; the first of them begins.
    together: Option<Section<Self>>,
    /// To whom it answers a collection with a receipt.
    answers: Option<u32>,
}

/// Do this with messages of so many bytes, so many times; who wants to know how many seconds each time took.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) task: Task,
    pub(super) bytes: u64,
    pub(super) samples: u64,
    pub(super) done: Callback<Vec<f64>>,
}

/// What is done and timed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// To that element and back, so many times one after the other.
    Trips(u32, u64),
    /// So many messages to that element, who answers the last.
    Stream(u32, u64),
    /// A message to each, receipts back.
    Scatter,
    /// A request to all, their messages back.
    Gather,
    /// A request to all, the messages of all to all, receipts back.
    AllToAllBroadcast,
}

/// The bytes of a message.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Data {
    Few(Vec<u8>),
    Bulk(Bulk<u8>),
}

impl Default for Data {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Data {
    fn new(bytes: u64) -> Self {
        let len = usize::try_from(bytes).expect("lengths of messages are checked");
        if bytes <= FEW {
            return Self::Few(vec![0x5a; len]);
        }
        // No zeros, which memory that was never written to would do for.
        let mut bulk = Bulk::zeros(len);
        bulk.as_mut_slice().fill(0x5a);
        Self::Bulk(bulk)
    }

    fn len(&self) -> u64 {
        match self {
            Self::Few(bytes) => bytes.len() as u64,
            Self::Bulk(bytes) => bytes.len() as u64,
        }
    }
}

/// Do collective operations with these from now on.
#[derive(Serialize, Deserialize)]
pub(super) struct Join(pub(super) Section<Station>);
/// From that element, to be thrown back.
#[derive(Serialize, Deserialize)]
struct Ping(u32, Data);
/// Thrown back.
#[derive(Serialize, Deserialize)]
struct Pong(Data);
/// One of a stream from that element, with how many follow.
#[derive(Serialize, Deserialize)]
struct Load(u32, u64, Data);
/// Part of a scatter from that element.
#[derive(Serialize, Deserialize)]
struct Parcel(u32, Data);
/// Something has come.
#[derive(Serialize, Deserialize)]
struct Receipt;
/// Send so many bytes to that element, or to all, and the receipt to that element.
#[derive(Serialize, Deserialize)]
struct Request(u32, u64, bool);

chares::entries!(
    Station as "netbench::Station": Order, Join, Ping, Pong, Load, Parcel, Receipt, Request, Gather<Data> as "All";
    reduces Gather<Data> as "All"
);

impl Chare for Station {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }
}

impl Station {
    /// Begins a sample.
    fn begin(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Order { task, bytes, .. } = *self.ordered();
        let me = ctx.index();
        self.began = Some(Stopwatch::start());
        match task {
            Task::Trips(to, trips) => {
                self.awaited = trips;
                self.throw(to, ctx);
            }
            Task::Stream(to, messages) => {
                self.awaited = 1;
                for left in (0..messages).rev() {
                    self.send(to, Load(me, left, self.data.clone()), ctx);
                }
            }
            Task::Scatter => {
                self.awaited = self.together().len() as u64;
                self.together().scatter(ctx, |_| Parcel(me, self.data.clone()));
            }
            Task::Gather => {
                self.awaited = 1;
                self.together().send(ctx, Request(me, bytes, false));
            }
            Task::AllToAllBroadcast => {
                self.awaited = self.together().len() as u64;
                self.together().send(ctx, Request(me, bytes, true));
            }
        }
    }

    fn ordered(&self) -> &Order {
        self.order.as_ref().expect("nothing is answered that was not ordered")
    }

    fn together(&self) -> &Section<Self> {
        self.together.as_ref().expect("who is to act with others has joined them")
    }

    fn throw(&self, to: u32, ctx: &mut Ctx<'_, Self>) {
        self.send(to, Ping(ctx.index(), self.data.clone()), ctx);
    }

    fn send<M: Message>(&self, to: u32, message: M, ctx: &mut Ctx<'_, Self>)
    where
        Self: Entry<M>,
    {
        ctx.array().at(to).send(ctx, message);
    }

    /// One of the answers of a sample has come.
    fn answered(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.awaited -= 1;
        if self.awaited > 0 {
            if let Task::Trips(to, _) = self.ordered().task {
                self.throw(to, ctx);
            }
            return;
        }
        let began = self.began.take().expect("a clock runs");
        self.seconds.push(began.elapsed().as_secs_f64());
        if (self.seconds.len() as u64) < self.ordered().samples {
            return self.begin(ctx);
        }
        let done = self.ordered().done;
        done.send(ctx, std::mem::take(&mut self.seconds));
    }

    /// Has so many bytes to send.
    fn prepare(&mut self, bytes: u64) {
        if self.data.len() != bytes {
            self.data = Data::new(bytes);
        }
    }
}

impl Entry<Order> for Station {
    fn receive(&mut self, order: Order, ctx: &mut Ctx<'_, Self>) {
        self.prepare(order.bytes);
        self.order = Some(order);
        self.begin(ctx);
    }
}

impl Entry<Join> for Station {
    fn receive(&mut self, Join(together): Join, _: &mut Ctx<'_, Self>) {
        self.together = Some(together);
    }
}

impl Entry<Ping> for Station {
    fn receive(&mut self, Ping(from, data): Ping, ctx: &mut Ctx<'_, Self>) {
        self.send(from, Pong(data), ctx);
    }
}

impl Entry<Pong> for Station {
    fn receive(&mut self, Pong(data): Pong, ctx: &mut Ctx<'_, Self>) {
        assert_eq!(data.len(), self.ordered().bytes, "what comes back is what was sent");
        self.answered(ctx);
    }
}

impl Entry<Load> for Station {
    fn receive(&mut self, Load(from, left, _): Load, ctx: &mut Ctx<'_, Self>) {
        if left == 0 {
            self.send(from, Receipt, ctx);
        }
    }
}

impl Entry<Parcel> for Station {
    fn receive(&mut self, Parcel(from, _): Parcel, ctx: &mut Ctx<'_, Self>) {
        self.send(from, Receipt, ctx);
    }
}

impl Entry<Receipt> for Station {
    fn receive(&mut self, _: Receipt, ctx: &mut Ctx<'_, Self>) {
        self.answered(ctx);
    }
}

impl Entry<Request> for Station {
    fn receive(&mut self, Request(from, bytes, for_all): Request, ctx: &mut Ctx<'_, Self>) {
        self.prepare(bytes);
        self.answers = for_all.then_some(from);
        let data = self.data.clone();
        if for_all {
            ctx.all_gather_in(self.together(), data);
        } else {
            let first = Callback::element(&ctx.array().at(from));
            ctx.contribute_in(self.together(), Gather(vec![data]), first);
        }
    }
}

impl Entry<Gather<Data>> for Station {
    fn receive(&mut self, Gather(all): Gather<Data>, ctx: &mut Ctx<'_, Self>) {
        let is_whole = all.len() == self.together().len();
        assert!(
            is_whole && all.iter().all(|data| data.len() == self.data.len()),
            "everybody's data are in it"
        );
        match self.answers {
            Some(first) => self.send(first, Receipt, ctx),
            None => self.answered(ctx),
        }
    }
}
