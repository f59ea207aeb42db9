//! Moves that are worth it: measured loads differ a little from one time to the next, and that alone should move nothing.

use super::decision::{Decision, cut_cost};
use super::{Balancer, Checked, View, ViewError, Wanted};

/// What `first` decides, if the run ends sooner for it by some part, or no later and that part less crosses between PEs.
#[derive(Debug)]
pub struct Steady {
    /// Decides.
    pub first: Box<dyn Balancer>,
    /// By which part the longest time of a PE has to fall, or what crosses between PEs; above 0 and up to 1.
    pub gain: f64,
}

impl Balancer for Steady {
    fn name(&self) -> &'static str {
        self.first.name()
    }

    fn uses_edges(&self) -> bool {
        self.first.uses_edges()
    }

    fn uses_places(&self) -> bool {
        self.first.uses_places()
    }

    fn doubt(&self, pes: u32) -> Option<String> {
        self.first.doubt(pes)
    }

    fn bytes(&self, pes: u64, chares: u64, edges: u64) -> u64 {
        self.first.bytes(pes, chares, edges)
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        self.first.wanted(view)
    }

    fn decide(&self, view: &View) -> Result<Decision, ViewError> {
        let decision = self.first.decide(view)?;
        // Chares of a PE that leaves have to go.
        if decision.moves.is_empty() || view.pes.iter().any(|pe| pe.is_leaving) {
            return Ok(decision);
        }
        let most = 1.0 - self.gain;
        if decision.after <= most * decision.before {
            return Ok(decision);
        }
        let checked = view.check()?;
        let crosses = |owners: &[u32]| cut_cost(view, owners) as f64;
        let crosses_less = || crosses(&decision.owners(view)) <= most * crosses(&checked.owners());
        if self.uses_edges() && decision.after <= decision.before && crosses_less() {
            return Ok(decision);
        }
        Ok(Decision { left: decision.left, ..Decision::stay(&checked) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;
    use crate::balance::random::Random;
    use crate::balance::{BALANCERS, Choice, Edge};

    const PES: u32 = 4;
    const CHARES: u32 = 64;

    /// Neighbours in a ring in equal pieces on each PE, with loads that noise has made differ.
    fn noisy(seed: u64, speeds: [f64; PES as usize]) -> View {
        let mut random = Random::new(seed);
        let chares = (0..CHARES).map(|chare| (chare * PES / CHARES, 1.0 + 0.02 * (random.part() - 0.5)));
        let mut view = View::new(&Part::each(&speeds), chares);
        let edge = |one| Edge { one, other: (one + 1) % CHARES, bytes: 100, messages: 1 };
        view.edges = (0..CHARES).map(edge).collect();
        view.places = (0..CHARES).map(|chare| [f64::from(chare), 0.0, 0.0]).collect();
        view
    }

    fn chosen() -> impl Iterator<Item = Box<dyn Balancer>> {
        let names =
            BALANCERS.iter().map(|named| named.name).filter(|name| !["none", "rotate"].contains(name));
        names.flat_map(|name| [name.to_string(), format!("{name}:comm")]).map(|text| match text.parse() {
            Ok(Choice::Always(balancer)) => balancer,
            other => panic!("{text}: {other:?}"),
        })
    }

    #[test]
    fn noise_moves_nothing_and_a_slow_pe_loses_chares() {
        for balancer in chosen() {
            for seed in 0..20 {
                let decision = balancer.decide(&noisy(seed, [1.0; 4])).unwrap();
                assert_eq!(decision.moves, [], "{balancer:?}");
                let moves = balancer.decide(&noisy(seed, [1.0, 1.0, 0.5, 1.0])).unwrap().moves;
                assert!(moves.iter().any(|step| step.from == 2), "{balancer:?}");
            }
        }
    }

    #[test]
    fn chares_that_talk_come_together_although_the_run_ends_no_sooner() {
        let Ok(Choice::Always(balancer)) = "refine:comm".parse() else { panic!("no balancer") };
        let mut view = noisy(1, [1.0; 4]);
        (0..).zip(&mut view.chares).for_each(|(chare, told)| told.pe = chare % PES);
        let decision = balancer.decide(&view).unwrap();
        assert!(decision.moves.len() > 20, "{decision:?}");
    }

    #[test]
    fn less_is_enough_where_less_is_asked_for() {
        let moves = |text: &str| match text.parse() {
            Ok(Choice::Always(balancer)) => balancer.decide(&noisy(3, [1.0; 4])).unwrap().moves.len(),
            other => panic!("{text}: {other:?}"),
        };
        assert!(moves("greedy:gain=0.0001") > 10 && moves("greedy:gain=0.5") == 0);
    }
}
