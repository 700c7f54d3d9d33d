//! The files of a measurement: their rate alone, and whether they or the network were slower.

use goodput_model::{Bytes, Known, Slowest, StorageResult};

/// The lines of the report: label and text.
pub fn lines(storage: &StorageResult) -> Vec<(&'static str, String)> {
    let source = storage.source.as_ref().map(|name| ("source", source(name, storage)));
    let sink = storage.sink.as_ref().map(|name| ("sink", sink(name, storage)));
    let slowest = storage.slowest.value().map(|which| ("slowest", words(*which).to_string()));
    [source, sink, slowest].into_iter().flatten().collect()
}

fn source(name: &str, storage: &StorageResult) -> String {
    let mut parts = vec![name.to_string()];
    if let Known::Value(bytes) = storage.source_bytes {
        parts.push(Bytes(bytes).to_string());
    }
    match (storage.cache.value().map(String::as_str), &storage.resident_percent) {
        (Some(cache @ ("cold" | "warm")), Known::Value(percent)) => {
            parts.push(format!("{cache}, {percent:.0} % of it in the page cache"));
        }
        (Some(cache @ ("cold" | "warm")), Known::Missing(_)) => parts.push(cache.to_string()),
        _ => {}
    }
    if let Known::Value(alone) = storage.alone_bits_per_s {
        parts.push(format!("{alone} read alone"));
    }
    if let Known::Value(percent) = storage.source_wait_percent {
        parts.push(format!("waited for {percent:.0} % of the time"));
    }
    parts.join(", ")
}

fn sink(name: &str, storage: &StorageResult) -> String {
    let mut parts = vec![name.to_string()];
    if let Known::Value(alone) = storage.sink_alone_bits_per_s {
        parts.push(format!("{alone} written alone"));
    }
    if let Known::Value(percent) = storage.sink_wait_percent {
        parts.push(format!("waited for {percent:.0} % of the time"));
    }
    parts.join(", ")
}

fn words(slowest: Slowest) -> &'static str {
    match slowest {
        Slowest::Source => "the source: the network could carry more than the source gave",
        Slowest::SenderCpu => "the sender's CPU, neither its source nor the network",
        Slowest::Network => "the network: the source could give more than the network carried",
        Slowest::ReceiverCpu => "the receiver's CPU, neither the source nor the network",
        Slowest::Sink => "the sink: the network could deliver more than the sink wrote",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{examples, labelled::line};
    use super::*;
    use goodput_model::BitRate;

    #[test]
    fn the_page_shows_a_source_as_it_is_printed() {
        let storage = StorageResult {
            source: Some("big.iso".into()),
            source_bytes: Known::Value(4_290_000_000),
            cache: Known::Value("cold".into()),
            resident_percent: Known::Value(0.0),
            alone_bits_per_s: Known::Value(BitRate(1.1e9)),
            source_wait_percent: Known::Value(71.2),
            sink: None,
            sink_alone_bits_per_s: Known::missing("there is no sink"),
            sink_wait_percent: Known::missing("its payload is memory"),
            network_wait_percent: Known::Value(12.0),
            slowest: Known::Value(Slowest::Source),
        };
        let mut report = String::new();
        lines(&storage).iter().for_each(|(label, text)| line(&mut report, label, text));
        examples::assert_shown(
            "docs/files.md",
            "goodput test HOST --source big.iso --cold",
            &report,
        );
    }
}
