//! Tuning: measure, try what the findings propose one by one, keep what is proven to help, and prove all kept changes
//! against the start. Every setting is put back in the end.

mod asked;
mod comparisons;
mod explaining;
mod far_settings;
mod gain;
mod goal;
mod only_change;
mod outcome;
mod proof;
mod proving;
mod purposes;
mod request;
mod rounds;
mod run_length;
mod search;
mod time_budget;
mod trying;
mod tuner;
#[cfg(test)]
mod tuner_tests;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_diagnose::{View, offers};
use goodput_model::{EndName, Finding, Known, Length, Purpose, Record, Seconds};
use goodput_remote::{Hosts, RemoteTurn};
use goodput_settings::{GuardProgram, Turn};

use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::{Interrupt, unless_raised};
use crate::near::client::Client;
use crate::near::measure::{measure, whole};
use crate::near::own_check;
use crate::result::conclude::conclude_at;
use crate::result::measurement::{FarSettings, Measurement};
use crate::threads::blocking;
use crate::verbs::check::check;
use crate::verbs::compare::{check_cpu, cpu_s_per_gb};
use crate::verbs::deadline::within;
use crate::verbs::telling::telling;
use comparisons::{Comparisons, Measured, TIME_WAS_OVER};
use gain::ways_to_win;
pub use goal::reaches_ceiling;
pub use request::{Keepable, TuneRequest};
use run_length::{moved_s, payload_s, run_s};
use search::Search;
use time_budget::TimeBudget;
use tuner::Tuner;

/// Tunes. A change that can't be tried becomes a step that says so. When the time is up, or at an interrupt, the record
/// has what was found until then. Settings are put back before it returns, however it ends.
///
/// Any failure after the first measurement ends the search, and is why the record is incomplete.
///
/// # Errors
/// If the first measurement fails.
pub async fn tune(
    request: &TuneRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    // What this end can't do, it learns before it waits for other runs and logs in elsewhere.
    own_check::check(&request.target, &request.plan).await?;
    if request.purpose == Purpose::Cpu {
        check_cpu(&request.target, &request.plan, &request.hosts)?;
    }
    let held = unless_raised(interrupt, hold(request, listener)).await?;
    let Held { turn: _turn, turns, hosts } = held;
    let request = TuneRequest { hosts, ..request.clone() };
    let tuned = tune_in_turn(&request, interrupt, listener).await;
    // Each host takes a moment to notice.
    blocking(move || drop(turns)).await?;
    tuned
}

/// The same while no other run changes the hosts.
async fn tune_in_turn(
    request: &TuneRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let mut budget = TimeBudget::new(request.max_time, ways_to_win(request.purpose));
    let until = budget.end();
    let mut has_answered = false;
    let heard = &mut |event| {
        has_answered |= matches!(event, Event::Connected { .. });
        listener(event);
    };
    let measured = within(Some(until), interrupt, async |interrupt| {
        measure_first(request, interrupt, heard).await
    })
    .await;
    let First { record: mut start, took, offered, far_settings, near_checks } = match measured {
        // The end of the time interrupts as well.
        None | Some(Err(EngineError::Interrupted)) if !interrupt.is_raised() => {
            return Err(silent(request, has_answered));
        }
        None => return Err(EngineError::Interrupted),
        Some(measured) => measured?,
    };
    match request.purpose {
        Purpose::Cpu => check_cpu_of(&start, &request.hosts)?,
        // The other two can still be gained.
        Purpose::Balanced => {
            let unknown = check_cpu(&request.target, &request.plan, &request.hosts).err();
            start.doubts.extend(unknown.map(|why| why.to_string()));
        }
        _ => {}
    }
    if budget.left().is_zero() && !interrupt.is_raised() {
        start.incomplete = start.incomplete.map(|_| TIME_WAS_OVER.into());
    }
    let beside_s = (took.as_secs_f64() - moved_s(&start)).max(0.0);
    let longest_s = budget.longest_run_s() - beside_s;
    let run_length =
        request.run_length.unwrap_or_else(|| Length::Seconds(run_s(&start, longest_s)));
    budget.expect(payload_s(run_length) + beside_s);
    let mut search = Search::default();
    search.consider(&purposes::first(request.purpose, &start.findings));
    let mut checks = checked(&request.hosts, &start).await;
    checks.extend(near_checks);
    let of_far = |settings: &Arc<FarSettings>| far_settings::checked(EndName::Far, settings);
    checks.extend(far_settings.iter().flat_map(of_far));
    search.consider_later(&purposes::last(checks, offered));
    let mut runs = Comparisons::new(request, interrupt, run_length, budget, Measured);
    runs.far_settings = far_settings;
    let mut tuner = Tuner::new(runs, search);
    let stopped = match request.dry_run {
        true => plan(request, interrupt, &mut tuner, &mut start).await,
        false => tuner.search_and_prove(&start, listener).await,
    };
    Ok(tuner.into_record(start, stopped))
}

