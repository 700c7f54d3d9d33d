//! `goodput tune`: find the changes that help, and prove them.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use goodput_engine::{EngineError, Interrupt, Keepable, Listener, TuneRequest, tune};
use goodput_model::{
    ArmResult, Comparison, EndName, Judgement, Plan, Purpose, Record, SettingRef, TuningOutcome,
};
use goodput_remote::Hosts;
use goodput_settings::Setting;

use super::keep_all::keep_all;
use super::measured::{self, Runs};
use super::settings::{settle_leftovers, warn_of_leftovers};
use super::{remote_settings, saved};
use crate::args::TuneArgs;
use crate::data_dirs::{announced, state_dir};
use crate::exit::{self, Exit};
use crate::far_end::FarEnd;
use crate::os_error::without_numbers;
use crate::report::{self, live::Live};

/// Tunes and reports.
pub fn run(args: TuneArgs, state: Option<PathBuf>) -> Result<Exit> {
    let (peer, access) = (&args.measure.peer, args.hosts.access.access());
    let FarEnd { target, credentials, started: _started } =
        FarEnd::of(&args.target, peer, &access, state.clone())?;
    let mut plan = args.measure.plan_towards(&target, Plan::standard().length);
    // Round trips matter for these purposes.
    plan.latency |= matches!(args.tuning.purpose, Purpose::Latency | Purpose::Balanced);
    let hosts = args.hosts.hosts();
    let request = TuneRequest {
        keepable: args.tuning.keep.then(|| keepable(hosts.clone())),
        credentials,
        target,
        run_length: args.measure.length.length(),
        plan,
        purpose: args.tuning.purpose,
        min_gain_percent: args.tuning.min_gain,
        max_time: Duration::from_secs_f64(args.tuning.max_time),
        seed: args.tuning.seed.unwrap_or_else(rand::random),
        dry_run: args.tuning.dry_run,
        state_dir: state_dir(state.clone())?,
        hosts,
        started: measured::now(),
    };
    match request.dry_run {
        true => warn_of_leftovers(&request.state_dir),
        false => settle_leftovers(&request.state_dir),
    }
    let live = Live::new(&args.output, &request.plan, &args.target)
        .with_intervals(false)
        .with_status(&request.plan, Some(request.max_time).filter(|_| !request.dry_run))
        .announced(announced(state, &args.output, "tune", &args.target, &request.started));
    let interrupted = Cell::new(false);
    let last = |record: &mut Record| {
        // Who interrupts doesn't expect that anything is written after that; the report says how to keep it.
        let is_wanted = args.tuning.keep && record.incomplete.is_none() && !interrupted.get();
        let kept = match is_wanted {
            true => keep(record, &request.hosts, &request.state_dir),
            false => Ok(()),
        };
        let to_keep = report::tune::to_keep(record);
        if let Some(tuning) = &mut record.tuning {
            tuning.to_keep = to_keep;
        }
        kept
    };
    let work = async |interrupt: &Interrupt, listener: &mut Listener<'_>| {
        let tuned = tune(&request, interrupt, listener).await;
        interrupted.set(interrupt.is_raised());
        tuned
    };
    let host = |end| request.hosts.named(end);
    let text = |record: &Record| report::tune::text_with(record, &host);
    let judge = if request.dry_run { |_: &Record| Exit::Fine } else { tried };
    Runs { output: &args.output, live, text: &text, judge }.report_after(work, last)
}

/// What this host, or a host reached by SSH, can keep. This is tried: who learns only in the end that a disk is full has
/// waited in vain.
fn keepable(hosts: Hosts) -> Keepable {
    Arc::new(move |change, point| {
        let end = change.setting.end;
        let kept = to_keep(&change.setting, point).filter(|_| is_within_reach(&hosts, end));
        let Some(kept) = kept else { return Err(nobody_keeps()) };
        let rehearsed = match hosts.at(end) {
            Some(address) => remote_settings::rehearse(address, &hosts.access, (&kept, &change.to)),
            None => saved::rehearse(&kept, &change.to),
        };
        rehearsed.map_err(|why| EngineError::Incomplete {
            not_permitted: exit::of(&why) == Exit::NotPermitted,
            why: without_numbers(&exit::in_words(&why)).into(),
        })
    })
}

fn nobody_keeps() -> EngineError {
    let why = "none of the hosts within reach can keep it".into();
    EngineError::Incomplete { why, not_permitted: false }
}

fn is_within_reach(hosts: &Hosts, end: EndName) -> bool {
    end == EndName::Near || hosts.at(end).is_some()
}

/// Saves the proven changes of this host and of hosts reached by SSH, all of them or none, and notes where.
fn keep(record: &mut Record, hosts: &Hosts, state_dir: &Path) -> Result<()> {
    let point = record.mount.as_ref().map(|mount| mount.point.as_str());
    let Some(tuning) = &mut record.tuning else { return Ok(()) };
    let of = |end: EndName| -> Vec<_> {
        let own = tuning.proven.iter().filter(|change| change.setting.end == end);
        own.filter_map(|change| Some((to_keep(&change.setting, point)?, change.to.clone())))
            .collect()
    };
    let ends = [EndName::Near, EndName::Far].into_iter().filter(|end| is_within_reach(hosts, *end));
    let own: Vec<_> = ends.map(|end| (end, of(end))).filter(|(_, own)| !own.is_empty()).collect();
    // Only the combination is proven.
    let kept: usize = own.iter().map(|(_, own)| own.len()).sum();
    ensure!(kept == tuning.proven.len(), "nothing is kept: not all that is proven can be");
    let kept = keep_all(hosts, &own, state_dir).context("can't keep what is proven")?;
    record.doubts.extend(kept.overruled);
    tuning.kept_in = kept.files;
    Ok(())
}

