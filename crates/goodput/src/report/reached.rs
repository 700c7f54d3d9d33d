//! What tuning started from and what it reached, in the units of what it is for.

use goodput_diagnose::is_of_purpose;
use goodput_model::{
    ArmResult, Comparison, Effect, Finding, Known, Latency, Purpose, Record, Response, Verdict,
};

use super::{compare, remedy, style};

/// What the first measurement found, first of all the number that the purpose is about.
pub(super) fn start(record: &Record, purpose: Purpose) -> String {
    let one = |response: &Response| match response {
        Response::Throughput => {
            record.result.goodput_bits_per_s.to_string() + &limited(&record.verdict)
        }
        _ => named(*response, &written(*response, &of_start(record, *response))),
    };
    purpose.responses().iter().map(one).collect::<Vec<_>>().join("; ")
}

fn limited(verdict: &Verdict) -> String {
    match verdict.limit.as_str() {
        Verdict::NO_LIMIT => format!(", {}", verdict.summary),
        _ => format!(", limited by {}", verdict.summary),
    }
}

fn of_start(record: &Record, response: Response) -> Known<f64> {
    match response {
        Response::Latency => {
            let loaded = record.latency.as_ref().and_then(Latency::loaded_us);
            loaded.map_or_else(|| Known::missing("no round trip was timed"), Known::Value)
        }
        _ => goodput_engine::compare::cpu_s_per_gb(record),
    }
}

/// What a person can do about what holds the purpose back at the start, if goodput itself can change nothing about it, and
/// unless what is proven reaches the ceiling: then there is nothing to gain any more.
pub(super) fn by_hand(record: &Record, purpose: Purpose) -> Vec<String> {
    if goodput_engine::reaches_ceiling(record) {
        return Vec::new();
    }
    let is_about = |finding: &&Finding| match purpose {
        Purpose::Throughput | Purpose::Balanced => finding.rule == record.verdict.limit,
        // What limits goodput is another question.
        Purpose::Latency | Purpose::Cpu => is_of_purpose(&finding.rule, purpose),
    };
    let finding = record.findings.iter().find(is_about);
    let finding = finding.filter(|finding| finding.changes.is_empty());
    finding.map(|finding| remedy::by_hand(record, finding)).unwrap_or_default()
}

/// `round trip under load 119 ms → 56 ms; against the start better: 52.9 % less delay (…)`, a line for each number that
/// the purpose is about; the first one decides.
pub(super) fn together(purpose: Purpose, comparison: &Comparison) -> Vec<String> {
    let [base, arm, ..] = &comparison.arms[..] else {
        return vec!["not compared with the start".into()];
    };
    let all = purpose.responses().iter().enumerate();
    all.map(|(number, response)| {
        let [from, to] = [base, arm].map(|arm| written(*response, &arm.median(*response)));
        let to = if number == 0 { style::strong(to) } else { to };
        let change = named(*response, &format!("{from} → {to}"));
        let effect = match number {
            0 => arm.primary(),
            _ => against(arm, *response),
        };
        match effect {
            Some(effect) if number == 0 => {
                format!("{change}; against the start {}", compare::judged(effect, *response))
            }
            Some(effect) => format!("{change}; {}", compare::judged(effect, *response)),
            None => format!("{change}; too few runs to compare it with the start"),
        }
    })
    .collect()
}

fn against(arm: &ArmResult, response: Response) -> Option<&Effect> {
    let of_it = arm.responses.iter().find(|result| result.response == response);
    of_it.and_then(|result| result.against.as_ref())
}

/// A number with its name, unless it is a goodput.
fn named(response: Response, numbers: &str) -> String {
    match response {
        Response::Throughput => numbers.into(),
        _ => format!("{} {numbers}", response.title()),
    }
}

