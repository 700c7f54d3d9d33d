//! pScheduler's JSON against its schemas: the keys, their types and which are required, from `SPEC_SCHEMA` and
//! `RESULT_SCHEMA` in pscheduler-test-throughput/throughput/validate.py and the types in
//! python-pscheduler/pscheduler/pscheduler/jsonval.py (pScheduler 5.2.5).

use goodput_model::{BitRate, Direction, Kind, Known, Length, Record, Source, Transport};
use serde_json::{Value, json};

use super::made_up::{Far, Made};
use crate::formats::pscheduler::{FORMAT, unfit};
use crate::formats::{Style, print};

/// A key, whether it is required, and whether a value fits.
type Key = (&'static str, bool, fn(&Value) -> bool);

const RUN: &[Key] = &[
    ("schedule", true, Value::is_object),
    ("run", true, |v| v["start-time"].is_string()),
    ("test", true, Value::is_object),
    ("tool", false, Value::is_object),
    ("participants", true, |v| v.as_array().is_some_and(|all| all.len() == 2)),
    ("result", true, Value::is_object),
];

const SPEC: &[Key] = &[
    ("schema", true, |v| v.as_u64().is_some_and(|n| (1..=7).contains(&n))),
    ("source", false, Value::is_string),
    ("dest", true, Value::is_string),
    ("duration", false, is_duration),
    ("interval", false, is_duration),
    ("parallel", false, is_cardinal),
    ("udp", false, Value::is_boolean),
    ("bandwidth", false, is_cardinal),
    ("fq-rate", false, is_cardinal),
    ("window-size", false, is_cardinal),
    ("mss", false, is_cardinal),
    ("buffer-length", false, is_cardinal),
    ("ip-tos", false, |v| v.as_u64().is_some_and(|n| n < 256)),
    ("ip-version", false, |v| *v == json!(4) || *v == json!(6)),
    ("local-address", false, Value::is_string),
    ("omit", false, is_duration),
    ("no-delay", false, Value::is_boolean),
    ("congestion", false, |v| v.as_str().is_some_and(|name| !name.is_empty())),
];

const RESULT: &[Key] = &[
    ("schema", false, is_cardinal),
    ("succeeded", true, Value::is_boolean),
    ("error", false, Value::is_string),
    ("diags", true, Value::is_string),
    ("mss", false, Value::is_u64),
    ("mtu", false, Value::is_u64),
    ("tcp-window-size", false, Value::is_u64),
    ("requested-tcp-window-size", false, Value::is_u64),
    ("intervals", true, Value::is_array),
    ("summary", true, Value::is_object),
];

/// Required beyond the schema: what pScheduler's result-format reads from every interval and stream.
const DATA: &[Key] = &[
    ("throughput-bits", true, Value::is_number),
    ("throughput-bytes", false, Value::is_number),
    ("receiver-throughput-bits", false, Value::is_number),
    ("sent", false, Value::is_u64),
    ("lost", false, Value::is_u64),
    ("jitter", false, Value::is_number),
    ("stream-id", false, |v| v.is_u64() || v.is_string()),
    ("start", true, Value::is_number),
    ("end", true, Value::is_number),
    ("rtt", false, Value::is_number),
    ("tcp-window-size", false, Value::is_u64),
    ("retransmits", false, Value::is_u64),
    ("omitted", false, Value::is_boolean),
];

fn is_cardinal(value: &Value) -> bool {
    value.as_u64().is_some_and(|number| number > 0)
}

/// `PT`, a decimal number, `S`: the part of the pattern that goodput writes.
fn is_duration(value: &Value) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let seconds = value.as_str().and_then(|text| text.strip_prefix("PT")?.strip_suffix('S'));
    seconds.is_some_and(|seconds| match seconds.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(seconds),
    })
}

fn fits(value: &Value, keys: &[Key]) -> Result<(), String> {
    let object = value.as_object().ok_or_else(|| format!("{value} is no object"))?;
    for (key, value) in object {
        let known = keys.iter().find(|(name, ..)| name == key);
        let (.., fits) = known.ok_or_else(|| format!("the schema has no {key}"))?;
        fits(value).then_some(()).ok_or_else(|| format!("{key} can't be {value}"))?;
    }
    let missing = keys.iter().find(|(name, required, _)| *required && !object.contains_key(*name));
    missing.map_or(Ok(()), |(name, ..)| Err(format!("{name} is missing")))
}

