//! What a server did, for Prometheus. No label has a word of a client, so that no client can add one.

use goodput_engine::serve::Counted;
use goodput_model::EndName;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::open_metrics::{Gauges, Label, Labels, gauges};
use super::serve_results::LastResult;

/// All metrics as OpenMetrics text.
pub fn text(counted: Counted, results: &[LastResult]) -> String {
    let Counted { clients, conversations, measurements, refused, received_bytes, sent_bytes } =
        counted;
    let mut registry = Registry::with_prefix("goodput_serve");
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    registry.register("build", "Version of goodput", Info::new(version));
    let present: Gauge = Gauge::default();
    present.set(i64::try_from(clients).unwrap_or(i64::MAX));
    registry.register("clients", "Ongoing conversations", present);
    let counts = [
        ("conversations", "Conversations that began", conversations, None),
        ("measurements", "Measurements that ended with a result", measurements, None),
        ("refused", "Connections and measurements that the server turned away", refused, None),
        ("received", "Payload that arrived", received_bytes, Some(Unit::Bytes)),
        ("sent", "Payload that was sent", sent_bytes, Some(Unit::Bytes)),
    ];
    for (name, help, value, unit) in counts {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        match unit {
            Some(unit) => registry.register_with_unit(name, help, unit, counter),
            None => registry.register(name, help, counter),
        }
    }
    register_results(&mut registry, results);
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = encode(&mut text, &registry);
    text
}

/// A number of a result: name, help, unit, value.
type Number = (&'static str, &'static str, &'static str, fn(&LastResult) -> Option<f64>);

/// The numbers of a result, as in the metrics of a watch. The base unit of data is the byte (Prometheus, "Metric and label
/// naming").
const NUMBERS: [Number; 6] = [
    ("goodput", "Goodput of the last result", "bytes_per_second", |one| Some(one.goodput?.0 / 8.0)),
    ("round_trip", "Round-trip time under load of the last result", "seconds", |one| {
        one.figures.round_trip_s
    }),
    ("smallest_round_trip", "Smallest round-trip time of the last result", "seconds", |one| {
        one.figures.smallest_round_trip_s
    }),
    ("lost", "Share of the last result that was sent again or lost", "ratio", |one| {
        one.figures.lost_share
    }),
    ("verdict_probability", "Probability of the last verdict", "ratio", |one| {
        one.verdict.as_ref()?.2
    }),
    ("last_result_timestamp", "When the last result began", "seconds", |one| {
        Some(one.began.as_second() as f64)
    }),
];

/// The last result of each direction; what this end does not know is absent.
fn register_results(registry: &mut Registry, results: &[LastResult]) {
    for (name, help, unit, value) in NUMBERS {
        let family = gauges(registry, name, help, unit);
        for (labels, value) in results.iter().filter_map(|one| Some((of(one), value(one)?))) {
            family.get_or_create(&labels).set(value);
        }
    }
    let verdicts = Gauges::default();
    registry.register(
        "verdict",
        "The last verdict: 1 for the limit that it names",
        verdicts.clone(),
    );
    for one in results {
        let Some((limit, end, _)) = &one.verdict else { continue };
        let more = [("limit", Label::of(limit)), ("end", Label::of(end.to_string()))];
        let labels: Labels = of(one).into_iter().chain(more).collect();
        verdicts.get_or_create(&labels).set(1.0);
    }
}

/// The labels of a direction.
fn of(result: &LastResult) -> Labels {
    let direction = match result.sender {
        EndName::Near => "sent",
        EndName::Far => "received",
    };
    vec![("direction", Label::of(direction))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{BitRate, Place};
    use goodput_store::Figures;
    use jiff::Timestamp;

    #[test]
    fn the_last_result_of_each_direction_has_what_this_end_knows() {
        let received = LastResult {
            sender: EndName::Far,
            began: Timestamp::UNIX_EPOCH,
            goodput: Some(BitRate(9.4e8)),
            figures: Figures::default(),
            verdict: None,
        };
        let sent = LastResult {
            sender: EndName::Near,
            goodput: None,
            figures: Figures { round_trip_s: Some(0.0031), ..Figures::default() },
            verdict: Some(("policer".into(), Place::Path, Some(0.75))),
            ..received.clone()
        };
        let text = text(Counted::default(), &[received, sent]);
        for line in [
            "goodput_serve_goodput_bytes_per_second{direction=\"received\"} 117500000.0",
            "goodput_serve_round_trip_seconds{direction=\"sent\"} 0.0031",
            "goodput_serve_verdict_probability_ratio{direction=\"sent\"} 0.75",
            "goodput_serve_verdict{direction=\"sent\",limit=\"policer\",end=\"path\"} 1.0",
            "goodput_serve_last_result_timestamp_seconds{direction=\"received\"} 0.0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        for absent in
            ["bytes_per_second{direction=\"sent\"", "_lost_ratio{", "smallest_round_trip_seconds{"]
        {
            assert!(!text.contains(absent), "{absent}\n{text}");
        }
    }

    #[test]
    fn counts_have_their_units_and_the_suffix_of_counts() {
        let counted = Counted {
            clients: 2,
            conversations: 9,
            measurements: 5,
            refused: 1,
            received_bytes: 1000,
            sent_bytes: 0,
        };
        let text = text(counted, &[]);
        for line in [
            "goodput_serve_clients 2",
            "goodput_serve_conversations_total 9",
            "goodput_serve_refused_total 1",
            "goodput_serve_received_bytes_total 1000",
            "goodput_serve_sent_bytes_total 0",
            "# UNIT goodput_serve_received_bytes bytes",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }
}
