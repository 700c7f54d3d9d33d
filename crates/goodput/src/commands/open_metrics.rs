//! What the metrics of a watch, of a fleet and of a server share.

use std::fmt::{self, Write};
use std::sync::atomic::AtomicU64;

use goodput_model::plain_char;
use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// The value of a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label(String);

impl Label {
    /// Of a target, a site or a rule of a future record, which are any text: what would paint the screen of whoever reads the
    /// metrics is replaced.
    pub fn of(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().chars().map(plain_char).collect())
    }
}

impl EncodeLabelValue for Label {
    /// Escapes as OpenMetrics 1.0 requires ("Escaping"); the library writes the text as it is.
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => encoder.write_str("\\\\")?,
                '"' => encoder.write_str("\\\"")?,
                c => encoder.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Names and values.
pub type Labels = Vec<(&'static str, Label)>;
/// A value for each combination of labels.
pub type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;
/// A count for each combination of labels.
pub type Counters = Family<Labels, Counter>;

/// Sets one of the gauges; what is unknown is absent, not 0.
pub fn set(gauges: &Gauges, labels: &Labels, value: Option<f64>) {
    match value {
        Some(value) => {
            gauges.get_or_create(labels).set(value);
        }
        None => {
            gauges.remove(labels);
        }
    }
}

/// Gauges with a unit, registered.
pub fn gauges(registry: &mut Registry, name: &str, help: &str, unit: &str) -> Gauges {
    let gauges = Gauges::default();
    registry.register_with_unit(name, help, Unit::Other(unit.into()), gauges.clone());
    gauges
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;

    #[test]
    fn a_label_of_a_hostile_peer_paints_no_screen() {
        let evil = Label::of("a\u{1b}[2J\nb\u{9b}\u{202e}");
        assert_eq!(evil, Label::of("a\u{fffd}[2J\u{fffd}b\u{fffd}\u{fffd}"));
    }

    #[test]
    fn what_is_no_longer_known_is_absent() {
        let mut registry = Registry::default();
        let gauges = gauges(&mut registry, "lost", "Share that was lost", "ratio");
        let labels = vec![("target", Label::of("nas"))];
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        set(&gauges, &labels, Some(0.0));
        assert!(text().contains("lost_ratio{target=\"nas\"} 0.0"), "{}", text());
        set(&gauges, &labels, None);
        assert!(!text().contains("nas"), "{}", text());
    }
}
