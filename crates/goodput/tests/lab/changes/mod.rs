//! `goodput watch` names what changed on a path: causes are planted in the middle of its tests, between virtual hosts.
//!
//! A path is judged after days of tests, and the clock of these hosts can't be set ahead. So what is tested before the
//! change is stored again for each hour of some days.

mod causes;

use std::path::Path as FilePath;

use goodput_lab::{Lab, Scenario, Server};
use goodput_model::{Family, Record, median};
use goodput_store::{Store, Watched};
use jiff::Timestamp;
use libtest_mimic::Failed;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use self::causes::{Cause, Path};
use crate::disturbed::{self, CPUS, Judgement};
use crate::neighbours::{Needs, Test};
use crate::stage::exe;

/// Tests before the change, and most tests after it.
const BEFORE: usize = 10;
const MOST_SINCE: usize = 10;
/// Hours that the tests before are stored for: the rhythm is known after two days.
const HOURS: i64 = 80;

/// A cause is judged if it takes at least this part of the goodput: a watch promises to find a drop of a tenth.
const LEAST_COST: f64 = 0.1;

/// Every test of this file. `cargo xtask changes` adds one.
pub fn all() -> Vec<Test> {
    let needs = Needs::of_rate(3e7);
    let case = |name, row: usize| {
        disturbed::judged(name, needs, move || {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
            // BBR keeps most of its goodput when packets are lost by chance, but how much differs so from test to test that
            // this test has too few of them.
            let path = Path { congestion: "cubic", ..Path::draw(&mut random) };
            Ok(planted(&causes::ALL[row], path, &mut random)?.judgement())
        })
    };
    let campaign = std::env::var("GOODPUT_CHANGES").ok().map(|count| {
        Test::new("changes::planted_at_random", Needs::All, move || campaign(count.parse()?))
    });
    [case("changes::loss_is_named", 2), case("changes::a_host_setting_is_named", 6)]
        .into_iter()
        .chain(campaign)
        .collect()
}

/// Plants causes that are drawn at random, and prints how often they are named.
fn campaign(count: u64) -> Result<(), Failed> {
    let number = |name: &str, usual| std::env::var(name).map_or(Ok(usual), |text| text.parse());
    let (seed, first) = (number("GOODPUT_SEED", 1_u64)?, number("GOODPUT_FIRST", 0_u64)?);
    let (mut named, mut judged) = (0, 0);
    for number in first..first + count {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(number);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let cause = causes::ALL.choose(&mut random).ok_or("there are causes")?;
        let path = Path::draw(&mut random);
        let outcome = planted(cause, path, &mut random)?;
        let counts = outcome.cost >= LEAST_COST;
        judged += u64::from(counts);
        named += u64::from(counts && outcome.named);
        println!(
            "{number} costs {:.0} %: {}, {}",
            outcome.cost * 1e2,
            outcome.text,
            path.congestion
        );
    }
    println!("named: {named} of {judged} that cost at least a tenth, {count} planted");
    Ok(())
}

/// What a watch said of a planted cause.
struct Outcome {
    named: bool,
    /// The part of the goodput that the cause took, by the medians of the tests before and since.
    cost: f64,
    /// The limit since, if a change was found.
    limit: Option<String>,
    text: String,
}

impl Outcome {
    fn of(cause: &Cause, script: &str, cost: f64, change: Option<&Value>) -> Self {
        let Some(change) = change else {
            let text = format!("{}: no change found ({script})", cause.what);
            return Self { named: false, cost, limit: None, text };
        };
        let since = &change["limit_since"];
        let limit = since["limiter"].as_str().or(since["rule"].as_str()).unwrap_or_default();
        let empty = Vec::new();
        let changed = change["changed"].as_array().unwrap_or(&empty).iter();
        let changed: Vec<&str> = changed.filter_map(|one| one["what"].as_str()).collect();
        let by_words = cause.words.iter().any(|word| changed.iter().any(|one| one.contains(word)));
        let named = by_words || cause.limits.contains(&limit);
        let words = if named { "named" } else { "not named" };
        let percent = change["percent"].as_f64().unwrap_or_default();
        let before = &change["limit_before"]["rule"];
        let text = format!(
            "{}: {words}; {percent:+.0} %, limit {before} before, {limit:?} since, changed {changed:?} ({script})",
            cause.what
        );
        Self { named, cost, limit: Some(limit.into()), text }
    }

