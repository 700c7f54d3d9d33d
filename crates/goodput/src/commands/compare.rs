//! `goodput compare`: prove a change.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use goodput_engine::EngineError;
use goodput_engine::compare::{
    Arm, CompareRequest, Factor, LONGEST_RUN_S, TimeToJudge, compare, factorial, least_time,
    one_at_a_time, run_s, time_to_judge,
};
use goodput_model::{Comparison, EndName, Judgement, Length, Plan, Record, Response, Seconds};
use goodput_remote::Hosts;
use goodput_settings::SettingError;

use super::cells::{Tables, cells};
use super::measured;
use super::settings::settle_leftovers;

use crate::args::{Combination, CompareArgs, ComparisonArgs, spelled, steps};
use crate::data_dirs::{Keeper, announced, state_dir};
use crate::exit::{self, Exit};
use crate::far_end::FarEnd;
use crate::report::{self, live::Live};
use crate::screen;

/// Runs the comparison and reports.
pub fn run(args: CompareArgs, state: Option<PathBuf>) -> Result<Exit> {
    let hosts = args.hosts.hosts();
    let least = if args.comparison.placebo { 1 } else { 2 };
    let factors = args.factors.iter().map(|text| factor(text, &hosts, least));
    let factors = factors.collect::<Result<Vec<_>>>()?;
    each_once(&factors)?;
    factors.iter().try_for_each(|factor| check_here(factor, &hosts))?;
    let responses = responses(&args.comparison.response, &factors)?;
    let arms = arms(&factors, &args.comparison);
    let tables = args.comparison.sizes.len().max(1) * args.comparison.clients.len().max(1);
    let max_time = Duration::from_secs_f64(args.comparison.max_time / tables as f64);
    let (peer, access) = (&args.measure.peer, args.hosts.access.access());
    let FarEnd { target, credentials, started: _started } =
        FarEnd::of(&args.target, peer, &access, state.clone())?;
    let mut plan = args.measure.plan_towards(&target, Length::Seconds(LONGEST_RUN_S));
    plan.latency |= responses.contains(&Response::Latency);
    let may_shorten =
        args.measure.length.length().is_none() && plan.length == Length::Seconds(LONGEST_RUN_S);
    if may_shorten {
        check_time(arms.len() * tables, Duration::from_secs_f64(args.comparison.max_time))?;
        plan.length = Length::Seconds(shared_length(arms.len(), max_time, plan.latency));
    }
    warn_of_time(&args.comparison, tables, arms.len(), &plan);
    let cells = cells(&plan, &args.comparison.sizes, &args.comparison.clients)?;
    let seed = args.comparison.seed.unwrap_or_else(rand::random);
    let request = CompareRequest {
        credentials,
        target,
        plan: plan.clone(),
        arms,
        responses,
        ways_to_win: 1,
        precision_percent: args.comparison.precision,
        threshold_percent: args.comparison.threshold,
        may_shorten,
        is_about_parts: false,
        settled: false,
        past_slow_start: false,
        proof_by: None,
        given_up_at: None,
        turns: args.comparison.alternate.map(Duration::from_secs_f64),
        max_time: max_time.into(),
        seed,
        state_dir: state_dir(state.clone())?,
        hosts,
        far_settings: None,
        started: measured::now(),
    };
    settle_leftovers(&request.state_dir);
    let keeper = Keeper::open(&args.output)?;
    let announced = announced(state, &args.output, "compare", &args.target, &request.started);
    let mut live =
        Live::new(&args.output, &plan, &args.target).with_status(&plan, None).announced(announced);
    measured::end_with_input(&args.output);
    let compared = measured::block_on(async |interrupt| {
        let mut tables = Tables::of(&cells);
        for plan in cells {
            let began = tables.begin(&plan);
            began.iter().for_each(|began| live.show(began));
            let request = CompareRequest { plan, ..request.clone() };
            let compared = compare(&request, &interrupt, &mut |event| live.show(&event)).await;
            if !tables.enter(compared)? || interrupt.is_raised() {
                break;
            }
        }
        tables.close()
    });
    let compared = compared.inspect_err(|why| live.fail(&exit::in_words(why)));
    live.close();
    let ((record, broke_off), interrupted) = match compared {
        Err(why) if is_refused_there(&why) => return Ok(by_hand(&why, &factors)),
        compared => compared?,
    };
    let exit = measured::finish(&record, || screen::fitted(&text(&record)), &args.output, keeper)?;
    Ok(match exit {
        _ if broke_off.is_some() => broke_off.unwrap_or(Exit::CouldNot),
        _ if interrupted => Exit::CouldNot,
        Exit::Fine => conclusive(&record),
        other => other,
    })
}

