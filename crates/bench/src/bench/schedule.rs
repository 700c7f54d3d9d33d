//! The order of the runs: every entry once in each round, contests in turn, entries in random order.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rand::seq::SliceRandom;

use super::contest::Contest;
use super::kept::{Kept, Line, ResultLog, RunOutcome, RunRecord};
use super::machine::Machine;
use super::net::Net;
use super::page::{goals, one_line};
use super::peers::{Contestant, GivenPeer};
use super::place::Place;
use super::run;
use super::stage::Stage;
use super::steal::CpuTime;

/// The runs to do.
pub struct Schedule<'a> {
    /// The contests.
    pub contests: &'a [&'static Contest],
    /// The number of rounds.
    pub rounds: u32,
    /// The most rounds of a contest with an open goal.
    pub most_rounds: u32,
    /// The length of each run.
    pub seconds: u32,
    /// The peers given.
    pub given: &'a [GivenPeer],
}

/// One run to do.
type Due = (&'static Contest, Place, Contestant);

impl Schedule<'_> {
    /// Runs everything; a failed run is kept with its reason.
    pub fn carry_out(
        &self,
        net: &Net,
        goodput: &Path,
        machine: Machine,
        keeper: &mut ResultLog,
    ) -> Result<Kept> {
        let minutes = self.takes().as_secs_f64() / 60.0;
        println!(
            "{} rounds of {} runs, about {minutes:.0} minutes",
            self.rounds,
            self.one_round(&self.places()).len()
        );
        keeper.add(&Line::Machine(machine.clone()))?;
        let mut kept = Kept { machine, runs: Vec::new() };
        for round in 1..=self.most_rounds {
            for (number, due) in self.one_round(&self.due(round, &kept)).into_iter().enumerate() {
                let port = port(kept.runs.len());
                let ran = self.run(net, goodput, port, round, &due);
                println!("{round}.{}: {}", number + 1, one_line(&ran, due.0));
                keeper.add(&Line::Run(ran.clone()))?;
                kept.runs.push(ran);
            }
        }
        Ok(kept)
    }

    /// The contests of a round, each at its place: at first all, then those with an open goal.
    fn due(&self, round: u32, kept: &Kept) -> Vec<(&'static Contest, Place)> {
        let is_due = |&(contest, place): &_| {
            round <= self.rounds
                || (kept.rounds_of(contest, place) + 1 == round
                    && goals::is_open(kept, contest, place))
        };
        self.places().into_iter().filter(is_due).collect()
    }

    fn places(&self) -> Vec<(&'static Contest, Place)> {
        let places = |contest: &&'static Contest| {
            let contest: &'static Contest = contest;
            contest.places.iter().map(move |&place| (contest, place))
        };
        self.contests.iter().flat_map(places).collect()
    }

    fn run(&self, net: &Net, goodput: &Path, port: u16, round: u32, due: &Due) -> RunRecord {
        let (contest, place, who) = due;
        let (place, seconds) = (*place, contest.seconds(self.seconds));
        let stage = Stage { net, place, port, seconds, goodput, peer: who.file.as_deref() };
        let before = CpuTime::read();
        let came = match run::run(&stage, contest, who.entry) {
            Ok(values) => RunOutcome::Values(values),
            Err(error) => RunOutcome::Failed(format!("{error:#}")),
        };
        let after = CpuTime::read();
        let steal_percent = before.zip(after).and_then(|(b, a)| a.stolen_percent_since(b));
        let (contest, place) = (contest.id.into(), place.id().into());
        RunRecord { round, contest, place, entry: who.name.clone(), steal_percent, came }
    }

    /// Contestants of one contest at one place run consecutively, so that little happens between runs that are
    /// compared.
    fn one_round(&self, places: &[(&'static Contest, Place)]) -> Vec<Due> {
        let mut rng = rand::rng();
        let mut due = Vec::new();
        for &(contest, place) in places {
            let mut everyone = contest.contestants(self.given);
            everyone.shuffle(&mut rng);
            due.extend(everyone.into_iter().map(|who| (contest, place, who)));
        }
        due
    }

    fn takes(&self) -> Duration {
        let one =
            |(contest, _, who): Due| who.entry.takes(&contest.load, contest.seconds(self.seconds));
        self.one_round(&self.places()).into_iter().map(one).sum::<Duration>() * self.rounds
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
    fn the_usual_bench_takes_at_most_half_an_hour() {
        let usual = Schedule { contests: ALL, rounds: 6, most_rounds: 6, seconds: 2, given: &[] };
        let minutes = usual.takes().as_secs_f64() / 60.0;
        assert!((5.0..=30.0).contains(&minutes), "{minutes}");
    }

    #[test]
    fn a_round_has_every_entry_once_at_each_place() {
        let schedule =
            Schedule { contests: ALL, rounds: 1, most_rounds: 1, seconds: 1, given: &[] };
        let expected: usize = ALL.iter().map(|c| c.contestants(&[]).len() * c.places.len()).sum();
        assert_eq!(schedule.one_round(&schedule.places()).len(), expected);
    }

    #[test]
    fn ports_stay_below_those_of_clients() {
        assert!((0..1000).all(|run| (10_000..32_768 - 128).contains(&port(run))));
    }
}
