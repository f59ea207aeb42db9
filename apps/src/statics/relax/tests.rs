//! The machines on quadratics, where the answer is known, and on crystals.

use super::vectors::Vectors;
use super::*;
use crate::statics::block::{Block, Class, Total};
use crate::statics::crystal::Atom;

/// An "atom" per direction of a quadratic with these stiffnesses around 0.
struct Bowl {
    block: Block,
    stiffness: Vec<f64>,
}

impl Bowl {
    fn new(stiffness: &[f64]) -> Self {
        let atom = |id| Atom { id, at: [0.3, -0.2, 0.1], species: 0, class: Class::Free };
        let block = Block::new((0..stiffness.len() as u64).map(atom));
        Self { block, stiffness: stiffness.to_vec() }
    }

    fn evaluate(&mut self) -> Total {
        let mut energy = -5.0;
        for ((at, force), stiffness) in self.block.at.iter().zip(&mut self.block.force).zip(&self.stiffness) {
            for k in 0..3 {
                energy += 0.5 * stiffness * at[k] * at[k];
                force[k] = -stiffness * at[k];
            }
        }
        Total { energy, ..Total::default() }
    }

    fn relax(&mut self, method: Method, limits: Limits) -> (Stop, u64, u64) {
        let mut vectors = Vectors::new(&self.block);
        let mut machine = Relaxation::new(method, limits, 1.0);
        let mut order = machine.start();
        loop {
            vectors.obey(&mut self.block, &order);
            if let Order::Go { rebuild: true, .. } = order {
                vectors.built(&self.block);
            }
            let total = self.evaluate();
            let measured = vectors.measure(&self.block, &total, method == Method::Lbfgs);
            assert!(measured.moved <= 0.5, "atoms moved {} A with old lists", measured.moved);
            order = machine.next(&measured);
            if let Order::Stop(stop) = order {
                return (stop, machine.iterations(), machine.evaluations());
            }
        }
    }
}

const METHODS: [Method; 3] = [Method::Cg, Method::Fire, Method::Lbfgs];

#[test]
fn every_method_finds_the_bottom_of_a_bowl() {
    for method in METHODS {
        let mut bowl = Bowl::new(&[1.0, 3.0, 7.0, 10.0, 25.0, 30.0]);
        let limits = Limits { max_force: 1e-10, ..Limits::default() };
        let (stop, _, evaluations) = bowl.relax(method, limits);
        assert_eq!(stop, Stop::MaxForce, "{method:?}");
        assert!(bowl.block.at.iter().flatten().all(|x| x.abs() < 1e-9));
        let most = if method == Method::Fire { 800 } else { 60 };
        assert!(evaluations < most, "{method:?} took {evaluations} evaluations");
    }
}

#[test]
fn a_step_is_never_longer_than_allowed() {
    for method in METHODS {
        let mut bowl = Bowl::new(&[1.0, 100.0]);
        let mut vectors = Vectors::new(&bowl.block);
        let mut machine = Relaxation::new(method, Limits { max_step: 0.01, ..Limits::default() }, 1.0);
        let mut order = machine.start();
        for _ in 0..200 {
            let before = bowl.block.at.clone();
            let turned = matches!(&order, Order::Go { turn: Some(_), .. });
            vectors.obey(&mut bowl.block, &order);
            for (at, before) in bowl.block.at.iter().zip(&before) {
                let longest = (0..3).map(|k| (at[k] - before[k]).abs()).fold(0.0, f64::max);
                assert!(!turned || longest <= 0.01 * (1.0 + 1e-12), "{method:?}: {longest}");
            }
            let total = bowl.evaluate();
            order = machine.next(&vectors.measure(&bowl.block, &total, method == Method::Lbfgs));
            if matches!(order, Order::Stop(_)) {
                break;
            }
        }
    }
}

#[test]
fn what_ended_it_is_told() {
    let stop = |limits: Limits| Bowl::new(&[1.0, 5.0, 20.0]).relax(Method::Cg, limits).0;
    let never = Limits { max_force: 0.0, ..Limits::default() };
    assert_eq!(stop(Limits { force_norm: 1e-6, ..never }), Stop::ForceNorm);
    assert_eq!(stop(Limits { iterations: 3, ..never }), Stop::Iterations);
    assert_eq!(stop(Limits { evaluations: 4, ..never }), Stop::Evaluations);
    assert_eq!(stop(Limits { energy: 1e-3, ..never }), Stop::Energy);
    let mut bowl = Bowl::new(&[1.0, f64::NAN, f64::NAN]);
    assert_eq!(bowl.relax(Method::Cg, never).0, Stop::NotFinite(Some(1)));
}

/// A slope that goes down for ever, and a wall: the line search comes back and finds a lower energy.
#[test]
fn a_step_too_far_is_taken_back() {
    let mut line = line::Line::new(10.0, 4.0, 1.0, 5.0, 0.3, 0.0);
    let line::LineDecision::Try(shorter) = line.judge(12.0, -50.0) else { panic!("a rise is not accepted") };
    assert!((0.1..=0.5).contains(&shorter));
    let line::LineDecision::Try(nearer) = line.judge(9.9, 3.9) else { panic!("a steep end is refined") };
    assert!(nearer > shorter);
    assert!(!matches!(line.judge(8.5, 0.2), line::LineDecision::Try(_) | line::LineDecision::Fail));
}
