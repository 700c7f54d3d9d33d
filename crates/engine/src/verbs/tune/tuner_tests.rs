//! The decisions of the search, with comparisons that are made up.

use std::collections::VecDeque;
use std::time::Duration;

use goodput_model::{
    ArmResult, BitRate, Change, Comparison, Confidence, Effect, End, Finding, Host, Judgement,
    Known, Length, Place, Plan, Purpose, Record, Response, ResponseResult, Trial, TuningOutcome,
    TuningStep,
};

use super::comparisons::{Compare, Comparisons};
use super::gain::ways_to_win;
use super::request::TuneRequest;
use super::search::Search;
use super::time_budget::TimeBudget;
use super::tuner::Tuner;
use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::{Interrupt, Raise, interrupt};
use crate::result::conclude::conclude_at_least;
use crate::result::measurement::Measurement;
use crate::verbs::compare::{Arm, CompareRequest, Compared};

/// What one comparison shows.
#[derive(Clone)]
enum Shows {
    /// The change so judged, with this goodput, Mbit/s; a run with it proposes these changes.
    Runs(Judgement, f64, Vec<Change>),
    /// The change is better, and a run with it takes a minute.
    Slow,
    /// Fewer blocks than can show something.
    TooFew,
    /// It can't be made.
    Refused,
    /// The change makes no difference, and can't be put back.
    NotBack,
    /// Its runs did not end in time.
    GivenUp,
    /// Someone interrupts it, and its last run does not end.
    CutShort,
    /// Someone interrupts it.
    Interrupted,
}

use Judgement::{Better, NoDifference};
use Shows::{CutShort, GivenUp, Interrupted, NotBack, Refused, Runs, Slow, TooFew};

/// Shows one thing after the other, and notes what was asked: `before -> after`.
struct Played {
    shows: VecDeque<Shows>,
    asked: Vec<String>,
    raise: Raise,
}

impl Compare for &mut Played {
    async fn compare(
        &mut self,
        request: &CompareRequest,
        _interrupt: &Interrupt,
        _listener: &mut Listener<'_>,
    ) -> Result<Compared, EngineError> {
        let [before, after] = [0, 1].map(|arm: usize| request.arms[arm].values().join(" "));
        self.asked.push(format!("{before} -> {after}"));
        match self.shows.pop_front().expect("no more comparisons") {
            Runs(judgement, mbit, changes) => Ok(compared(request, judgement, 8, mbit, changes)),
            Slow => Ok(Compared {
                changed_run: Some(Duration::from_secs(60)),
                ..compared(request, Better, 8, 20.0, Vec::new())
            }),
            TooFew => Ok(compared(request, Judgement::Inconclusive, 2, 1.0, Vec::new())),
            Refused => Err(EngineError::Forbidden("no".into())),
            NotBack => Ok(Compared {
                not_put_back: Some("chunk is not put back".into()),
                ..compared(request, NoDifference, 8, 10.0, Vec::new())
            }),
            GivenUp => Err(EngineError::GivenUp("the time limit was reached".into())),
            CutShort => {
                self.raise.raise();
                Ok(Compared {
                    given_up: Some("it was interrupted, and the far end no longer answered".into()),
                    ..compared(request, Judgement::Inconclusive, 2, 10.0, Vec::new())
                })
            }
            Interrupted => {
                self.raise.raise();
                Err(EngineError::Interrupted)
            }
        }
    }
}