/// Whether the far end does not let this goodput change its settings.
fn is_refused_there(why: &anyhow::Error) -> bool {
    let why = why.downcast_ref();
    matches!(why, Some(EngineError::FarSetting { not_permitted: true, .. }))
}

/// Reports this, and how its administrator sets each of the values.
fn by_hand(why: &anyhow::Error, factors: &[Factor]) -> Exit {
    let exit = exit::explain(why);
    let values = factors
        .iter()
        .flat_map(|Factor { setting, values }| values.iter().map(move |value| (setting, &**value)));
    let mut text = String::new();
    report::by_hand::at_the_far_end(&mut text, values, &|_| None);
    screen::say(anstream::adapter::strip_str(text.trim_end()));
    exit
}

/// Refuses a time in which not even the shortest runs of all arms, of all tables, would fit once.
fn check_time(arms: usize, max_time: Duration) -> Result<()> {
    let least = least_time(arms);
    if max_time < least {
        bail!(
            "{arms} arms don't fit into {} even once; give --max-time more than {}, several times that to judge \
             them, or fewer values",
            Seconds(max_time.as_secs_f64()),
            Seconds(least.as_secs_f64()),
        );
    }
    Ok(())
}

/// Says before the first run if the time is too short for so many arms, of each of the tables. How long a turn takes is known
/// later.
fn warn_of_time(args: &ComparisonArgs, tables: usize, arms: usize, plan: &Plan) {
    if let (Length::Seconds(seconds), None) = (plan.length, args.alternate) {
        let needed = time_to_judge(arms, seconds, plan.latency);
        too_short(args.max_time, tables, arms, seconds, needed).into_iter().for_each(screen::say);
    }
}

/// What is said before runs of `seconds` begin if `max_time_s` is surely too short to judge all arms of all tables.
fn too_short(
    max_time_s: f64,
    tables: usize,
    arms: usize,
    seconds: f64,
    needed: TimeToJudge,
) -> Option<String> {
    let TimeToJudge { runs_each, least_s, about_s } = needed;
    let of_tables = if tables > 1 { format!(" in {tables} comparisons") } else { String::new() };
    let tables = tables as f64;
    (least_s * tables > max_time_s).then(|| {
        format!(
            "note: --max-time {} is too short to judge {arms} arms{of_tables}: {runs_each} runs of {} of each take more than \
             {}; about --max-time {} is enough. Otherwise, arms that do badly in the warm-up are left out, and the result \
             names them",
            typed(max_time_s),
            Seconds(seconds),
            typed((least_s * tables).floor()),
            typed(round_up(about_s * tables)),
        )
    })
}

/// A time as `--max-time` takes it, exactly: minutes if they are whole and at least two, otherwise seconds.
fn typed(seconds: f64) -> String {
    match seconds {
        120.0.. if seconds % 60.0 == 0.0 => format!("{}m", seconds / 60.0),
        _ => format!("{seconds}s"),
    }
}

/// A time that is enough: whole seconds, or whole minutes if it is longer.
fn round_up(seconds: f64) -> f64 {
    if seconds < 120.0 { seconds.ceil() } else { (seconds / 60.0).ceil() * 60.0 }
}

