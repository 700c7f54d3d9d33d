//! What a server did, for Prometheus.

use goodput_engine::serve::Counted;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// All metrics as OpenMetrics text.
pub fn text(counted: Counted) -> String {
    let Counted { clients, conversations, measurements, refused, received_bytes, sent_bytes } =
        counted;
    let mut registry = Registry::with_prefix("goodput_serve");
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    registry.register("build", "Version of goodput", Info::new(version));
    let present: Gauge = Gauge::default();
    present.set(i64::try_from(clients).unwrap_or(i64::MAX));
    registry.register("clients", "Conversations that go on", present);
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
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = encode(&mut text, &registry);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_units_and_the_suffix_of_counts() {
        let text = text(Counted {
            clients: 2,
            conversations: 9,
            measurements: 5,
            refused: 1,
            received_bytes: 1000,
            sent_bytes: 0,
        });
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