/// The response that the purpose is about so judged; of the others, no difference.
fn compared(
    CompareRequest { arms, responses, .. }: &CompareRequest,
    judgement: Judgement,
    n: usize,
    mbit: f64,
    changes: Vec<Change>,
) -> Compared {
    let effect = Effect {
        percent: 10.0,
        low_percent: 5.0,
        high_percent: 15.0,
        confidence_percent: 95.0,
        n,
        adjusted_for: Vec::new(),
        judgement,
    };
    let judged = |response: &Response| match responses.first() == Some(response) {
        true => judgement,
        false => NoDifference,
    };
    let result = |arm, response: &Response| ResponseResult {
        response: *response,
        median: Known::missing("made up"),
        against: (arm > 0).then(|| Effect { judgement: judged(response), ..effect.clone() }),
    };
    let arm = |(number, arm): (usize, &Arm)| ArmResult {
        n,
        goodput_bits_per_s: Known::Value(BitRate(mbit * 1e6)),
        responses: responses.iter().map(|response| result(number, response)).collect(),
        ..ArmResult::new(arm.values())
    };
    let results = arms.iter().enumerate().map(arm).collect();
    let comparison = Some(Comparison::new(arms[0].settings(), results));
    let record = Record { comparison, ..measured(mbit) };
    let challenger = Some(Record { findings: vec![finding(changes)], ..measured(mbit) });
    Compared { record, challenger, changed_run: None, not_put_back: None, given_up: None }
}

/// A record with this goodput, Mbit/s, on a path that carries 100.
pub(super) fn measured(mbit: f64) -> Record {
    let near = End::unobserved(Host::foreign("near"));
    let seen = Measurement::made_up(Plan::standard(), near, Known::missing("made up"));
    let mut record = conclude_at_least(seen, "x", "now").record;
    record.result.goodput_bits_per_s = BitRate(mbit * 1e6);
    record.result.ceiling_bits_per_s = Known::Value(BitRate(100e6));
    record
}

pub(super) fn finding(changes: Vec<Change>) -> Finding {
    Finding { changes, ..Finding::new("x", Place::Near, Confidence::Certain, "x") }
}

pub(super) fn change(setting: &str, to: &str) -> Change {
    let setting = setting.parse().unwrap();
    Change { setting, from: None, to: to.into(), why: "because".into() }
}

fn sndbuf() -> Change {
    change("socket.sndbuf", "4M")
}

fn chunk() -> Change {
    change("chunk", "1M")
}

pub(super) fn request() -> TuneRequest {
    TuneRequest {
        target: "example".parse().unwrap(),
        credentials: Default::default(),
        plan: Plan::standard(),
        run_length: None,
        purpose: Purpose::Throughput,
        min_gain_percent: 3.0,
        max_time: Duration::from_secs(600),
        seed: 1,
        keepable: None,
        dry_run: false,
        state_dir: "/nowhere".into(),
        hosts: Default::default(),
        started: "now".into(),
    }
}

/// What a search came to.
struct Came {
    /// The comparisons that were asked for.
    asked: Vec<String>,
    /// Whether each change that was tried has runs.
    have_runs: Vec<bool>,
    outcomes: Vec<TuningOutcome>,
    proven: Vec<String>,
    doubts: Vec<String>,
    incomplete: Option<String>,
    stopped: String,
}

/// A search in this time that begins with these proposals, and whose comparisons show this.
fn search_in(max_time: Duration, proposed: &[Change], shows: &[Shows]) -> Came {
    let mut search = Search::default();
    search.consider(&[finding(proposed.to_vec())]);
    play(TuneRequest { max_time, ..request() }, search, measured(10.0), shows)
}

/// A search for `purpose` on a path that is full, with what is tried later.
fn search_for(purpose: Purpose, proposed: &[Change], later: &[Change], shows: &[Shows]) -> Came {
    let mut search = Search::default();
    search.consider(&[finding(proposed.to_vec())]);
    search.consider_later(&[finding(later.to_vec())]);
    play(TuneRequest { purpose, ..request() }, search, measured(100.0), shows)
}

fn play(request: TuneRequest, search: Search, start: Record, shows: &[Shows]) -> Came {
    let (raise, interrupt) = interrupt();
    let mut played = Played { shows: shows.to_vec().into(), asked: Vec::new(), raise };
    let budget = TimeBudget::new(request.max_time, ways_to_win(request.purpose));
    let runs = Comparisons::new(&request, &interrupt, Length::Seconds(1.0), budget, &mut played);
    let mut tuner = Tuner::new(runs, search);
    // What hangs is given up at once: while nothing is ready, a paused clock goes on to the end of the time.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let stopped = runtime.block_on(tuner.search_and_prove(&start, &mut |_| {}));
    let record = tuner.into_record(start, stopped);
    assert!(played.shows.is_empty(), "it was asked for {:?} only", played.asked);
    let (tuning, doubts, incomplete) = (record.tuning.unwrap(), record.doubts, record.incomplete);
    Came {
        doubts,
        incomplete,
        asked: played.asked,
        have_runs: tuning.steps.iter().map(|step| step.comparison.value().is_some()).collect(),
        outcomes: tuning.steps.iter().map(|step| step.outcome).collect(),
        proven: tuning.proven.iter().map(|change| change.setting.to_string()).collect(),
        stopped: tuning.stopped,
    }
}

