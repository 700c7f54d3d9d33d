//! The result of one run of one case, read from its JSON line.

use anyhow::{Context, Result};
use serde_json::Value;

/// One run of one case.
#[derive(Debug, Clone)]
pub struct Ran {
    /// `scenario/strength/link`.
    pub case: String,
    /// What was planted.
    pub planted: Planted,
    /// The result.
    pub came: Came,
    /// Share of the healthy twin's goodput that the fault cost, or of its own rate that a path without a fault did not
    /// carry; `None` if that is not known.
    pub cost: Option<f64>,
    /// The digest of the fault that was drawn, if it was drawn at random.
    pub drawn: Option<String>,
    /// Share of the machine's CPUs that programs of low priority took meanwhile, which are none of the lab's; `None` if
    /// that is not known.
    pub others: Option<f64>,
}

/// What was planted, and which verdicts are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planted {
    /// One of these causes.
    One {
        /// Rules that name it; the first is the one under which it is listed.
        rules: Vec<String>,
        /// Where it sits, if that is judged.
        end: Option<String>,
    },
    /// All of these causes at once.
    Several(Vec<String>),
    /// Nothing; these causes may be named anyway.
    Nothing(Vec<String>),
}

/// The result of a run.
#[derive(Debug, Clone)]
pub enum Came {
    /// A verdict.
    Verdict(Box<Verdict>),
    /// The case needs something that this machine does not have.
    Skipped(String),
    /// The lab or the program failed.
    Failed(String),
}

/// A verdict and its findings.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// The rule named as the limit, or "none".
    pub limit: String,
    /// Where the limit sits.
    pub end: String,
    /// Every finding's rule, in order.
    pub found: Vec<String>,
    /// Confidence of the first finding; `None` without one.
    pub confidence: Option<String>,
    /// Evidence of the first finding, in words.
    pub evidence: Vec<String>,
    /// Goodput, bits per second.
    pub goodput: f64,
    /// Failed expectations besides the verdict, in words.
    pub missed: Vec<String>,
    /// When it ran, RFC 3339.
    pub started: String,
    /// The result of the proposed change, if that was tried.
    pub fix: Option<Fix>,
}

/// A proposed change that was compared.
#[derive(Debug, Clone)]
pub struct Fix {
    /// `SETTING=FROM,TO`.
    pub change: String,
    /// "better", "worse", "no-difference", "inconclusive"; or why there is none.
    pub judgement: String,
    /// Difference and its interval, percent.
    pub percent: Option<(f64, f64, f64)>,
}

impl Ran {
    /// Reads one line of `goodput lab run --json`, with what [`super::fixes`] added.
    pub fn parse(line: &str) -> Result<Self> {
        let line: Value = serde_json::from_str(line).context("a run's line is not JSON")?;
        let case = line["case"].as_str().context("a run's line names no case")?.to_owned();
        let came = if let Some(needs) = line["skipped"].as_str() {
            Came::Skipped(needs.into())
        } else if let Some(why) = line["failed"].as_str() {
            Came::Failed(why.into())
        } else {
            Came::Verdict(Box::new(verdict(&line)))
        };
        let drawn = line["drawn"].as_str().map(Into::into);
        let planted = planted(&line["expected"]);
        let others = others(&line["record"]["ends"]["near"]);
        Ok(Self { case, planted, came, cost: line["cost"].as_f64(), drawn, others })
    }
}

