//! From both ends' observations to a record: numbers, verdict, findings.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_diagnose::ceiling::PathCeiling;
use goodput_diagnose::{Diagnosis, diagnose};
use goodput_model::record::{Ends, FORMAT_VERSION};
use goodput_model::{
    EndName, Finding, Kind, Known, LimitAmount, Missing, Record, Transport, Verdict, WitnessCount,
};
use goodput_remote::Hosts;
use goodput_settings::{permanent, to_keep};

use crate::error::EngineError;
use crate::result::call_sizes;
use crate::result::doubts::doubts;
use crate::result::measurement::{Incomplete, Measurement};
use crate::result::mount;
use crate::result::outcome::outcome;

/// A record, and what each rule's witness read in its main direction.
pub struct Conclusion {
    /// The record.
    pub record: Record,
    /// Witness values by rule id, if they could be read.
    pub witnesses: BTreeMap<String, f64>,
    /// The events behind the witnesses that count some, by rule id.
    pub witness_counts: BTreeMap<String, WitnessCount>,
    /// How much the cause of the verdict lets through, if it has an amount.
    pub amount: Option<LimitAmount>,
    /// What is missing, if the record is only a part of what was asked for.
    pub incomplete: Option<Incomplete>,
}

/// Concludes from one measurement of `target`, begun at `started` (RFC 3339, UTC). Fails if no payload
/// could be counted at all.
pub fn conclude(
    measurement: Measurement,
    target: &str,
    started: &str,
) -> Result<Conclusion, EngineError> {
    conclude_at(&Hosts::default(), measurement, target, started)
}

/// The same of a measurement at whose ends `hosts` are changed: what is found says how to keep a change there.
pub fn conclude_at(
    hosts: &Hosts,
    measurement: Measurement,
    target: &str,
    started: &str,
) -> Result<Conclusion, EngineError> {
    if measurement.senders().iter().all(|sender| measurement.measured(*sender).is_none()) {
        if let Some(Incomplete { why, not_permitted, .. }) = measurement.incomplete {
            return Err(EngineError::Incomplete { why, not_permitted });
        }
        return Err(nothing_counted(target, &measurement));
    }
    Ok(concluded(hosts, measurement, target, started))
}

/// The same, but without failing if no end reports what arrived, as at a server that sends over UDP to
/// a client that keeps its counts to itself.
pub fn conclude_at_least(measurement: Measurement, target: &str, started: &str) -> Conclusion {
    concluded(&Hosts::default(), measurement, target, started)
}

fn concluded(hosts: &Hosts, measurement: Measurement, target: &str, started: &str) -> Conclusion {
    let mut diagnoses = diagnoses(&measurement).into_iter().map(|(_, diagnosis)| diagnosis);
    let main = diagnoses.next().unwrap_or_else(|| undiagnosed(&measurement));
    let reverse = diagnoses.next();
    let outrun = reverse.iter().flat_map(|reverse| &reverse.ceiling.outrun);
    let outrun: Vec<_> = main.ceiling.outrun.iter().chain(outrun).cloned().collect();
    let result = outcome(&measurement, main.ceiling, reverse.as_ref().map(|one| &one.ceiling));
    let doubts = measurement.doubts.iter().cloned().chain(doubts(&measurement, &result));
    let doubts = doubts.chain(outrun).collect();
    let mut findings = main.findings;
    let mut undecided = main.undecided;
    let mut verdict_reverse = None;
    if let Some(reverse) = reverse {
        findings.extend(reverse.findings);
        undecided.extend(reverse.undecided);
        verdict_reverse = Some(reverse.verdict);
    }
    findings.iter_mut().for_each(|finding| keep_for_good(finding, hosts));
    let mut record = Record {
        format: FORMAT_VERSION,
        kind: Kind::Test,
        started: started.into(),
        target: target.into(),
        sites: None,
        mount: mount::of(&measurement.near),
        plan: measurement.plan,
        connections: measurement.connections,
        far_totals: measurement.far_totals,
        ends: Ends {
            // No longer shared, so moved.
            near: Known::Value(Arc::unwrap_or_clone(measurement.near)),
            far: measurement.far.map(Arc::unwrap_or_clone),
        },
        intervals: measurement.intervals,
        result,
        latency: measurement.latency,
        fetches: measurement.fetches,
        clocks: measurement.clocks,
        verdict: main.verdict,
        verdict_reverse,
        findings,
        undecided,
        probes: Vec::new(),
        comparison: None,
        tuning: None,
        transfers: Vec::new(),
        nfs_reads: None,
        rate_searches: Vec::new(),
        shaping: None,
        capture: None,
        far_capture: None,
        host_limits: None,
        changed_hosts: Vec::new(),
        file_parts: None,
        thinned: measurement.thinned,
        incomplete: measurement.incomplete.as_ref().map(|incomplete| incomplete.why.clone()),
        doubts,
    };
    record.doubts.extend(call_sizes::changed(&record));
    let (witnesses, witness_counts, amount) = (main.witnesses, main.witness_counts, main.amount);
    Conclusion { record, witnesses, witness_counts, amount, incomplete: measurement.incomplete }
}

/// The error if nothing could be counted, or only a part.
fn undiagnosed(measurement: &Measurement) -> Diagnosis {
    let sender = measurement.senders().first().copied().unwrap_or(EndName::Near);
    let why = match measurement.partly_counted(sender) {
        Some(silence) => format!("unknown: {silence}"),
        None => "no end reports what arrived".into(),
    };
    Diagnosis {
        verdict: Verdict::missing(&Missing::because(why.clone()), sender),
        findings: Vec::new(),
        undecided: Vec::new(),
        witnesses: BTreeMap::new(),
        witness_counts: BTreeMap::new(),
        amount: None,
        ceiling: PathCeiling::unknown(why),
    }
}

