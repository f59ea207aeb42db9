//! What chares hold between their entry methods.

use chares::prelude::*;
use chares::{Gather, Scratch};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How often it was unpacked.
#[derive(Clone, Copy, Default)]
struct Trips(u32);

impl Serialize for Trips {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Trips {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(|trips| Self(trips + 1))
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Traveller {
    trips: Trips,
    numbers: Bulk<f64>,
    scratch: Scratch<Vec<u8>>,
    visits: u32,
}

#[derive(Clone, Serialize, Deserialize)]
struct Visit;
/// Tell how often you were visited, how often your state travelled, and what is left of your scratch.
#[derive(Clone, Serialize, Deserialize)]
struct Tell(Callback<Gather<(u32, u32, usize)>>);

chares::entries!(Traveller: Visit, Tell; reduces Gather<(u32, u32, usize)> as "Told");

impl Chare for Traveller {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { numbers: Bulk::from_slice(&[0.5; 1000]), ..Self::default() }
    }
}

impl Entry<Visit> for Traveller {
    fn receive(&mut self, _: Visit, _: &mut Ctx<'_, Self>) {
        self.visits += 1;
        self.scratch.push(1);
        self.numbers.as_mut_slice()[0] += 1.0;
    }
}

impl Entry<Tell> for Traveller {
    fn receive(&mut self, Tell(to): Tell, ctx: &mut Ctx<'_, Self>) {
        assert_eq!(self.numbers[0], 0.5 + f64::from(self.visits));
        let told = (self.visits, self.trips.0, self.scratch.len());
        ctx.contribute_ordered(Gather(vec![told]), to);
    }
}

#[test]
fn under_always_pup_state_travels_before_each_entry_method() {
    for pes in [&[1][..], &[3], &[2, 1]] {
        for (always_pup, expected) in [(false, (6, 0, 6)), (true, (6, 7, 0))] {
            let mix = InProcess { always_pup, ..InProcess::new(pes) };
            let program = Program::new("travellers", "1").chare::<Traveller>();
            let told = program.run_in_process(&mix, |main| {
                let travellers = main.array::<Traveller>(5, ());
                for _ in 0..3 {
                    travellers.broadcast(main, Visit);
                    (0..5).for_each(|at| travellers.at(at).send(main, Visit));
                }
                main.quiescence()?;
                let (callback, told) = main.pending();
                travellers.broadcast(main, Tell(callback));
                told.wait(main)
            });
            assert_eq!(told.unwrap().0, vec![expected; 5], "{mix:?}");
        }
    }
}