/// The length of a run, seconds, of this many arms that share the time. Says so if it is a short one.
fn shared_length(arms: usize, max_time: Duration, latency: bool) -> f64 {
    let run_s = run_s(arms, max_time, latency);
    if run_s < LONGEST_RUN_S {
        screen::say(format_args!(
            "note: each run lasts {}, because {arms} arms share --max-time; more time allows longer runs",
            Seconds(run_s),
        ));
    }
    run_s
}

/// A setting that is named twice would have two values at once.
fn each_once(factors: &[Factor]) -> Result<()> {
    for (number, Factor { setting, .. }) in factors.iter().enumerate() {
        if factors[..number].iter().any(|other| other.setting == *setting) {
            bail!("{setting} is named twice; name it once, with all values: {setting}=A,B,C");
        }
    }
    Ok(())
}

fn arms(factors: &[Factor], args: &ComparisonArgs) -> Vec<Arm> {
    let mut arms = match args.design {
        Combination::Factorial => factorial(factors),
        Combination::OneAtATime => one_at_a_time(factors),
    };
    let placebo = arms.first().cloned().filter(|_| args.placebo);
    arms.extend(placebo);
    arms
}

/// The purpose of polling: less CPU and fewer interrupts for the same goodput.
const OF_POLLING: [Response; 4] =
    [Response::Throughput, Response::HostCpu, Response::Interrupts, Response::PerCpu];

/// Each response once: a repeated one would be judged twice.
fn responses(named: &[Response], factors: &[Factor]) -> Result<Vec<Response>> {
    if named.is_empty() {
        let polls = factors.iter().any(|factor| factor.setting.name == "polling");
        return Ok(if polls { OF_POLLING.to_vec() } else { vec![Response::Throughput] });
    }
    for (number, response) in named.iter().enumerate() {
        if named[..number].contains(response) {
            bail!("--response names {response} twice");
        }
    }
    Ok(named.to_vec())
}

/// The tables of files; if there is only one comparison, also its result.
fn text(record: &Record) -> String {
    match &record.transfers[..] {
        [] => report::compare::text(record) + &report::reads::text(record),
        [table] => report::compare::text(record) + &report::transfers::text(table),
        tables => {
            let tables: String = tables.iter().map(report::transfers::one_of_several).collect();
            tables + &report::compare::notes(record)
        }
    }
}

/// Reads a setting of this host, before anything runs or changes.
fn check_here(Factor { setting, .. }: &Factor, hosts: &Hosts) -> Result<()> {
    let is_here = setting.end == EndName::Near && hosts.at(setting.end).is_none();
    if is_here && !goodput_settings::find_for(setting)?.is_plan() {
        goodput_settings::read(setting)?;
    }
    Ok(())
}

/// `NAME=A,B`: a known setting and `least` different values or more.
pub(super) fn factor(text: &str, hosts: &Hosts, least: usize) -> Result<Factor> {
    let Some((setting, values)) = text.split_once('=') else {
        bail!("{text:?} has no values; write SETTING=A,B like mover=copy,sendfile");
    };
    if matches!(setting, "near" | "far") && values.starts_with("ssh://") {
        bail!("{text}: a host is named by an option: --{setting} {values}");
    }
    let mut setting: goodput_model::SettingRef = setting.parse()?;
    setting.name = goodput_settings::parameters::canonical(&setting.name);
    // A host reached by SSH knows its own settings.
    let is_elsewhere = hosts.at(setting.end).is_some();
    let known = match goodput_settings::find_for(&setting) {
        Ok(known) => Some(known).filter(|known| known.is_plan() || !is_elsewhere),
        Err(_) if is_elsewhere => None,
        Err(error) => return Err(error.into()),
    };
    let typed_as = RefCell::new(BTreeMap::new());
    let values = steps::values(values, |typed| {
        let value = spelled(&setting, typed)?;
        typed_as.borrow_mut().insert(value.clone(), typed.to_owned());
        Ok(value)
    });
    let values = values.map_err(|why| anyhow!("{setting}: {why}"))?;
    if values.len() < least || values.iter().any(String::is_empty) {
        bail!(
            "{text:?} needs at least two different values, the first is the baseline: {setting}=A,B; with --placebo, one \
             value is enough, and is compared with itself"
        );
    }
    if known.is_some() {
        let typed_as = typed_as.into_inner();
        let check = |value: &String| goodput_settings::check_value(&setting, value);
        values.iter().try_for_each(|value| check(value).map_err(|why| as_typed(why, &typed_as)))?;
    }
    Ok(Factor { setting, values })
}