/// Tries nothing, and asks a far end that runs goodput what it would refuse. Returns why.
async fn plan(
    request: &TuneRequest,
    interrupt: &Interrupt,
    tuner: &mut Tuner<'_, Measured>,
    start: &mut Record,
) -> String {
    let is_far_asked = far_settings::are_asked_for(&request.hosts, &start.ends.far);
    let stopped = tuner.plan(only_a_plan(&request.hosts, is_far_asked));
    if let Err(why) = asked::ask(request, interrupt, &mut tuner.steps).await {
        start.doubts.push(format!("what the far end permits is unknown: {why}"));
    }
    stopped
}

/// Why nothing is compared at all, and what is unknown therefore: the host of the near end was asked already, and that of the
/// far end may have been.
fn only_a_plan(hosts: &Hosts, is_far_asked: bool) -> String {
    let mut why = "this is only a plan (--dry-run): nothing was changed".to_owned();
    for address in hosts.far.iter().filter(|_| !is_far_asked) {
        why += &format!(", and whether {address} lets goodput in was not tried");
    }
    why
}

/// The rights to change hosts until tuning ends, so that no other run begins between two comparisons.
struct Held {
    /// Of this host.
    turn: Option<Turn>,
    /// Of hosts reached by SSH.
    turns: Vec<RemoteTurn>,
    /// All hosts, with those that are held.
    hosts: Hosts,
}

/// Takes them from before the first measurement on, in the order in which every run takes hosts. Who names a host by mistake,
/// or one that another run changes, learns it before any time is spent. A login may put back what a dead run left, which a
/// plan alone must not do.
async fn hold(request: &TuneRequest, listener: &mut Listener<'_>) -> Result<Held, EngineError> {
    let (mut hosts, state_dir) = (request.hosts.clone(), request.state_dir.clone());
    hosts.check()?;
    if request.dry_run {
        return Ok(Held { turn: None, turns: Vec::new(), hosts });
    }
    let held = telling(listener, move |notify| {
        let order = hosts.log_in(&[EndName::Near, EndName::Far], notify)?;
        let mut turns = Vec::new();
        hosts.hold(&state_dir, order.before_here, &mut turns)?;
        let turn = if hosts.near.is_none() { take_turn(&state_dir)? } else { None };
        hosts.hold(&state_dir, order.after_here, &mut turns)?;
        Ok::<_, EngineError>(Held { turn, turns, hosts })
    });
    held.await?
}

/// The right to change this host. If something other than another run is in the way, each change says why it is not possible.
fn take_turn(state_dir: &Path) -> Result<Option<Turn>, EngineError> {
    match Turn::take(state_dir, &GuardProgram::current()) {
        Err(busy) if busy.is_busy() => Err(busy.into()),
        turn => Ok(turn.ok()),
    }
}

/// The far end was silent for the whole time, from the start or since it answered.
fn silent(request: &TuneRequest, has_answered: bool) -> EngineError {
    let (target, time) = (&request.target.text, Seconds(request.max_time.as_secs_f64()));
    let what = match has_answered {
        true => "the first measurement did not end",
        false => "the host did not answer",
    };
    let why = format!("{target}: {what} within {time} (--max-time); nothing was changed");
    EngineError::Incomplete { why, not_permitted: false }
}

/// Refuses to tune for CPU time that the first measurement does not show, such as that of a server that reports nothing
/// of its host. What is read by SSH shows only when it is compared.
fn check_cpu_of(start: &Record, hosts: &Hosts) -> Result<(), EngineError> {
    match cpu_s_per_gb(start) {
        Known::Missing(why)
            if start.incomplete.is_none() && hosts.near.is_none() && hosts.far.is_none() =>
        {
            let why = format!("CPU time can't be judged: {why}");
            Err(EngineError::Incomplete { why, not_permitted: false })
        }
        _ => Ok(()),
    }
}

/// The measurement before any change.
struct First {
    record: Record,
    /// How long it took once connected: each comparison connects only once.
    took: Duration,
    /// What the purpose adds to what it found.
    offered: Vec<Finding>,
    /// What is configured at a far end that reports nothing itself.
    far_settings: Option<Arc<FarSettings>>,
    /// What `check` finds at another host that is changed for this end.
    near_checks: Vec<Finding>,
}

