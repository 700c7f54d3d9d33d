//! The CPUs on which one end's flows run: as the plan says, or the best ones for the path's device.

use goodput_kernel::Context;
use goodput_model::{CpuList, EndName, FlowPlacement, Pin, Placement, Plan};

use crate::threads::blocking;

/// The CPUs of one end's flows.
#[derive(Debug, Clone)]
pub struct Affinity {
    chosen: String,
    cpus: Vec<u16>,
}

impl Affinity {
    /// The CPUs of `end`, which is this end, by `plan` on the path of `context`. Fails if it may not
    /// run on a CPU that the plan names.
    pub async fn of(plan: &Plan, end: EndName, context: &Context) -> Result<Self, String> {
        match plan.pin.of(end) {
            Pin::None => Ok(Self::free("the scheduler".into())),
            Pin::Cpus(cpus) => Self::named(cpus, &allowed()?),
            Pin::Auto => {
                let (allowed, context) = (allowed()?, context.clone());
                let flows = plan.flow_plans().len();
                let look = blocking(move || goodput_kernel::surroundings(&context));
                Ok(match look.await.map_err(|why| why.to_string())? {
                    Ok(around) => {
                        let choice = around.choose_cpus(&allowed, flows);
                        Self { chosen: format!("auto: {}", choice.why), cpus: choice.cpus }
                    }
                    Err(why) => Self::free(format!("auto: {why}; the scheduler decides")),
                })
            }
        }
    }

    pub(crate) fn free(chosen: String) -> Self {
        Self { chosen, cpus: Vec::new() }
    }

    fn named(cpus: &[u16], allowed: &[u16]) -> Result<Self, String> {
        match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            None => Ok(Self { chosen: "asked for".into(), cpus: cpus.to_vec() }),
            Some(cpu) => Err(format!(
                "no flow can be pinned to CPU {cpu} (--pin): goodput may run on CPU {} only",
                CpuList(allowed)
            )),
        }
    }

    /// The only CPU of a flow, if it has one: flows take the CPUs in turn.
    pub fn of_flow(&self, id: u16) -> Option<u16> {
        self.cpus.get(usize::from(id) % self.cpus.len().max(1)).copied()
    }

    /// How the CPUs were chosen, and where the flows ran.
    pub fn placement(&self, flows: Vec<FlowPlacement>) -> Placement {
        Placement { chosen: self.chosen.clone(), flows }
    }
}

fn allowed() -> Result<Vec<u16>, String> {
    goodput_mover::allowed_cpus().map_err(|cause| format!("can't ask for the CPUs: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_take_the_cpus_in_turn() {
        let affinity = Affinity::named(&[2, 5], &[0, 2, 5]).unwrap();
        assert_eq!([0, 1, 2].map(|id| affinity.of_flow(id)), [Some(2), Some(5), Some(2)]);
        assert_eq!(Affinity::free(String::new()).of_flow(7), None);
    }

    #[test]
    fn a_cpu_that_is_not_allowed_is_named_with_those_that_are() {
        let why = Affinity::named(&[0, 9], &[0, 1, 2, 7]).unwrap_err();
        assert!(why.contains("CPU 9") && why.contains("0-2,7"), "{why}");
    }
}