/// Reports what the schemas do not allow in a line.
pub fn check(line: &str) -> Result<(), String> {
    let run: Value = serde_json::from_str(line).map_err(|why| why.to_string())?;
    fits(&run, RUN)?;
    if run["test"]["type"] != "throughput" || !run["schedule"]["start"].is_string() {
        return Err("no throughput test, or no time".into());
    }
    let spec = &run["test"]["spec"];
    fits(spec, SPEC)?;
    if run["participants"] != json!([spec["source"], spec["dest"]]) {
        return Err("the participants are sender and receiver".into());
    }
    let result = &run["result"];
    fits(result, RESULT)?;
    let parts = result["intervals"].as_array().into_iter().flatten().chain([&result["summary"]]);
    for part in parts {
        fits(&part["summary"], DATA)?;
        for stream in part["streams"].as_array().ok_or("streams are missing")? {
            fits(stream, DATA)?;
            stream.get("stream-id").ok_or("a stream has no id")?;
        }
    }
    Ok(())
}

fn printed(made: Made) -> Vec<Value> {
    let text = print(&FORMAT, &made.record(), Style::default());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_receivers_bytes_are_the_throughput_and_the_senders_kernel_explains_them() {
    let [run] = &printed(Made::plain())[..] else { panic!("one direction") };
    assert_eq!(run["schedule"], json!({ "start": "2026-01-02T03:04:05Z", "duration": "PT2S" }));
    assert_eq!(run["tool"], json!({ "name": "goodput", "version": "0.1.0" }));
    assert_eq!(run["participants"], json!(["192.0.2.1", "192.0.2.7"]));
    let result = &run["result"];
    assert_eq!((&result["mss"], &result["mtu"]), (&json!(1448), &json!(1500)));
    assert_eq!(
        result["intervals"][1]["streams"][0],
        json!({
            "stream-id": 0, "start": 1.0, "end": 2.0, "throughput-bits": 8e6,
            "throughput-bytes": 1_000_000, "receiver-throughput-bits": 8e6, "rtt": 1004.0,
            "tcp-window-size": 14480, "retransmits": 2, "omitted": false,
        })
    );
    assert_eq!(
        result["summary"]["summary"],
        json!({
            "start": 0.0, "end": 2.0, "throughput-bits": 8e6, "throughput-bytes": 2_000_000,
            "receiver-throughput-bits": 8e6, "rtt": 1002.0, "retransmits": 4,
        })
    );
}

#[test]
fn a_receiver_that_got_less_says_what_the_throughput_is() {
    let mut record = Made::plain().record();
    let Known::Value(far) = &mut record.ends.far else { panic!("it is seen") };
    far.samples.iter_mut().for_each(|s| s.flows.iter_mut().for_each(|flow| flow.bytes /= 2));
    let text = print(&FORMAT, &record, Style::default());
    let run: Value = serde_json::from_str(&text).unwrap();
    for part in [&run["result"]["summary"], &run["result"]["intervals"][0]] {
        assert_eq!(part["summary"]["throughput-bits"], 4e6, "{text}");
        assert_eq!(part["summary"]["receiver-throughput-bits"], 4e6, "{text}");
    }
}

#[test]
fn what_the_far_end_did_not_report_is_the_senders_or_absent() {
    let [run] = &printed(Made { far: Far::Silent, ..Made::plain() })[..] else { panic!("one") };
    for part in [&run["result"]["summary"], &run["result"]["intervals"][0]] {
        assert_eq!(part["summary"]["throughput-bits"], 8e6);
        assert!(part["summary"].get("receiver-throughput-bits").is_none());
    }
    let silent = Made { far: Far::Silent, direction: Direction::Reverse, ..Made::plain() };
    let [run] = &printed(silent)[..] else { panic!("one direction") };
    assert_eq!(run["result"]["summary"]["summary"]["receiver-throughput-bits"], 8e6);
    assert!(run["result"]["intervals"][0]["streams"][0].get("rtt").is_none());
    assert!(run["result"].get("mss").is_none());
}

#[test]
fn datagrams_have_what_was_lost_among_those_sent() {
    let [run] = &printed(Made { transport: Transport::Udp, flows: 3, ..Made::plain() })[..] else {
        panic!("one direction")
    };
    assert_eq!(
        (&run["test"]["spec"]["udp"], &run["test"]["spec"]["parallel"]),
        (&json!(true), &json!(3))
    );
    let [whole, second] = [&run["result"]["summary"], &run["result"]["intervals"][1]];
    let counts =
        |data: &Value| [data["sent"].clone(), data["lost"].clone(), data["jitter"].clone()];
    assert_eq!(counts(&whole["streams"][2]), [json!(400), json!(4), json!(0.005)]);
    assert_eq!(counts(&whole["summary"]), [json!(1200), json!(12), json!(0.005)]);
    assert_eq!(counts(&second["streams"][0]), [json!(200), json!(2), json!(0.005)]);
    assert!(second["streams"][0].get("retransmits").is_none());
}

#[test]
fn datagrams_without_numbers_say_nothing_about_loss() {
    let mut record = Made { transport: Transport::Udp, ..Made::plain() }.record();
    let Known::Value(far) = &mut record.ends.far else { panic!("it is seen") };
    for flow in far.samples.iter_mut().flat_map(|sample| &mut sample.flows) {
        let datagrams = flow.datagrams.as_mut().unwrap();
        (datagrams.numbered, datagrams.timed) = (false, false);
    }
    let text = print(&FORMAT, &record, Style::default());
    assert!(!text.contains("\"lost\"") && !text.contains("\"jitter\""), "{text}");
}

#[test]
fn each_direction_is_a_test_whose_source_sends() {
    let [sent, came] = &printed(Made { direction: Direction::Both, ..Made::plain() })[..] else {
        panic!("two directions")
    };
    let ends = |run: &Value| {
        let spec = &run["test"]["spec"];
        (spec["source"].clone(), spec["dest"].clone())
    };
    assert_eq!(ends(sent), (json!("192.0.2.1"), json!("192.0.2.7")));
    assert_eq!(ends(came), (json!("192.0.2.7"), json!("192.0.2.1")));
    let id = |run: &Value| run["result"]["summary"]["streams"][0]["stream-id"].clone();
    assert_eq!((id(sent), id(came)), (json!(0), json!(1)));
}

#[test]
fn the_specification_has_what_was_asked_for_and_the_schema_that_knows_it() {
    let mut record = Made::plain().record();
    let spec = |record: &Record| {
        let run: Value = serde_json::from_str(&print(&FORMAT, record, Style::default())).unwrap();
        check(&run.to_string()).unwrap();
        run["test"]["spec"].clone()
    };
    let plain = json!({
        "schema": 1, "source": "192.0.2.1", "dest": "192.0.2.7", "duration": "PT2S", "interval": "PT1S",
        "parallel": 1, "buffer-length": 131_072, "ip-version": 4,
    });
    assert_eq!(spec(&record), plain);
    record.plan.length = Length::Auto { precision_percent: 2.0, min_s: 2.0, max_s: 10.0 };
    record.plan.rate_bits_per_s = Some(BitRate(5e6));
    record.plan.socket.dscp = Some(46);
    record.plan.socket.congestion = Some("bbr2".into());
    let asked = spec(&record);
    assert!(asked.get("duration").is_none());
    assert_eq!(
        [&asked["bandwidth"], &asked["ip-tos"], &asked["schema"]],
        [&json!(5_000_000), &json!(184), &json!(4)]
    );
    record.plan.flows = 4;
    assert_eq!(spec(&record)["bandwidth"], 1_250_000, "of each stream");
    record.plan.socket.max_pacing_bits_per_s = Some(BitRate(1e9));
    assert_eq!(spec(&record)["schema"], 7);
}

#[test]
fn a_part_of_a_test_did_not_succeed_and_says_why() {
    let mut record = Made::plain().record();
    record.incomplete = Some("the budget was used up".into());
    let run: Value = serde_json::from_str(&print(&FORMAT, &record, Style::default())).unwrap();
    assert_eq!(run["result"]["succeeded"], false);
    assert_eq!(run["result"]["error"], "the budget was used up");
}

#[test]
fn a_record_that_is_no_throughput_test_is_named_with_its_reason() {
    let record = Made::plain().record();
    assert_eq!((unfit(&record), (FORMAT.refuses)(&record)), (None, None));
    let mut other = record.clone();
    other.kind = Kind::Compare;
    assert_eq!(unfit(&other), Some("several runs"));
    other.kind = Kind::Attach;
    assert_eq!(unfit(&other), Some("a connection of another program"));
    let words = "this result is no throughput test of pScheduler: a connection of another program";
    assert_eq!((FORMAT.refuses)(&other).as_deref(), Some(words));
    assert_eq!(print(&FORMAT, &other, Style::default()), "", "an archive would show it as a test");
    other = record.clone();
    other.plan.storage.source = Some(Source::Input);
    assert_eq!(unfit(&other), Some("payload from or to a file"));
    other = record.clone();
    other.result.directions.clear();
    assert_eq!(unfit(&other), Some("no payload was counted"));
    other = record.clone();
    (other.target, other.connections) = ("fe80::1%eth0".into(), Vec::new());
    assert_eq!(unfit(&other), Some("a host without a name or address"));
}
