//! The program whose transfer is watched: its identity, its CPU time, and the states it was seen in.

use std::collections::{BTreeMap, BTreeSet};

use goodput_kernel::{ForeignSocket, Owner, Subject, Thread, holders_of, threads_of};
use goodput_model::{Known, Sample, Snapshot};

/// Fewest looks for which shares of states are reported.
const MIN_LOOKS: usize = 10;

/// The program, and its threads at each look.
pub struct Program {
    owner: Option<Owner>,
    looks: Vec<BTreeMap<u32, Thread>>,
}

impl Program {
    /// The program that holds the sockets; `pid` if the user named it.
    pub fn find(pid: Option<u32>, sockets: &[&ForeignSocket]) -> Self {
        let owner = match pid {
            Some(pid) => Owner::of(pid),
            None => {
                let held = sockets.iter().map(|socket| socket.inode).filter(|inode| *inode > 0);
                holders_of(&held.collect::<BTreeSet<_>>())
                    .into_values()
                    .min_by_key(|owner| owner.pid)
            }
        };
        Self { owner, looks: Vec::new() }
    }

    /// The process whose facts a snapshot reads.
    pub fn subject(&self) -> Subject {
        self.owner.as_ref().map_or(Subject::Unknown, |owner| Subject::Process(owner.pid))
    }

    /// Its name, for people.
    pub fn words(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{} (process {})", owner.name, owner.pid),
            None => {
                "no permission to inspect the program: its CPU time and its limits are unknown; run as its user or as root"
                    .into()
            }
        }
    }

    /// Looks at the program's threads, once for each sample.
    pub fn look(&mut self) {
        let threads = self.owner.as_ref().and_then(|owner| threads_of(owner.pid).ok());
        let threads = threads.unwrap_or_default();
        self.looks.push(threads.into_iter().map(|thread| (thread.tid, thread)).collect());
    }

    /// Fills in the CPU time of the flows' threads. Which thread serves which flow is unknown: the
    /// busiest is assigned to the first flow, the next to the second. If there are more flows than
    /// threads, a flow is served by a thread that already counts.
    pub fn enter(&self, samples: &mut [Sample]) {
        let busiest = self.busiest();
        for (sample, threads) in samples.iter_mut().zip(&self.looks) {
            for (number, flow) in sample.flows.iter_mut().enumerate() {
                let thread = busiest.get(number).map(|tid| threads.get(tid));
                (flow.cpu_us, flow.cpu_wait_us) = match thread {
                    _ if threads.is_empty() => nowhere("the program could not be inspected"),
                    Some(Some(thread)) => (Known::Value(thread.cpu_us), waited(thread)),
                    Some(None) => nowhere("its thread has ended"),
                    None => (Known::Value(0), Known::Value(0)),
                };
            }
        }
    }

    /// Notes the program, and the states in which its busiest thread was seen.
    pub fn note(&self, facts: &mut Snapshot) {
        let Some(owner) = &self.owner else { return };
        facts.put("process.pid", u64::from(owner.pid));
        facts.put("process.name", owner.name.as_str());
        let Some(busiest) = self.busiest().first().copied() else { return };
        let states: Vec<char> =
            self.looks.iter().filter_map(|look| Some(look.get(&busiest)?.state)).collect();
        if states.len() < MIN_LOOKS {
            return;
        }
        let named = [("running", 'R'), ("sleeping", 'S'), ("disk_wait", 'D'), ("stopped", 'T')];
        for (name, state) in named {
            let count = states.iter().filter(|seen| **seen == state).count();
            let share = count as f64 / states.len() as f64 * 100.0;
            facts.put(format!("process.{name}_percent"), share);
        }
    }

    /// The threads that lived throughout, the busiest first.
    fn busiest(&self) -> Vec<u32> {
        let (Some(first), Some(last)) = (self.looks.first(), self.looks.last()) else {
            return Vec::new();
        };
        let used =
            |tid: &u32, now: &Thread| Some((now.cpu_us.checked_sub(first.get(tid)?.cpu_us)?, *tid));
        let mut threads: Vec<_> = last.iter().filter_map(|(tid, now)| used(tid, now)).collect();
        threads.sort_by_key(|(cpu_us, _)| std::cmp::Reverse(*cpu_us));
        threads.into_iter().map(|(_, tid)| tid).collect()
    }
}

fn nowhere(why: &'static str) -> (Known<u64>, Known<u64>) {
    (Known::missing(why), Known::missing(why))
}

fn waited(thread: &Thread) -> Known<u64> {
    match thread.cpu_wait_us {
        Some(us) => Known::Value(us),
        None => Known::missing("this kernel keeps no schedstat of threads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{FlowSample, Role};

    fn program(looks: &[&[(u32, char, u64)]]) -> Program {
        let look = |threads: &&[(u32, char, u64)]| {
            let thread = |(tid, state, cpu_us): &(u32, char, u64)| {
                (*tid, Thread { tid: *tid, state: *state, cpu_us: *cpu_us, cpu_wait_us: None })
            };
            threads.iter().map(thread).collect()
        };
        let owner = Some(Owner { pid: 7, name: "it".into() });
        Program { owner, looks: looks.iter().map(look).collect() }
    }

    fn sample(flows: u16) -> Sample {
        let flow = |number| FlowSample::unreported(number, Role::Sender, 0, "not asked");
        Sample {
            at_s: 0.0,
            sent_bytes: 0,
            received_bytes: 0,
            flows: (0..flows).map(flow).collect(),
        }
    }

    #[test]
    fn the_busiest_thread_is_the_flows() {
        let program = program(&[&[(7, 'S', 50), (8, 'R', 10)], &[(7, 'S', 51), (8, 'R', 90)]]);
        let mut samples = [sample(3), sample(3)];
        program.enter(&mut samples);
        let cpu = |n: usize| samples[1].flows[n].cpu_us.clone();
        assert_eq!(
            [cpu(0), cpu(1), cpu(2)].map(|k| k.value().copied()),
            [Some(90), Some(51), Some(0)]
        );
    }

    #[test]
    fn states_are_shares_of_the_looks() {
        let disk: Vec<&[(u32, char, u64)]> = vec![&[(7, 'D', 0)]; 8];
        let runs: Vec<&[(u32, char, u64)]> = vec![&[(7, 'R', 9)]; 8];
        let looks: Vec<_> = disk.into_iter().chain(runs).collect();
        let mut facts = Snapshot::default();
        program(&looks).note(&mut facts);
        assert_eq!(facts.number("process.disk_wait_percent"), Ok(50.0));
        assert_eq!(facts.text("process.name"), Ok("it"));
    }

    #[test]
    fn a_program_that_may_not_be_looked_at_says_so() {
        let mut program = Program { owner: None, looks: Vec::new() };
        program.look();
        let mut samples = [sample(1)];
        program.enter(&mut samples);
        assert!(samples[0].flows[0].cpu_us.value().is_none());
        assert_eq!(program.subject(), Subject::Unknown);
        assert!(program.words().contains("as root"));
    }
}
