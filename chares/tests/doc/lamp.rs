// A chare type without its list of entry methods, for the documentation of that list.

use chares::{Chare, Ctx, Entry};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Lamp;

#[derive(Serialize, Deserialize)]
struct On;

#[derive(Serialize, Deserialize)]
struct Off;

#[derive(Serialize, Deserialize)]
struct Blink;

impl Chare for Lamp {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Lamp
    }
}

impl Entry<On> for Lamp {
    fn receive(&mut self, _: On, _: &mut Ctx<'_, Self>) {}
}

impl Entry<Off> for Lamp {
    fn receive(&mut self, _: Off, _: &mut Ctx<'_, Self>) {}
}