/// Adds to a finding whose remedy is a setting of ours how to keep the first value to try. It takes the place of what
/// the rule says about the same file.
fn keep_for_good(finding: &mut Finding, hosts: &Hosts) {
    let Some(change) = finding.changes.first() else { return };
    // A setting that this version does not know has no known permanent form.
    let files = permanent(&change.setting, &change.to).unwrap_or_default();
    let ours = to_keep([(&change.setting, change.to.as_str())], |end| hosts.named(end));
    finding.permanent.retain(|of_rule| !files.iter().any(|file| file.file == of_rule.file));
    finding.permanent.splice(0..0, ours);
}

fn diagnoses(measurement: &Measurement) -> Vec<(EndName, Diagnosis)> {
    let senders = measurement.senders().into_iter();
    senders.filter_map(|s| Some((s, diagnose(&measurement.evidence(s)?)))).collect()
}

fn nothing_counted(target: &str, measurement: &Measurement) -> EngineError {
    let senders = measurement.senders();
    if senders.iter().any(|sender| measurement.is_without_payload(*sender)) {
        return EngineError::Flow(format!("{target}: the test ended before any payload was sent"));
    }
    let saw = senders.iter().any(|sender| measurement.end(sender.other()).is_some());
    EngineError::Flow(match (measurement.far.get(), measurement.plan.transport) {
        (Err(why), Transport::Tcp) if !saw => format!(
            "{target}: no end reports what arrived: {why}, and nothing was acknowledged; a longer -t \
             may help"
        ),
        (Err(why), Transport::Udp) if !saw => format!(
            "{target}: no end reports what arrived: {why}; over UDP only the receiving end can measure it"
        ),
        _ => format!(
            "{target}: the receiver counted nothing; the run was too short to sample, try a longer -t"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{BitRate, Change, End, Host, Plan, Sample};

    /// UDP through a card that reports 1 Mbit/s, at `bytes_per_s`.
    fn through_a_slow_card(bytes_per_s: u64) -> Measurement {
        let sample = |(at_s, seconds): (f64, u64)| Sample {
            at_s,
            sent_bytes: seconds * bytes_per_s,
            received_bytes: seconds * bytes_per_s,
            flows: Vec::new(),
        };
        let samples: Vec<_> = [(0.0, 0), (1.0, 1), (2.0, 2), (3.0, 3)].map(sample).into();
        let end = |name| End { samples: samples.clone(), ..End::unobserved(Host::foreign(name)) };
        let mut near = end("near");
        near.before.put("link.device", "eth0");
        near.before.put("link.kind", "hardware");
        near.before.put("link.mtu_bytes", 1500u64);
        near.before.put("link.speed_bits_per_s", 1_000_000u64);
        let plan = Plan {
            transport: Transport::Udp,
            chunk_bytes: goodput_model::Bytes(1472),
            ..Plan::standard()
        };
        Measurement::made_up(plan, near, Known::Value(end("far").into()))
    }

    #[test]
    fn a_goodput_above_the_ceiling_is_kept_and_doubted() {
        let outrun = |doubts: &[String]| {
            doubts.iter().any(|text| text.contains("the near device claims 1 Mbit/s"))
        };
        let above = conclude_at_least(through_a_slow_card(1_000_000), "x", "now").record;
        assert!((above.result.goodput_bits_per_s.0 - 8e6).abs() < 1.0, "nothing is clipped");
        assert!(outrun(&above.doubts), "{:?}", above.doubts);
        let claimed = above.result.ceiling_inputs.unwrap().link_bits_per_s;
        assert_eq!(claimed, Some(BitRate(1e6)), "what is doubted is kept");
        let below = conclude_at_least(through_a_slow_card(100_000), "x", "now").record;
        assert!(!outrun(&below.doubts), "{:?}", below.doubts);
        let inputs = below.result.ceiling_inputs.unwrap();
        assert_eq!(goodput_ceiling::ceiling(&inputs).rate(), below.result.ceiling_bits_per_s);
    }

    #[test]
    fn a_test_that_ends_before_its_flows_has_no_verdict() {
        let nothing = conclude(through_a_slow_card(0), "x", "now").map(|_| ()).unwrap_err();
        let why = nothing.to_string();
        assert!(why.starts_with("x: ") && why.contains("before any payload"), "{why}");
    }

    #[test]
    fn a_remedy_is_kept_at_the_host_that_is_changed() {
        let setting = "far:sysctl.net.ipv4.tcp_sack".parse().unwrap();
        let change = Change { setting, from: None, to: "1".into(), why: "because".into() };
        let likely = goodput_model::Confidence::Likely;
        let finding = Finding {
            changes: vec![change],
            ..Finding::new("x", goodput_model::Place::Far, likely, "x")
        };
        let kept = |hosts: &Hosts| {
            let mut finding = finding.clone();
            keep_for_good(&mut finding, hosts);
            finding.permanent[0].lines.clone()
        };
        let set = "goodput settings set --save sysctl.net.ipv4.tcp_sack=1";
        assert_eq!(kept(&Hosts::default()), set);
        let far = Some("ssh://root@b".parse().unwrap());
        let on = format!("{set} --on ssh://root@b");
        assert_eq!(kept(&Hosts::new(None, far, Default::default())), on);
    }
}