/// The setting that a host can keep: of a measurement, only the options of the mount that it used.
fn to_keep(setting: &SettingRef, mount_point: Option<&str>) -> Option<SettingRef> {
    match goodput_settings::find_for(setting).is_ok_and(Setting::is_plan) {
        true => goodput_settings::of_mount(setting, mount_point?),
        false => Some(setting.clone()),
    }
}

/// Whether anything could be tried, if anything was proposed, and whether its runs could judge.
pub(super) fn tried(record: &Record) -> Exit {
    let Some(tuning) = &record.tuning else { return Exit::Fine };
    let steps = &tuning.steps[..];
    let any = |outcome| steps.iter().any(|step| step.outcome == outcome);
    let had_too_few_runs = (any(TuningOutcome::TooFewRuns) || any(TuningOutcome::Planned))
        && !any(TuningOutcome::NotBetter)
        && !any(TuningOutcome::Kept);
    // Something helped, and its last comparison was missing or could not judge it.
    let is_open = any(TuningOutcome::Kept) && !record.comparison.as_ref().is_some_and(judges);
    let all = |these: &[TuningOutcome]| steps.iter().all(|step| these.contains(&step.outcome));
    match steps {
        [] => Exit::Fine,
        _ if all(&[TuningOutcome::NotPermitted]) => Exit::NotPermitted,
        _ if all(&[TuningOutcome::NotPermitted, TuningOutcome::Failed]) => Exit::CouldNot,
        _ if tuning.proven.is_empty() && (had_too_few_runs || is_open) => Exit::Inconclusive,
        _ => Exit::Fine,
    }
}

/// Whether all that is kept was judged against the start.
fn judges(comparison: &Comparison) -> bool {
    let effect = comparison.arms.get(1).and_then(ArmResult::primary);
    effect.is_some_and(|effect| effect.judgement != Judgement::Inconclusive)
}

#[cfg(test)]
mod tests {
    use goodput_model::Known;

    use super::*;

    #[test]
    fn what_too_few_runs_could_not_judge_is_inconclusive() {
        let exit = |outcomes: &[TuningOutcome]| {
            let record = include_str!("../report/example/record.json");
            let mut record: Record = serde_json::from_str(record).unwrap();
            let step = |outcome: &TuningOutcome| goodput_model::TuningStep {
                change: goodput_model::Change {
                    setting: "chunk".parse().unwrap(),
                    from: None,
                    to: "1M".into(),
                    why: "because".into(),
                },
                rule: "x".into(),
                outcome: *outcome,
                comparison: Known::missing("made up"),
            };
            record.comparison = None;
            record.tuning = Some(goodput_model::Tuning {
                purpose: Purpose::Throughput,
                min_gain_percent: 3.0,
                steps: outcomes.iter().map(step).collect(),
                proven: Vec::new(),
                kept_in: Vec::new(),
                to_keep: Vec::new(),
                run_length: None,
                plan_only: Some(false),
                stopped: "made up".into(),
            });
            tried(&record)
        };
        use TuningOutcome::{Kept, NotBetter, Planned, TooFewRuns};
        assert_eq!(exit(&[TooFewRuns, Planned]), Exit::Inconclusive);
        assert_eq!(exit(&[NotBetter, TooFewRuns]), Exit::Fine);
        assert_eq!(exit(&[Kept]), Exit::Inconclusive);
        assert_eq!(exit(&[Planned]), Exit::Inconclusive, "the time was over");
    }

    #[test]
    fn a_search_that_had_nothing_to_try_came_to_its_end() {
        let record = include_str!("../report/example/record.json");
        let mut record: Record = serde_json::from_str(record).unwrap();
        record.tuning = Some(goodput_model::Tuning {
            purpose: Purpose::Throughput,
            min_gain_percent: 2.0,
            steps: Vec::new(),
            proven: Vec::new(),
            kept_in: Vec::new(),
            to_keep: Vec::new(),
            run_length: None,
            plan_only: Some(false),
            stopped: "nothing is left to try".into(),
        });
        assert_eq!(tried(&record), Exit::Fine);
    }

    #[test]
    fn of_a_measurement_only_options_of_its_mount_are_kept() {
        let kept = |setting: &str, point| {
            to_keep(&setting.parse().unwrap(), point).map(|setting| setting.to_string())
        };
        assert_eq!(
            kept("nfs.nconnect", Some("/mnt/nas")).as_deref(),
            Some("nfs.nconnect@/mnt/nas")
        );
        assert_eq!(kept("nfs.nconnect", None), None, "goodput's own client read the file");
        assert_eq!(kept("socket.sndbuf", Some("/mnt/nas")), None);
        assert_eq!(kept("link.mtu@eth0", None).as_deref(), Some("link.mtu@eth0"));
    }
}