async fn measure_first(
    request: &TuneRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<First, EngineError> {
    let TuneRequest { target, credentials, plan, started, hosts, purpose, .. } = request;
    let mut client = Client::connect(target, plan, credentials, interrupt, listener).await?;
    let began = Instant::now();
    let measured = measure(&mut client, plan, interrupt, listener).await;
    let took = began.elapsed();
    client.leave().await;
    let mut measured = usable(measured?, interrupt)?;
    far_settings::add(hosts, &mut measured, interrupt).await;
    let near_checks = far_settings::checked_near(hosts, &mut measured, interrupt).await;
    let (offered, far_settings) = (offered(&measured, *purpose), measured.far_settings.clone());
    conclude_at(hosts, measured, &target.text, started).map(|conclusion| First {
        record: conclusion.record,
        took,
        offered,
        far_settings,
        near_checks,
    })
}

/// A first measurement that is worth a report: a whole one, or one that the end of the time, or an interrupt, has cut off while
/// it waited for the far end's report.
///
/// # Errors
/// [`EngineError::Interrupted`] if nothing was measured until then.
fn usable(measured: Measurement, interrupt: &Interrupt) -> Result<Measurement, EngineError> {
    let is_measured = || measured.senders().iter().any(|of| measured.measured(*of).is_some());
    match interrupt.is_raised() {
        false => whole(measured),
        true if is_measured() => Ok(measured),
        true => Err(EngineError::Interrupted),
    }
}

fn offered(measured: &Measurement, purpose: Purpose) -> Vec<Finding> {
    let seen = measured.senders().into_iter().filter_map(|sender| measured.evidence(sender));
    seen.flat_map(|evidence| offers(&View::new(&evidence), purpose)).collect()
}

/// Findings about this host and the device towards the target; none if they can't be inspected.
async fn checked(hosts: &Hosts, start: &Record) -> Vec<Finding> {
    let Some(device) = device_to_check(hosts, start) else { return Vec::new() };
    let started = start.started.clone();
    let report = blocking(move || check(&[device], None, &started)).await;
    let findings = report.and_then(|report| report).map(|report| report.findings);
    findings.unwrap_or_default()
}

/// The device of this host towards the target. `None` if it is unknown, or if the changes of this end go to another host,
/// which has other devices and settings: what is found here would be tried there.
fn device_to_check(hosts: &Hosts, start: &Record) -> Option<String> {
    let near = start.ends.near.get().ok().filter(|_| hosts.near.is_none())?;
    near.after.text("route.device").ok().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use goodput_model::{End, FlowSample, Host, Known, Plan, Role, Sample, TcpInfo};

    use super::tuner_tests::measured;
    use super::*;
    use crate::interrupt::interrupt;
    use crate::result::measurement::Incomplete;

    /// A run of two seconds, of which this end's TCP knows what arrived, and whose report did not come.
    fn without_report(has_counted: bool) -> Measurement {
        let sample = |tenth: u32| {
            let tcp =
                TcpInfo { acked_bytes: Some(u64::from(tenth) * 1_250_000), ..TcpInfo::default() };
            let flow = FlowSample::unreported(0, Role::Sender, 0, "not looked at");
            let flows = vec![FlowSample { tcp: Known::Value(tcp), ..flow }];
            Sample { at_s: f64::from(tenth) / 10.0, sent_bytes: 0, received_bytes: 0, flows }
        };
        let samples = (0..=20).filter(|_| has_counted).map(sample).collect();
        let near = End { samples, ..End::unobserved(Host::foreign("near")) };
        let incomplete = Some(Incomplete { why: "no report".into(), not_permitted: false });
        let missing = Known::missing("no report");
        Measurement { incomplete, ..Measurement::made_up(Plan::standard(), near, missing) }
    }

    #[test]
    fn a_first_measurement_that_the_time_cut_off_is_worth_what_was_counted() {
        let (raise, interrupt) = interrupt();
        let lost = usable(without_report(true), &interrupt);
        assert!(matches!(lost, Err(EngineError::Incomplete { .. })), "nobody ended it");
        raise.raise_at_time_limit();
        let cut = usable(without_report(true), &interrupt).unwrap();
        assert_eq!(cut.incomplete.unwrap().why, "no report");
        let none = usable(without_report(false), &interrupt);
        assert!(matches!(none, Err(EngineError::Interrupted)));
    }

    #[test]
    fn only_a_host_whose_settings_are_changed_is_checked() {
        let mut near = End::unobserved(Host::foreign("near"));
        near.after.put("route.device", "eth0");
        let mut start = measured(1.0);
        start.ends.near = Known::Value(near);
        let checks = |near: Option<&str>, far: Option<&str>| {
            let [near, far] = [near, far].map(|host| host.map(|host| host.parse().unwrap()));
            device_to_check(&Hosts::new(near, far, Default::default()), &start)
        };
        let (router, server) = (Some("ssh://router"), Some("ssh://server"));
        let here = Some("eth0".to_owned());
        assert_eq!([checks(None, None), checks(None, server)], [here.clone(), here]);
        assert_eq!([checks(router, None), checks(router, server)], [None, None]);
        start.ends.near = Known::missing("made up");
        assert_eq!(device_to_check(&Hosts::default(), &start), None);
    }
}
