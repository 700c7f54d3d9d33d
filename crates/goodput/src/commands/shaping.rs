//! `goodput shaping`: tests whether a shaper delivers its rate.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use goodput_engine::{Credentials, ProveRequest, ShapingRequest, Target, shaping};
use goodput_model::{BitRate, Confirmation, Plan, Record, ShapingTest, SinceLast, SocketOptions};

use super::measured::{self, Runs};
use super::settings::settle_leftovers;
use super::shaping_timer;
use crate::args::ShapingArgs;
use crate::credentials::credentials;
use crate::data_dirs::{announced, history, state_dir};
use crate::exit::Exit;
use crate::report::{self, live::Live};
use crate::screen;

/// Tests and reports, or shows how to do that on a schedule.
pub fn run(args: &ShapingArgs, state: Option<PathBuf>) -> Result<Exit> {
    args.check_proof()?;
    let target: Target = args.target.parse()?;
    if let Some(calendar) = &args.schedule.show_timer {
        args.shaper.classes()?;
        args.capture.files()?;
        return shaping_timer::show(args, state.as_deref(), calendar);
    }
    let capture = args.capture.files()?;
    let request = ShapingRequest {
        credentials: credentials(&args.credentials, &target)?,
        plan: capture.plan(args.traffic.plan()),
        datagram: args.traffic.datagram(&target),
        target,
        configured: args.shaper.configured(),
        classes: args.shaper.classes()?,
        prove: prove(args, state.clone())?,
        router: args.router.request(|router| of_router(args, router))?,
        capture,
        times: args.traffic.times.clone(),
        started: measured::now(),
    };
    let announced = announced(state, &args.output, "shaping", &args.target, &request.started);
    let live = Live::new(&args.output, &request.plan, &args.target)
        .with_intervals(false)
        .announced(announced);
    let last = |record: &mut Record| match args.output.no_store {
        true => Ok(()),
        false => compare_with_last(record, &request.plan).context("the history was not read"),
    };
    Runs { output: &args.output, live, text: &report::shaping::text, judge: judged }.report_after(
        async |interrupt, listener| shaping(&request, interrupt, listener).await,
        last,
    )
}

/// The credentials for a router's server: those for the target, with the token of its own if one was named.
fn of_router(args: &ShapingArgs, router: &Target) -> Result<Credentials> {
    let mut known = args.credentials.clone();
    known.token_file = args.router.router_token_file.clone().or(known.token_file);
    credentials(&known, router)
}

/// How to compare the settings in question. What dead runs left changed is put back first.
fn prove(args: &ShapingArgs, state: Option<PathBuf>) -> Result<Option<ProveRequest>> {
    if !args.proof.prove {
        return Ok(None);
    }
    let how = ProveRequest {
        max_time: Duration::from_secs_f64(args.proof.max_time),
        seed: args.proof.seed.unwrap_or_else(rand::random),
        state_dir: state_dir(state)?,
    };
    settle_leftovers(&how.state_dir);
    Ok(Some(how))
}

/// Notes what changed since the last test of the same shaper in the history. `wanted` is the plan that was asked for: the
/// record of a test without TCP has that of its train.
fn compare_with_last(record: &mut Record, wanted: &Plan) -> Result<()> {
    let Some(now) = &record.shaping else { return Ok(()) };
    let is_same = |old: &Record| is_same(old, now, wanted);
    let last = history()?.newest("shaping", &record.target, &measured::soon(), is_same)?;
    for why in &last.unread {
        screen::say(format_args!("goodput: not compared with an earlier test: {why}"));
    }
    let last = last.record.and_then(|last| Some((last.started, last.shaping?)));
    let Some((started, before)) = last else { return Ok(()) };
    let changes = goodput_shaping::since(&before, now);
    if let Some(test) = &mut record.shaping {
        test.since = Some(SinceLast { started, changes });
    }
    Ok(())
}

