//! The chare through the steps of a body that swells: blocks begin each together with their neighbours, solve for the values
//! and for the displacements with all, and the first one says where elements are refined for the next.

use super::course::Why;
use super::marching::Marching;
use super::marching::{Block, Rim, Verdict};
use super::problem::Problem;
use super::subdomain::{Subdomain, URGENT, spent};
use super::swelling::Swelling;
use chares::{Callback, Ctx, Cx as _, Entry, Gather, Reduce as _};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Begin with the first step; the first block tells what came of each, and all what they are like where that is wanted.
#[derive(Clone, Serialize, Deserialize)]
pub struct March {
    /// Who is told of steps.
    pub told: Callback<Told>,
    /// Who is told of blocks.
    pub blocks: Callback<Block>,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Told {
    /// The step, from 0.
    pub step: u32,
    /// Of all blocks.
    pub verdict: Verdict,
}

/// Go on with these levels.
#[derive(Clone, Serialize, Deserialize)]
pub struct Adapt(pub Vec<u8>);

/// What came of a step, block by block.
pub type Verdicts = Gather<Verdict>;

impl Entry<March> for Subdomain {
    fn receive(&mut self, march: March, ctx: &mut Ctx<'_, Self>) {
        let problem = self.problem.read(ctx);
        let Some(swelling) = &problem.swelling else { return };
        self.marching = Marching::new(swelling, self.number);
        self.march = Some(march);
        self.open(swelling, swelling.levels.clone(), ctx);
    }
}

impl Entry<Rim> for Subdomain {
    fn receive(&mut self, rim: Rim, ctx: &mut Ctx<'_, Self>) {
        self.rims.hold(rim.step, rim);
        self.begin(ctx);
    }
}

impl Entry<Adapt> for Subdomain {
    fn receive(&mut self, Adapt(levels): Adapt, ctx: &mut Ctx<'_, Self>) {
        let problem = self.problem.read(ctx);
        let Some(swelling) = &problem.swelling else { return };
        self.open(swelling, levels, ctx);
    }
}

impl Entry<Verdicts> for Subdomain {
    fn receive(&mut self, Gather(verdicts): Verdicts, ctx: &mut Ctx<'_, Self>) {
        let (problem, begun) = (self.problem.read(ctx), spent());
        let (Some(swelling), Some(March { told, .. })) = (&problem.swelling, &self.march) else { return };
        let mut verdict = verdicts[0];
        verdicts[1..].iter().for_each(|other| verdict.combine(*other));
        // It has closed the step itself.
        let (told, step) = (*told, self.marching.step);
        told.send(ctx, Told { step: step - 1, verdict });
        if step < swelling.steps {
            let errors: Vec<f64> = verdicts.iter().map(|verdict| verdict.error).collect();
            let levels = swelling.chosen(step, &self.marching.levels, &errors, verdict.square);
            self.figures.coarsest_s += spent() - begun;
            ctx.array().broadcast_with(ctx, URGENT, Adapt(levels));
        }
        let detail = format!(
            "{} elements, {} and {} iterations",
            verdict.elements, verdict.iterations[0], verdict.iterations[1]
        );
        ctx.forecast("step", step.into(), Some(swelling.steps.into()), &detail);
    }
}

impl Subdomain {
    /// Begins a step.
    fn open(&mut self, swelling: &Swelling, levels: Vec<u8>, ctx: &mut Ctx<'_, Self>) {
        let begun = spent();
        let rims = self.marching.open(swelling, levels);
        self.figures.assembling_s += spent() - begun;
        self.is_waiting = true;
        let array = ctx.array();
        for (to, rim) in rims {
            array.at(to).send_with(ctx, URGENT, rim);
        }
        self.begin(ctx);
    }

    /// Goes on once all neighbours have begun the step.
    fn begin(&mut self, ctx: &mut Ctx<'_, Self>) {
        if !self.marching.is_open() {
            return;
        }
        let problem = self.problem.read(ctx);
        let Some(swelling) = &problem.swelling else { return };
        let neighbours = swelling.forest.around(self.number).len();
        let Some(rims) = self.rims.take(&self.marching.step, neighbours) else { return };
        let begun = spent();
        let machine = self.marching.diffuse(swelling, &problem, rims);
        self.figures.assembling_s += spent() - begun;
        match machine {
            Some(machine) => self.machine = machine,
            None => return ctx.fail("a block was told of nodes that are not its own"),
        }
        self.is_waiting = false;
        self.advance(ctx);
    }

    /// Goes on after something was solved for.
    pub(super) fn solved(&mut self, ctx: &mut Ctx<'_, Self>) {
        let problem: Arc<Problem> = self.problem.read(ctx);
        let (Some(swelling), Some(March { blocks, .. })) = (&problem.swelling, &self.march) else { return };
        let (blocks, course) = (*blocks, self.machine.course);
        if course.why != Some(Why::Converged) {
            let sentence = super::course::not_converged(&problem, &course);
            return ctx.fail(&format!("step {}: {sentence}", self.marching.step + 1));
        }
        let begun = spent();
        let machine = std::mem::take(&mut self.machine);
        let bytes = machine.bytes() + self.marching.bytes();
        self.figures.bytes = self.figures.bytes.max(bytes as u64);
        self.figures.entries = self.figures.entries.max(machine.entries() as u64);
        if !self.marching.has_values {
            let machine = self.marching.strain(swelling, &problem, machine);
            self.figures.assembling_s += spent() - begun;
            match machine {
                Some(machine) => self.machine = machine,
                None => ctx.fail("a block has lost its mesh"),
            }
            return;
        }
        let (verdict, block) = self.marching.close(swelling, &problem, &machine);
        self.figures.assembling_s += spent() - begun;
        self.is_waiting = true;
        let (step, steps) = (self.marching.step, swelling.steps);
        if swelling.every.is_some_and(|every| step.is_multiple_of(every) || step == steps) {
            blocks.send(ctx, block);
        }
        let first = Callback::element(&ctx.array().at(0));
        ctx.contribute_ordered(Gather(vec![verdict]), first);
    }
}