    fn judgement(self) -> Judgement {
        match self.limit {
            _ if self.named => Judgement::Right,
            None => Judgement::Open(self.text),
            Some(limit) if CPUS.contains(&&*limit) => Judgement::Cpus(self.text),
            Some(_) => Judgement::Wrong(self.text),
        }
    }
}

/// Tests a path, plants the cause, and tests it again until a change is found.
fn planted(cause: &Cause, path: Path, random: &mut Xoshiro256PlusPlus) -> Result<Outcome, Failed> {
    let scenario = Scenario::parse("changes", &path.scenario())?;
    let lab = Lab::up(&scenario)?;
    let server = Server::start(&lab, &scenario, exe())?;
    let home = tempfile::tempdir()?;
    let mut before = Vec::new();
    for _ in 0..BEFORE {
        before.extend(watch_once(&lab, &server, path.congestion, home.path())?);
    }
    repeat(&home.path().join("goodput/history.db"), random)?;
    let script = (cause.script)(random, &path);
    plant(&lab, cause.host, &script)?;
    let (mut since, mut change) = (Vec::new(), None);
    while change.is_none() && since.len() < MOST_SINCE {
        let events = watch_once(&lab, &server, path.congestion, home.path())?;
        change = events.iter().find(|event| event["event"] == "changed").cloned();
        since.extend(events.into_iter().filter(is_test));
    }
    let before = goodput(&before).ok_or("the tests before have a goodput")?;
    let cost = 1.0 - goodput(&since).ok_or("the tests since have a goodput")? / before;
    Ok(Outcome::of(cause, &script, cost, change.as_ref()))
}

fn is_test(event: &Value) -> bool {
    event["event"] == "tested"
}

/// The median goodput of tests, bits per second.
fn goodput(events: &[Value]) -> Option<f64> {
    let tests = events.iter().filter(|event| is_test(event));
    median(tests.filter_map(|test| test["goodput_bits_per_s"].as_f64()))
}

fn plant(lab: &Lab, host: &str, script: &str) -> Result<(), Failed> {
    let named = |name| lab.host(name).ok_or_else(|| format!("there is no {name}"));
    let mut command = named(host)?.command("sh")?;
    command.env("ON_ROUTER", lab.enter_from_inside(named("router")?));
    command.env("NEAR", lab.near().address(Family::V4).to_string());
    let output = command.args(["-ec", script]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{script}: {said}").into()) }
}

/// The events of one test.
fn watch_once(
    lab: &Lab,
    server: &Server,
    congestion: &str,
    home: &FilePath,
) -> Result<Vec<Value>, Failed> {
    let mut command = lab.near().command(exe())?;
    command.args(["watch", server.target(), "--once", "--json", "-t", "1"]);
    command.args(["--congestion", congestion]);
    command.env("XDG_DATA_HOME", home).env("XDG_CONFIG_HOME", home).env("GOODPUT_STATE_DIR", home);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let events: Vec<Value> = said.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let tested = events.iter().any(is_test);
    let why = || format!("{said}{}", String::from_utf8_lossy(&output.stderr));
    if tested { Ok(events) } else { Err(why().into()) }
}

/// Stores the tests of a history again, in a random order: one for each of the last hours.
fn repeat(history: &FilePath, random: &mut Xoshiro256PlusPlus) -> Result<(), Failed> {
    let store = Store::open(history)?;
    let series = store.series()?.pop().ok_or("there is a series")?;
    let tests = store.tests_of(&series.target, &series.plan, BEFORE)?;
    let real = tests.iter().map(|test| store.get(test.record));
    let real: Vec<Record> = real.collect::<Result<_, _>>()?;
    let now_s = Timestamp::now().as_second();
    for hour in 0..HOURS {
        let at_s = now_s - (HOURS - hour) * 3600 + random.random_range(0..60);
        let started = Timestamp::from_second(at_s)?.to_string();
        let record = real.choose(random).ok_or("there were tests")?.clone();
        let goodput = Some(record.result.goodput_bits_per_s);
        let watched = Watched { plan: series.plan.clone(), goodput };
        store.add_watched(&Record { started, ..record }, &watched)?;
    }
    Ok(())
}