fn written(response: Response, number: &Known<f64>) -> String {
    match number {
        Known::Value(number) => response.written(*number),
        Known::Missing(why) => format!("unknown ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{Change, Judgement, ResponseResult};

    use super::*;

    fn record() -> Record {
        serde_json::from_str(include_str!("example/record.json")).unwrap()
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn the_start_has_the_number_that_the_purpose_is_about_first() {
        let [throughput, latency, cpu, balanced] =
            Purpose::ALL.map(|purpose| start(&record(), purpose));
        assert!(!throughput.contains("round trip") && !throughput.contains("CPU time"));
        assert!(latency.starts_with("round trip under load "), "{latency}");
        assert!(cpu.starts_with("CPU time "), "{cpu}");
        assert!(balanced.contains("; round trip under load ") && balanced.contains("; CPU time"));
        for said in [throughput, latency, cpu, balanced] {
            assert!(said.contains(", limited by "), "{said}");
        }
    }

    fn compared(responses: &[(Response, f64, f64)]) -> Comparison {
        let result = |after: bool| {
            responses.iter().map(move |(response, from, to)| {
                let percent = (to / from - 1.0) * 100.0;
                let against = Effect {
                    percent,
                    low_percent: percent - 1.0,
                    high_percent: percent + 1.0,
                    confidence_percent: 96.9,
                    n: 6,
                    adjusted_for: Vec::new(),
                    judgement: Judgement::Better,
                };
                let median = Known::Value(if after { *to } else { *from });
                let against = after.then_some(against);
                ResponseResult { response: *response, median, against }
            })
        };
        let arm = |after| ArmResult {
            responses: result(after).collect(),
            ..ArmResult::new(vec!["x".into()])
        };
        Comparison::new(vec!["chunk".parse().unwrap()], vec![arm(false), arm(true)])
    }

    #[test]
    fn what_is_reached_is_said_in_the_unit_of_the_purpose_from_start_to_end() {
        let latency = (Response::Latency, 119_100.0, 56_000.0);
        let (rate, cpu) = ((Response::Throughput, 9e7, 9.4e7), (Response::Cpu, 1.2, 0.6));
        let said = together(Purpose::Latency, &compared(&[latency, rate]));
        assert_eq!(
            plain(&said[0]),
            "round trip under load 119.1 ms → 56 ms; against the start better: 53.0 % less delay (96.9 % interval \
             52.0 to 54.0 % less, n = 6 pairs)"
        );
        assert!(plain(&said[1]).starts_with("90 Mbit/s → 94 Mbit/s; better: +4.4 % ("), "{said:?}");
        let said = together(Purpose::Cpu, &compared(&[cpu, rate]));
        let less = "CPU time 1.20 s per GB → 600 ms per GB; against the start cheaper: 50.0 % less CPU time per byte (";
        assert!(plain(&said[0]).starts_with(less), "{said:?}");
        let said = together(Purpose::Balanced, &compared(&[rate, cpu, latency]));
        assert_eq!(said.len(), 3);
    }

    #[test]
    fn what_goodput_can_not_change_is_said_to_whoever_can_if_it_is_about_the_purpose() {
        let said = |rule: &str, changes: Vec<Change>, purpose| {
            let mut record = record();
            let finding = &mut record.findings[0];
            finding.rule = rule.into();
            record.verdict.limit = rule.into();
            finding.changes = changes;
            finding.advice = vec!["tc filter add dev eth0   # another class".into()];
            by_hand(&record, purpose).iter().map(|text| plain(text)).collect::<Vec<_>>()
        };
        let change = Change {
            setting: "chunk".parse().unwrap(),
            from: None,
            to: "1M".into(),
            why: "because".into(),
        };
        let advice = ["tc filter add dev eth0   # another class"];
        assert_eq!(said("path-rate", vec![change], Purpose::Throughput), [""; 0]);
        assert_eq!(said("path-rate", Vec::new(), Purpose::Throughput), advice);
        assert_eq!(said("path-rate", Vec::new(), Purpose::Latency), [""; 0]);
        assert_eq!(said("queue-too-long", Vec::new(), Purpose::Latency), advice);
        assert_eq!(said("queue-too-long", Vec::new(), Purpose::Cpu), [""; 0]);
        assert_eq!(said("sender-cpu", Vec::new(), Purpose::Cpu), advice);
    }
}