/// Share of a host's CPU time between its two snapshots that went to programs with a nice value above 0 (proc_stat(5)). All
/// hosts of a lab have one machine.
fn others(end: &Value) -> Option<f64> {
    const TIMES: [&str; 8] =
        ["nice", "user", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let grown = |time: &str| {
        let at = |when: &str| end[when]["facts"][format!("cpu.{time}_us")].as_f64();
        Some(at("after")? - at("before")?)
    };
    let grown = TIMES.into_iter().map(grown).collect::<Option<Vec<_>>>()?;
    let all: f64 = grown.iter().sum();
    (all > 0.0).then(|| grown[0] / all)
}

fn planted(expected: &Value) -> Planted {
    let both = texts(&expected["both"]);
    let rules = texts(&expected["limit"]);
    match (both.is_empty(), expected["healthy"] == true) {
        (false, _) => Planted::Several(both),
        (_, true) => Planted::Nothing(rules),
        _ => Planted::One { rules, end: expected["end"].as_str().map(Into::into) },
    }
}

fn verdict(line: &Value) -> Verdict {
    let record = &line["record"];
    let findings = list(&record["findings"]);
    let first = findings.first();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let missed = list(&line["judged"]).iter().filter(|judged| judged["ok"] == false);
    Verdict {
        limit: text(&record["verdict"]["limit"]),
        end: text(&record["verdict"]["end"]),
        found: findings.iter().map(|finding| text(&finding["rule"])).collect(),
        confidence: first.map(|finding| text(&finding["confidence"])),
        evidence: first.map_or(Vec::new(), |finding| {
            list(&finding["evidence"]).iter().map(|witness| text(&witness["text"])).collect()
        }),
        goodput: record["result"]["goodput_bits_per_s"].as_f64().unwrap_or(f64::NAN),
        missed: missed
            .map(|e| {
                format!("{}: {}, got {}", text(&e["what"]), text(&e["wanted"]), text(&e["got"]))
            })
            .collect(),
        started: text(&record["started"]),
        fix: fix(&line["fix"]),
    }
}

fn fix(fix: &Value) -> Option<Fix> {
    let effect = &fix["effect"];
    let percent = |name: &str| effect[name].as_f64();
    let interval = percent("percent").zip(percent("low_percent")).zip(percent("high_percent"));
    Some(Fix {
        change: fix["change"].as_str()?.into(),
        judgement: effect["judgement"].as_str().or(fix["failed"].as_str())?.into(),
        percent: interval.map(|((middle, low), high)| (middle, low, high)),
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn texts(value: &Value) -> Vec<String> {
    list(value).iter().filter_map(Value::as_str).map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line = r#"{"case":"a/b/c","expected":{"limit":["x"],"both":[],"healthy":false,"end":"far"},
            "judged":[{"what":"end","wanted":"far","got":"near","ok":false}],
            "record":{"started":"2026-01-01T00:00:00Z","verdict":{"limit":"x","end":"near"},
            "findings":[{"rule":"x","confidence":"likely","evidence":[{"text":"why"}]}],
            "result":{"goodput_bits_per_s":1e6}},
            "fix":{"change":"a=1,2","effect":{"judgement":"better","percent":9,"low_percent":8,"high_percent":10}}}"#;
        let ran = Ran::parse(&line.replace('\n', "")).unwrap();
        assert_eq!(ran.case, "a/b/c");
        let one = Planted::One { rules: vec!["x".into()], end: Some("far".into()) };
        assert_eq!(ran.planted, one);
        let Came::Verdict(verdict) = ran.came else { panic!("no verdict") };
        assert_eq!(verdict.missed, ["end: far, got near"]);
        assert_eq!(verdict.fix.unwrap().percent, Some((9.0, 8.0, 10.0)));
    }

    #[test]
    fn what_others_took_is_known_of_a_machine_that_counts_it() {
        let times = |nice: u32| {
            let zero = ["user", "system", "iowait", "irq", "softirq", "steal"];
            let zero: String = zero.map(|time| format!(r#","cpu.{time}_us":5"#)).concat();
            format!(r#"{{"facts":{{"cpu.nice_us":{nice},"cpu.idle_us":{}{zero}}}}}"#, 3 * nice)
        };
        let of = |after: &str| {
            let line = format!(
                r#"{{"case":"a","expected":{{}},"record":{{"ends":{{"near":{{"before":{},"after":{after}}}}}}}}}"#,
                times(100)
            );
            Ran::parse(&line).unwrap().others
        };
        assert_eq!(of(&times(300)), Some(0.25));
        assert_eq!(of("{}"), None);
    }

    #[test]
    fn a_case_that_could_not_run_says_why() {
        let line = r#"{"case":"a","expected":{"limit":["x"]},"skipped":"a TUN device"}"#;
        assert!(
            matches!(Ran::parse(line).unwrap().came, Came::Skipped(why) if why == "a TUN device")
        );
        assert!(Ran::parse("{").is_err());
    }
}