fn search(proposed: &[Change], shows: &[Shows]) -> Came {
    search_in(Duration::from_secs(600), proposed, shows)
}

#[test]
fn what_helps_is_kept_and_proven_against_the_start() {
    let shows = [
        Runs(Better, 20.0, vec![chunk()]),
        Runs(NoDifference, 20.0, vec![]),
        Runs(Better, 20.0, vec![]),
    ];
    let came = search(&[sndbuf()], &shows);
    assert_eq!(came.asked, ["default -> 4M", "4M default -> 4M 1M", "default -> 4M"]);
    assert_eq!(came.outcomes, [TuningOutcome::Kept, TuningOutcome::NotBetter]);
    assert_eq!(
        (came.proven, came.stopped),
        (vec!["socket.sndbuf".into()], "nothing is left to try".into())
    );
}

#[test]
fn each_of_several_kept_changes_is_left_out_once_more() {
    let shows = [
        Runs(Better, 20.0, vec![chunk()]),
        Runs(Better, 30.0, vec![]),
        Runs(NoDifference, 30.0, vec![]),
        Runs(Better, 30.0, vec![]),
    ];
    let came = search(&[sndbuf()], &shows);
    assert_eq!(came.asked[2..], ["default 1M -> 4M 1M", "default -> 1M"]);
    assert_eq!(came.outcomes[2], TuningOutcome::Dropped);
    assert_eq!(came.proven, ["chunk"], "what one makes needless is not proven");
}

#[test]
fn what_is_shown_to_harm_a_little_is_not_needed() {
    let shows = [
        Runs(Better, 20.0, vec![chunk()]),
        Runs(Better, 30.0, vec![]),
        Runs(Judgement::WorsePerhapsBelowThreshold, 30.0, vec![]),
        Runs(Better, 30.0, vec![]),
    ];
    let came = search(&[sndbuf()], &shows);
    assert_eq!(came.outcomes[2], TuningOutcome::Dropped);
    assert_eq!(came.proven, ["chunk"]);
}

#[test]
fn nothing_follows_what_is_not_put_back() {
    let came = search(&[sndbuf(), chunk()], &[NotBack]);
    assert_eq!(came.outcomes, [TuningOutcome::NotBetter, TuningOutcome::Planned]);
    assert_eq!(came.incomplete.as_deref(), Some("chunk is not put back"));
    assert_eq!(came.stopped, "a comparison failed");
}

#[test]
fn after_an_interrupt_nothing_more_is_tried_and_what_was_under_way_has_too_few_runs() {
    let came = search(&[sndbuf(), chunk()], &[Interrupted]);
    assert_eq!(came.outcomes, [TuningOutcome::TooFewRuns, TuningOutcome::Planned]);
    assert_eq!((came.incomplete, &*came.stopped), (None, "it was interrupted"));
}