/// The refusal of a value, with the value as it was typed.
fn as_typed(refusal: SettingError, typed_as: &BTreeMap<String, String>) -> SettingError {
    match refusal {
        SettingError::BadValue { setting, value, why } => {
            let value = typed_as.get(&value).cloned().unwrap_or(value);
            SettingError::BadValue { setting, value, why }
        }
        other => other,
    }
}

fn conclusive(record: &Record) -> Exit {
    let inconclusive = |comparison: &Comparison| {
        let mut effects = comparison.arms.iter().skip(1).map(|arm| arm.primary());
        effects.any(|e| e.is_none_or(|e| e.judgement == Judgement::Inconclusive))
    };
    let tables = record.transfers.iter().map(|table| &table.comparison);
    match record.comparison.iter().chain(tables).any(inconclusive) {
        true => Exit::Inconclusive,
        false => Exit::Fine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_too_short_is_named_with_one_that_is_enough_before_it_begins() {
        let said = |max_time_s, tables| {
            let needed = time_to_judge(4, 5.0, false);
            too_short(max_time_s, tables, 4, 5.0, needed)
        };
        assert_eq!(
            said(60.0, 1).unwrap(),
            "note: --max-time 60s is too short to judge 4 arms: 8 runs of 5 s of each take more than 160s; about --max-time 5m \
             is enough. Otherwise, arms that do badly in the warm-up are left out, and the result names them"
        );
        assert!(said(150.0, 1).unwrap().starts_with("note: --max-time 150s is"));
        assert!(said(120.0, 1).unwrap().starts_with("note: --max-time 2m is"));
        assert_eq!(said(161.0, 1), None);
        let of_two = said(161.0, 2).unwrap();
        assert!(of_two.contains("4 arms in 2 comparisons") && of_two.contains("320s"), "{of_two}");
    }

    #[test]
    fn a_host_in_the_place_of_a_setting_is_named_as_the_option_that_it_is() {
        let why = factor("near=ssh://root@a", &Hosts::default(), 2).unwrap_err().to_string();
        assert_eq!(why, "near=ssh://root@a: a host is named by an option: --near ssh://root@a");
    }
    #[test]
    fn one_value_is_compared_with_itself_beside_a_placebo_alone() {
        let factor = |least| factor("chunk=4K", &Hosts::default(), least);
        let why = factor(2).err().unwrap().to_string();
        assert!(why.contains("with --placebo, one value is enough"), "{why}");
        assert_eq!(factor(1).unwrap().values, ["4K"]);
    }

    #[test]
    fn two_spellings_of_a_parameter_are_one_setting() {
        let factor = |text| factor(text, &Hosts::default(), 2).unwrap();
        let both = ["sysctl.net/ipv4/tcp_sack=0,1", "sysctl.net.ipv4.tcp_sack=0,1"].map(factor);
        let why = each_once(&both).unwrap_err().to_string();
        assert!(why.starts_with("sysctl.net.ipv4.tcp_sack is named twice"), "{why}");
    }

    #[test]
    fn a_value_is_refused_as_it_was_typed() {
        let setting: goodput_model::SettingRef = "route.rto_min@default".parse().unwrap();
        let why = "it is from 1 to 200000 ms".to_owned();
        let refusal = SettingError::BadValue { setting, value: "300000".into(), why };
        let typed_as = [("300000".to_owned(), "5m".to_owned())].into();
        let said = as_typed(refusal, &typed_as).to_string();
        assert!(said.contains("\"5m\"") && !said.contains("300000"), "{said}");
    }
}
