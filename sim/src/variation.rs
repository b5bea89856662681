//! How a plan is varied by who knows what it means: made smaller, scheduled in another way, changed a little.
//!
//! A scenario names its [`Variation`]; shrinking and the strategies of a campaign ask it. All of it is optional: what a variation does not
//! know, nobody does.

/// Ways to vary a plan.
pub trait Variation<P>: Sync {
    /// Plans that are simpler than this one, each in one way: fewer nodes, a plainer configuration, shorter times, an easier schedule.
    /// [`shrink`](crate::shrink) tries them in this order, and leaves entries of [`lists`](Self::lists) out by itself.
    fn simpler(&self, plan: &P) -> Vec<P> {
        let _ = plan;
        Vec::new()
    }

    /// The lists of a plan whose entries a search for a smaller plan may leave out. A claim about one story leaves out the lists that tell
    /// it: without its consumer, "each message is consumed" falls on correct code too.
    fn lists(&self) -> &'static [&'static str] {
        &["faults", "operations"]
    }

    /// How many things clients do in a plan, for those who want to know how much smaller it became. `None`: entries of `operations`.
    fn operations(&self, plan: &P) -> Option<usize> {
        let _ = plan;
        None
    }

    /// The same plan under the schedule of another seed. Leaving something out moves all that is drawn behind it, so a smaller plan
    /// deserves some schedules before it is given up. `None`: the plan has no such seed.
    fn rescheduled(&self, plan: &P, seed: u64) -> Option<P> {
        let _ = (plan, seed);
        None
    }

    /// The same plan under a schedule that runs tasks by priority, drawn from `seed`. `None`: there is no such schedule.
    fn prioritised(&self, plan: &P, seed: u64) -> Option<P> {
        let _ = (plan, seed);
        None
    }

    /// The same plan with a single fault, a crash at the `point`-th of `points` places spread over the steps of its nodes. `None`: no such
    /// places are known.
    fn crash_point(&self, plan: &P, point: u64, points: u64) -> Option<P> {
        let _ = (plan, point, points);
        None
    }

    /// A plan near this one, changed in some way drawn from `seed`; it may take over parts of the other plans: one worth going on from, and one
    /// just drawn. `None`: plans cannot be changed.
    fn mutated(&self, plan: &P, others: [&P; 2], seed: u64) -> Option<P> {
        let _ = (plan, others, seed);
        None
    }
}

/// Knows no way.
#[derive(Debug, Clone, Copy)]
pub struct Unvaried;

impl<P> Variation<P> for Unvaried {}