#[test]
fn a_proof_below_the_ceiling_leaves_its_error_to_the_next() {
    let shows = [
        Runs(Better, 20.0, vec![]),
        Runs(Better, 20.0, vec![chunk()]),
        Runs(Better, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
    ];
    let came = search(&[sndbuf()], &shows);
    let all = ["default -> 4M", "default -> 4M", "4M default -> 4M 1M"];
    assert_eq!(came.asked[..3], all);
    assert_eq!(came.asked.last().unwrap(), "default default -> 4M 1M");
    assert_eq!(came.proven, ["socket.sndbuf", "chunk"]);
    assert!(came.stopped.contains("is within 3 % of"), "{}", came.stopped);
}

#[test]
fn what_was_proven_first_stays_proven_if_an_addition_is_not() {
    let shows = [
        Runs(Better, 20.0, vec![]),
        Runs(Better, 20.0, vec![chunk()]),
        Runs(Better, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
        Runs(NoDifference, 100.0, vec![]),
    ];
    let came = search(&[sndbuf()], &shows);
    assert_eq!(came.asked.last().unwrap(), "default default -> 4M 1M");
    assert_eq!(came.proven, ["socket.sndbuf"]);
    let said = |doubt: &String| {
        doubt
            .starts_with("a later comparison with the start, of socket.sndbuf=4M, chunk=1M, proved")
    };
    assert!(came.doubts.iter().any(said), "{:?}", came.doubts);
    assert!(came.stopped.starts_with("the last comparison did not prove what was added"));
}

#[test]
fn an_undecided_last_comparison_is_said_in_the_end() {
    let shows = [Runs(Better, 20.0, vec![]), Runs(Judgement::Inconclusive, 10.0, vec![])];
    let came = search(&[sndbuf()], &shows);
    assert_eq!(came.proven, [""; 0]);
    assert!(came.stopped.starts_with("the last comparison stayed undecided"), "{}", came.stopped);
}

#[test]
fn without_a_proposal_nothing_was_to_try() {
    let came = search(&[], &[]);
    assert_eq!(came.stopped, "no finding proposes a change that goodput can make");
}

#[test]
fn after_a_proof_that_proves_nothing_no_other_follows() {
    let shows = [Runs(Better, 20.0, vec![]), Runs(NoDifference, 10.0, vec![chunk()])];
    let came = search(&[sndbuf()], &shows);
    assert_eq!(came.outcomes, [TuningOutcome::Kept, TuningOutcome::Planned]);
    assert_eq!(came.proven, [""; 0]);
    assert!(came.stopped.starts_with("the last comparison did not show"), "{}", came.stopped);
}

#[test]
fn a_trial_at_the_ceiling_ends_the_trials_and_not_the_search() {
    let shows = [
        Runs(Better, 100.0, vec![chunk()]),
        Runs(Better, 50.0, vec![]),
        Runs(NoDifference, 50.0, vec![]),
    ];
    let came = search(&[sndbuf()], &shows);
    assert_eq!(came.asked[1..], ["default -> 4M", "4M default -> 4M 1M"]);
    assert_eq!(came.proven, ["socket.sndbuf"]);
}

#[test]
fn what_is_undecided_is_tried_again_last() {
    let open = || Runs(Judgement::Inconclusive, 10.0, vec![]);
    let came = search(&[sndbuf(), chunk()], &[open(), Runs(NoDifference, 10.0, vec![]), open()]);
    assert_eq!(came.asked, ["default -> 4M", "default -> 1M", "default -> 4M"]);
    assert_eq!(came.stopped, "nothing is left to try");
}

#[test]
fn what_had_too_few_runs_is_said_in_the_end() {
    let came = search(&[sndbuf()], &[TooFew, TooFew]);
    assert_eq!(came.outcomes, [TuningOutcome::TooFewRuns; 2]);
    assert!(came.stopped.starts_with("too few runs to judge"), "{}", came.stopped);
}

#[test]
fn what_had_too_few_runs_is_tried_again_while_time_is_left() {
    let shows = [TooFew, Runs(NoDifference, 10.0, vec![]), Runs(Better, 20.0, vec![])];
    let shows = [&shows[..], &[Runs(Better, 20.0, vec![])]].concat();
    let came = search(&[sndbuf(), chunk()], &shows);
    assert_eq!(came.asked, ["default -> 4M", "default -> 1M", "default -> 4M", "default -> 4M"]);
    assert_eq!(came.proven, ["socket.sndbuf"]);
    assert_eq!(came.stopped, "nothing is left to try", "its last trial could judge");
}

#[test]
fn what_is_refused_is_a_step_and_the_search_goes_on() {
    let came = search(&[sndbuf(), chunk()], &[Refused, Runs(NoDifference, 10.0, vec![])]);
    assert_eq!(came.outcomes, [TuningOutcome::NotPermitted, TuningOutcome::NotBetter]);
    assert_eq!(came.stopped, "nothing is left to try");
}

#[test]
fn without_root_a_congestion_control_is_tried_for_the_sockets_alone() {
    let host = change("sysctl.net.ipv4.tcp_congestion_control", "bbr");
    let both = [host, change("socket.congestion", "bbr")];
    let came = search(&both, &[Refused, Runs(Better, 20.0, vec![]), Runs(Better, 20.0, vec![])]);
    assert_eq!(came.outcomes, [TuningOutcome::NotPermitted, TuningOutcome::Kept]);
    assert_eq!(came.proven, ["socket.congestion"]);
    let came = search(&both, &[Runs(Better, 20.0, vec![]), Runs(Better, 20.0, vec![])]);
    assert_eq!(came.outcomes, [TuningOutcome::Kept], "the second does what the first does");
    assert_eq!(came.proven, ["sysctl.net.ipv4.tcp_congestion_control"]);
}

#[test]
fn what_was_refused_is_not_tried_again_later_on_top_of_what_does_the_same() {
    let host = change("sysctl.net.ipv4.tcp_congestion_control", "bbr");
    let both = [host, change("socket.congestion", "bbr")];
    let shows = [Refused, Runs(Better, 100.0, vec![]), Runs(Better, 100.0, vec![])];
    let came = search_for(Purpose::Latency, &both, &both, &shows);
    assert_eq!(came.outcomes, [TuningOutcome::NotPermitted, TuningOutcome::Kept]);
    assert_eq!(came.proven, ["socket.congestion"]);
}

#[test]
fn a_full_path_ends_only_a_search_for_more_goodput() {
    let queue = change("qdisc.tbf.limit@eth0", "131072");
    let came = search_for(Purpose::Throughput, std::slice::from_ref(&queue), &[], &[]);
    assert!(came.stopped.contains("is within 3 % of"), "{}", came.stopped);
    let shows = [Runs(Better, 100.0, vec![]), Runs(Better, 100.0, vec![])];
    let came = search_for(Purpose::Latency, &[queue], &[], &shows);
    assert_eq!(came.proven, ["qdisc.tbf.limit@eth0"]);
    assert_eq!(came.stopped, "nothing is left to try");
}

#[test]
fn what_saves_cpu_time_is_tried_after_what_the_findings_propose() {
    let (mover, tso) = (change("mover", "sendfile"), change("offload.tso@eth0", "on"));
    let shows = [
        Runs(Better, 100.0, vec![]),
        Runs(NoDifference, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
        Runs(NoDifference, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
    ];
    let came = search_for(Purpose::Cpu, &[sndbuf()], &[mover, tso], &shows);
    let [tried @ .., _] = &came.asked[..] else { panic!("{:?}", came.asked) };
    let all = [
        "default -> 4M",
        "4M default -> 4M sendfile",
        "4M default -> 4M on",
        "default on -> 4M on",
    ];
    assert_eq!(tried, all);
    assert_eq!(came.proven, ["offload.tso@eth0"], "less CPU time for each byte is what counts");
}

#[test]
fn the_trial_of_an_only_change_counts_if_its_proof_can_not_judge() {
    let came = search(&[sndbuf()], &[Runs(Better, 20.0, vec![]), TooFew]);
    assert_eq!(came.proven, ["socket.sndbuf"]);
}

#[test]
fn the_end_of_the_time_within_the_last_comparison_is_no_failure() {
    let over = "the time was over before the last comparison could judge what was kept; ";
    let ends = |came: &Came, what: &str| {
        let said = format!("{over}{what}; --max-time gives more");
        assert_eq!(came.stopped, said);
        let lost = |doubt: &String| doubt.starts_with("a comparison did not end when the time");
        assert!(came.doubts.iter().any(lost), "{:?}", came.doubts);
    };
    let shows = [
        Runs(Better, 20.0, vec![chunk()]),
        Runs(Better, 30.0, vec![]),
        Runs(NoDifference, 30.0, vec![]),
        GivenUp,
    ];
    let came = search(&[sndbuf()], &shows);
    ends(&came, "nothing is proven");
    assert_eq!(came.proven, [""; 0]);
    let came = search(&[sndbuf()], &[Runs(Better, 20.0, vec![]), GivenUp]);
    ends(&came, "what an earlier one proved stays proven");
    assert_eq!(came.proven, ["socket.sndbuf"], "the trial of the only change");
    let shows = [
        Runs(Better, 20.0, vec![]),
        Runs(Better, 20.0, vec![chunk()]),
        Runs(Better, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
        Runs(Better, 100.0, vec![]),
        GivenUp,
    ];
    let came = search(&[sndbuf()], &shows);
    ends(&came, "what an earlier one proved stays proven");
    assert_eq!(came.proven, ["socket.sndbuf"]);
}

#[test]
fn of_a_comparison_whose_last_run_does_not_end_the_finished_runs_are_reported() {
    let came = search(&[sndbuf(), chunk()], &[CutShort]);
    assert_eq!(came.outcomes, [TuningOutcome::TooFewRuns, TuningOutcome::Planned]);
    assert_eq!(came.have_runs, [true, false]);
    assert_eq!(came.stopped, "it was interrupted");
    assert!(
        came.doubts.iter().any(|doubt| doubt.contains("no longer answered")),
        "{:?}",
        came.doubts
    );
}

#[test]
fn what_is_tried_at_the_end_of_the_time_stays_untried() {
    let came = search(&[sndbuf(), chunk()], &[GivenUp]);
    assert_eq!(came.outcomes, [TuningOutcome::Planned; 2]);
    assert!(came.stopped.starts_with("the time was over; "), "{}", came.stopped);
}

#[test]
fn what_takes_longer_with_the_kept_change_is_not_begun() {
    let kept = Finding { changes: vec![chunk()], ..finding(vec![]) };
    let mut search = Search::default();
    search.consider(&[finding(vec![sndbuf()])]);
    search.consider_later(&[kept]);
    let came = play(request(), search, measured(10.0), &[Slow, Runs(Better, 20.0, vec![])]);
    assert_eq!(came.outcomes, [TuningOutcome::Kept, TuningOutcome::Planned]);
    assert!(came.stopped.starts_with("too little time was left"), "{}", came.stopped);
}

#[test]
fn without_time_everything_is_left_untried() {
    let came = search_in(Duration::ZERO, &[sndbuf(), chunk()], &[]);
    assert_eq!(came.outcomes, [TuningOutcome::Planned; 2]);
    assert!(came.stopped.starts_with("the time was over"), "{}", came.stopped);
}

/// Each of two trials has fewer blocks than could show it.
#[test]
fn runs_that_depend_on_their_order_in_all_trials_together_are_said() {
    let trial = |_| {
        let run = |block: usize, place: usize| {
            let goodput = Known::Value(BitRate([160e3, 235e3][place]));
            Trial::new(block as u32, (block + place) % 2, goodput)
        };
        let trials = (1..=4).flat_map(|block| [run(block, 0), run(block, 1)]).collect();
        TuningStep {
            change: sndbuf(),
            rule: "x".into(),
            outcome: TuningOutcome::TooFewRuns,
            comparison: Known::Value(Comparison {
                trials,
                ..Comparison::new(Vec::new(), Vec::new())
            }),
        }
    };
    let doubts = |trials: usize| {
        let (request, (raise, never)) = (request(), interrupt());
        let mut played = Played { shows: VecDeque::new(), asked: Vec::new(), raise };
        let budget = TimeBudget::new(request.max_time, 1);
        let runs = Comparisons::new(&request, &never, Length::Seconds(1.0), budget, &mut played);
        let mut tuner = Tuner::new(runs, Search::default());
        tuner.steps.extend((0..trials).map(trial));
        tuner.into_record(measured(10.0), "now".into()).doubts
    };
    let says = |doubt: &String| {
        doubt.starts_with("in the trials of changes, throughput depends on the order of the runs")
    };
    assert!(!doubts(1).iter().any(says) && doubts(2).iter().any(says), "{:?}", doubts(2));
}
