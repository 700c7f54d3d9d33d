//! The order of the runs: every entry once in each round, contests in turn, entries in random order.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rand::seq::SliceRandom;

use super::contest::{Contest, Entry};
use super::kept::{Kept, Line, ResultLog, RunOutcome, RunRecord};
use super::machine::Machine;
use super::net::Net;
use super::page::one_line;
use super::place::Place;
use super::run;
use super::stage::Stage;

/// The runs to do.
pub struct Schedule<'a> {
    /// The contests.
    pub contests: &'a [&'static Contest],
    /// The number of rounds.
    pub rounds: u32,
    /// The length of each run.
    pub seconds: u32,
}

/// One run to do.
type Due = (&'static Contest, Place, &'static Entry);

impl Schedule<'_> {
    /// Runs everything; a failed run is kept with its reason.
    pub fn carry_out(
        &self,
        goodput: &Path,
        machine: Machine,
        keeper: &mut ResultLog,
    ) -> Result<Kept> {
        let minutes = self.takes().as_secs_f64() / 60.0;
        println!(
            "{} rounds of {} runs, about {minutes:.0} minutes",
            self.rounds,
            self.one_round().len()
        );
        keeper.add(&Line::Machine(machine.clone()))?;
        let net = Net::new()?;
        let mut kept = Kept { machine, runs: Vec::new() };
        for round in 1..=self.rounds {
            for (number, due) in self.one_round().into_iter().enumerate() {
                let port = port(kept.runs.len());
                let ran = self.run(&net, goodput, port, round, due);
                println!("{round}.{}: {}", number + 1, one_line(&ran, due.0));
                keeper.add(&Line::Run(ran.clone()))?;
                kept.runs.push(ran);
            }
        }
        Ok(kept)
    }

    fn run(&self, net: &Net, goodput: &Path, port: u16, round: u32, due: Due) -> RunRecord {
        let (contest, place, entry) = due;
        let seconds = contest.seconds(self.seconds);
        let stage = Stage { net, place, port, seconds, goodput };
        let came = match run::run(&stage, contest, entry) {
            Ok(values) => RunOutcome::Values(values),
            Err(error) => RunOutcome::Failed(format!("{error:#}")),
        };
        let (contest, place) = (contest.id.into(), place.id().into());
        RunRecord { round, contest, place, entry: entry.name.into(), came }
    }

    /// Contestants of one contest at one place run consecutively, so that little happens between runs that are
    /// compared.
    fn one_round(&self) -> Vec<Due> {
        let mut rng = rand::rng();
        let mut due = Vec::new();
        for &contest in self.contests {
            for &place in contest.places {
                let mut entries: Vec<&'static Entry> = contest.entries.iter().collect();
                entries.shuffle(&mut rng);
                due.extend(entries.into_iter().map(|entry| (contest, place, entry)));
            }
        }
        due
    }

    fn takes(&self) -> Duration {
        let one =
            |(contest, _, entry): Due| entry.takes(&contest.load, contest.seconds(self.seconds));
        self.one_round().into_iter().map(one).sum::<Duration>() * self.rounds
    }
}

/// Ports below those that the kernel gives to clients (`ip_local_port_range`), 128 for each run: an earlier connection
/// may still be in TIME-WAIT.
fn port(run: usize) -> u16 {
    10_000 + (run % 160) as u16 * 128
}

#[cfg(test)]
mod tests {
    use super::super::contests::ALL;
    use super::*;

    #[test]
    fn the_usual_bench_takes_at_most_twenty_minutes() {
        let usual = Schedule { contests: ALL, rounds: 6, seconds: 2 };
        let minutes = usual.takes().as_secs_f64() / 60.0;
        assert!((5.0..=20.0).contains(&minutes), "{minutes}");
    }

    #[test]
    fn a_round_has_every_entry_once_at_each_place() {
        let schedule = Schedule { contests: ALL, rounds: 1, seconds: 1 };
        let expected: usize = ALL.iter().map(|c| c.entries.len() * c.places.len()).sum();
        assert_eq!(schedule.one_round().len(), expected);
    }

    #[test]
    fn ports_stay_below_those_of_clients() {
        assert!((0..1000).all(|run| (10_000..32_768 - 128).contains(&port(run))));
    }
}
