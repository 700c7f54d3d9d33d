//! Before the first run, the hosts are asked about every arm, so that a wrong value is refused before anything changes.
//! What only a change can try is changed next, before anything else. Then every arm is applied once, the baseline last: a
//! missing permission shows before any time is spent, and so does what the kernels make of the values.

use std::time::{Duration, Instant};

use goodput_model::{EndName, Plan, SettingRef};
use goodput_settings::value::is_rounded;

use super::appliers::{Appliers, planned};
use super::{Arm, CompareRequest, of_arm};
use crate::error::EngineError;
use crate::interrupt::Interrupt;
use crate::near::agree;
use crate::near::client::Client;
use crate::verbs::retry::may_pass;

/// What the rehearsal has shown.
pub struct Rehearsal {
    /// How long a change took at most.
    pub change: Duration,
    /// Each value of which a kernel made another one, in words.
    pub rounded: Vec<String>,
}

/// Asks about every arm, then applies it. Fails as the runs would, and if two arms become the same.
pub async fn rehearse(
    request: &CompareRequest,
    client: &mut Client,
    appliers: &mut Appliers,
    interrupt: &Interrupt,
) -> Result<Rehearsal, EngineError> {
    for arm in &request.arms {
        appliers.check(client, arm).await?;
    }
    check_plans(request, client, interrupt).await?;
    for arm in &request.arms {
        appliers.try_whole_host(client, arm).await.map_err(|why| of_arm(arm, &why))?;
    }
    let (mut change, mut outcomes) = (Duration::ZERO, Vec::new());
    for (number, arm) in request.arms.iter().rev().enumerate() {
        let began = Instant::now();
        let effective = appliers.set(client, arm).await?;
        // The first one also starts what puts back.
        change = change.max(if number == 0 { Duration::ZERO } else { began.elapsed() });
        outcomes.push(Outcome { arm, plan: planned(arm, &request.plan)?, effective });
    }
    outcomes.reverse();
    match alike(&outcomes) {
        Some(why) => Err(EngineError::Flow(why)),
        None => Ok(Rehearsal { change, rounded: rounded(&outcomes) }),
    }
}

/// Lets the far end refuse the plan of an arm: its kernel may not take a socket option that this one takes.
/// What passes is left to the runs, which try again.
async fn check_plans(
    request: &CompareRequest,
    client: &mut Client,
    interrupt: &Interrupt,
) -> Result<(), EngineError> {
    let mut asked: Vec<Plan> = Vec::new();
    for arm in &request.arms {
        let plan = planned(arm, &request.plan)?;
        // What an arm changes there may be what makes its plan possible.
        let changes_far = arm.0.iter().any(|(setting, _)| setting.end == EndName::Far);
        if changes_far || asked.contains(&plan) {
            continue;
        }
        let answer = tokio::select! {
            answer = agree::ask(client, &plan) => answer,
            () = interrupt.raised() => return Err(EngineError::Interrupted),
        };
        match answer {
            // The conversation may be over; nothing has been changed in it yet.
            Err(why) if may_pass(&why) => return client.be_met().await.map(drop),
            answer => answer.map_err(|why| of_arm(arm, &why))?,
        }
        asked.push(plan);
    }
    Ok(())
}

/// What became of an arm.
struct Outcome<'a> {
    arm: &'a Arm,
    /// Its settings of the measurement.
    plan: Plan,
    /// Its other settings as read back; `None` for those of the measurement.
    effective: Vec<Option<String>>,
}

/// The first two arms that were written differently and are the same, in words.
fn alike(outcomes: &[Outcome<'_>]) -> Option<String> {
    let is_like = |one: &Outcome<'_>, other: &Outcome<'_>| {
        one.arm != other.arm && one.plan == other.plan && one.effective == other.effective
    };
    outcomes.iter().enumerate().find_map(|(number, one)| {
        let other = outcomes[number + 1..].iter().find(|other| is_like(one, other))?;
        let values = one.arm.0.iter().zip(&other.arm.0).zip(&one.effective);
        let differ = values.filter(|((one, other), _)| one != other);
        let words = differ.map(|(((setting, one), (_, other)), effective)| {
            let became = effective.as_ref().map(|value| format!(", {value}"));
            format!("{setting}: {one} and {other} are the same{}", became.unwrap_or_default())
        });
        let words: Vec<String> = words.collect();
        Some(format!("{}; there is nothing to compare: give values that differ", words.join("; ")))
    })
}

fn rounded(outcomes: &[Outcome<'_>]) -> Vec<String> {
    let values = outcomes.iter().flat_map(|outcome| outcome.arm.0.iter().zip(&outcome.effective));
    let mut rounded: Vec<String> = Vec::new();
    for ((setting, value), effective) in values {
        let said = effective.as_deref().and_then(|made| of_one(setting, value, made));
        rounded.extend(said.filter(|said| !rounded.contains(said)));
    }
    rounded
}

fn of_one(setting: &SettingRef, value: &str, made: &str) -> Option<String> {
    is_rounded(value, made).then(|| format!("{setting}={value}: the kernel made it {made}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(values: &[(&str, &str)]) -> Arm {
        let value = |(name, value): &(&str, &str)| (name.parse().unwrap(), (*value).to_owned());
        Arm(values.iter().map(value).collect())
    }

    fn outcome<'a>(arm: &'a Arm, effective: &[Option<&str>]) -> Outcome<'a> {
        let effective = effective.iter().map(|value| value.map(Into::into)).collect();
        Outcome { arm, plan: planned(arm, &Plan::standard()).unwrap(), effective }
    }

    #[test]
    fn arms_that_become_the_same_are_refused_and_a_placebo_is_not() {
        let [a, b] =
            ["1000", "1024"].map(|value| arm(&[("mover", "copy"), ("rps.flow_cnt@e", value)]));
        let same = [Some("1024"), Some("1024")];
        let [one, other] = [&a, &b].map(|arm| outcome(arm, &[None, same[0]]));
        let why = alike(&[one, other]).unwrap();
        assert!(why.starts_with("rps.flow_cnt@e: 1000 and 1024 are the same, 1024; "), "{why}");
        let placebo = [&a, &a].map(|arm| outcome(arm, &[None, Some("1024")]));
        assert_eq!(alike(&placebo), None);
        let differ = [outcome(&a, &[None, Some("1")]), outcome(&b, &[None, Some("2")])];
        assert_eq!(alike(&differ), None);
    }

    #[test]
    fn settings_of_the_measurement_are_compared_by_what_they_mean() {
        let [a, b, c] = ["64K", "65536", "1M"].map(|value| arm(&[("socket.sndbuf", value)]));
        let of = |arm| outcome(arm, &[None]);
        assert!(alike(&[of(&c), of(&a), of(&b)]).unwrap().contains("64K and 65536 are the same;"));
        assert_eq!(alike(&[of(&a), of(&c)]), None);
    }

    #[test]
    fn a_rounded_value_is_said_once() {
        let (a, b) = (arm(&[("rps.flow_cnt@e", "1000")]), arm(&[("rps.flow_cnt@e", "64K")]));
        let [one, again] = [&a, &a].map(|arm| outcome(arm, &[Some("1024")]));
        let said = rounded(&[one, outcome(&b, &[Some("65536")]), again]);
        assert_eq!(said, ["rps.flow_cnt@e=1000: the kernel made it 1024"]);
    }
}