/// Whether `old` has a whole test of the shaper that was tested `now`, by the same way.
fn is_same(old: &Record, now: &ShapingTest, wanted: &Plan) -> bool {
    let tested = |test: &ShapingTest| {
        (test.configured_bits_per_s, asked(test)) == (now.configured_bits_per_s, asked(now))
    };
    let same_way = old.plan.direction == wanted.direction
        && own_socket(&old.plan.socket, now) == own_socket(&wanted.socket, now);
    same_way && old.incomplete.is_none() && old.shaping.as_deref().is_some_and(tested)
}

/// The classes that were tested, with their rates.
fn asked(test: &ShapingTest) -> Vec<(&str, BitRate)> {
    test.classes.iter().map(|class| (class.name.as_str(), class.rate_bits_per_s)).collect()
}

/// The socket options of a test, without the mark of the class that they are of.
fn own_socket(socket: &SocketOptions, test: &ShapingTest) -> SocketOptions {
    match test.classes.is_empty() {
        true => socket.clone(),
        false => SocketOptions { dscp: None, source_port: None, ..socket.clone() },
    }
}

fn judged(record: &Record) -> Exit {
    record.shaping.as_deref().map_or(Exit::Inconclusive, exit)
}

/// A shaper that was to be proven and could not be has no other answer. If nothing was in question, nothing failed.
fn exit(test: &ShapingTest) -> Exit {
    let failed = test.not_proven.as_ref().filter(|not| !not.nothing_in_question);
    match (failed, test.confirmation) {
        (Some(not), _) if not.not_permitted => Exit::NotPermitted,
        (Some(_), _) => Exit::CouldNot,
        (None, Confirmation::Confirmed) => Exit::Fine,
        (None, Confirmation::Missed) => Exit::Problem,
        (None, Confirmation::Inconclusive) => Exit::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Direction, Kind, NotProven};

    #[test]
    fn a_test_is_compared_with_one_that_asked_for_the_same() {
        let json = include_str!("../../../store/tests/golden/v1/test.json");
        let of = |plan: Plan, test: ShapingTest| Record {
            kind: Kind::Shaping,
            plan,
            shaping: Some(Box::new(test)),
            incomplete: None,
            ..Record::from_json(json).unwrap()
        };
        let with = |congestion: &str| Plan {
            socket: SocketOptions {
                congestion: Some(congestion.into()),
                ..SocketOptions::default()
            },
            ..Plan::standard()
        };
        let test = |rate| ShapingTest::of(BitRate(rate));
        let old = of(with("bbr"), test(1e8));
        // The train of a test without TCP has no congestion control; what was asked for counts.
        assert!(is_same(&old, &test(1e8), &with("bbr")));
        assert!(!is_same(&old, &test(1e8), &with("cubic")));
        assert!(!is_same(&old, &test(2e8), &with("bbr")));
        let reverse = Plan { direction: Direction::Reverse, ..with("bbr") };
        assert!(!is_same(&old, &test(1e8), &reverse));
        let part = Record { incomplete: Some("no TCP".into()), ..old };
        assert!(!is_same(&part, &test(1e8), &with("bbr")));
    }

    #[test]
    fn a_proof_without_a_question_leaves_the_answer_of_the_test() {
        let not = |not_permitted, nothing_in_question| {
            Some(NotProven { why: "a reason".into(), not_permitted, nothing_in_question })
        };
        let ends = |confirmation, not_proven| {
            exit(&ShapingTest { confirmation, not_proven, ..ShapingTest::of(BitRate(1e8)) })
        };
        assert_eq!(ends(Confirmation::Confirmed, not(false, true)), Exit::Fine);
        assert_eq!(ends(Confirmation::Missed, not(false, true)), Exit::Problem);
        assert_eq!(ends(Confirmation::Missed, not(true, false)), Exit::NotPermitted);
        assert_eq!(ends(Confirmation::Confirmed, not(false, false)), Exit::CouldNot);
        assert_eq!(ends(Confirmation::Confirmed, None), Exit::Fine);
    }
}
