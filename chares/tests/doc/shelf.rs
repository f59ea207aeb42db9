// A chare type with a parameter, without its list of entry methods, for the documentation of that list.

use chares::{Bulk, Callback, Chare, Ctx, Entry, Number, Program, Sum};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Number", deserialize = "T: Number"))]
struct Shelf<T> {
    numbers: Bulk<T>,
}

#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "T: Number", deserialize = "T: Number"))]
struct Fill<T>(Bulk<T>);

#[derive(Serialize, Deserialize)]
struct Clear(Callback<Sum<u64>>);

#[derive(Serialize, Deserialize)]
struct Dust;

impl<T: Number> Chare for Shelf<T> {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Shelf { numbers: Bulk::default() }
    }
}

impl<T: Number> Entry<Fill<T>> for Shelf<T> {
    fn receive(&mut self, Fill(numbers): Fill<T>, _: &mut Ctx<'_, Self>) {
        self.numbers = numbers;
    }
}

impl<T: Number> Entry<Clear> for Shelf<T> {
    fn receive(&mut self, Clear(taken): Clear, ctx: &mut Ctx<'_, Self>) {
        let numbers = std::mem::take(&mut self.numbers);
        ctx.contribute(Sum(numbers.len() as u64), taken);
    }
}
