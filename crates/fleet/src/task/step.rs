//! What an agent does with a task that was delivered, perhaps not for the first time.

/// What is known of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// Its outcome is on the bus.
    pub is_published: bool,
    /// Its outcome is on this agent's disk.
    pub is_kept: bool,
    /// An agent of this name has begun it before.
    pub is_begun: bool,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Only acknowledge it: everything else is done.
    Acknowledge,
    /// Publish the kept outcome.
    Publish,
    /// Publish that the agent ended while it measured: nothing is measured twice.
    GiveUp,
    /// Measure.
    Measure,
}

/// The next step. After each, the outcome is kept, published and acknowledged, in this order, so that an agent that is
/// killed at any moment goes on from there.
pub fn step(seen: Delivered) -> Step {
    match seen {
        Delivered { is_published: true, .. } => Step::Acknowledge,
        Delivered { is_kept: true, .. } => Step::Publish,
        Delivered { is_begun: true, .. } => Step::GiveUp,
        _ => Step::Measure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task on a bus that delivers it until it is acknowledged, and an agent that is killed after any of its moves, in
    /// any number of its lives.
    #[derive(Default)]
    struct World {
        is_begun: bool,
        is_kept: bool,
        published: usize,
        measured: usize,
        is_acknowledged: bool,
    }

    impl World {
        /// A life of the agent, of at most this number of moves.
        fn live(&mut self, moves: usize) {
            let seen = Delivered {
                is_published: self.published > 0,
                is_kept: self.is_kept,
                is_begun: self.is_begun,
            };
            let step = step(seen);
            let mut all: Vec<fn(&mut Self)> = Vec::new();
            if step == Step::Measure {
                all.push(|world: &mut Self| world.is_begun = true);
                all.push(|world: &mut Self| world.measured += 1);
            }
            if matches!(step, Step::Measure | Step::GiveUp) {
                all.push(|world: &mut Self| world.is_kept = true);
            }
            if step != Step::Acknowledge {
                all.push(|world: &mut Self| world.published += 1);
            }
            all.push(|world: &mut Self| world.is_acknowledged = true);
            all.into_iter().take(moves).for_each(|act| act(self));
        }
    }

    #[test]
    fn a_killed_agent_measures_nothing_twice_and_publishes_one_outcome() {
        for first in 0..6 {
            for second in 0..6 {
                let mut world = World::default();
                for moves in [first, second, 6, 6] {
                    if !world.is_acknowledged {
                        world.live(moves);
                    }
                }
                assert!(world.is_acknowledged, "{first} {second}");
                assert!(world.measured <= 1, "{first} {second}");
                assert_eq!(world.published, 1, "{first} {second}");
            }
        }
    }
}
