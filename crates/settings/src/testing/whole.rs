//! The whole network namespace, for comparison with an earlier state.

use goodput_model::SettingRef;

use crate::Footprint;
use crate::side_effects::{Cells, capture, changed};

/// Links, addresses, routes, neighbours, qdiscs, classes, features, drivers' parameters, steering
/// and every parameter under net, at one moment.
pub(crate) struct Whole(Cells);

impl Whole {
    /// The present state.
    pub(crate) fn now() -> Self {
        let any: SettingRef = "link.mtu@lo".parse().unwrap();
        Self(capture(&any, &Footprint::Namespace).unwrap())
    }

    /// Number of things in it.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether anything's name begins with `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.keys().any(|known| known.starts_with(name))
    }

    /// What differs now, one line each: the old value and the new one.
    pub(crate) fn differences(&self) -> Vec<String> {
        let now = Self::now();
        let words = |text: Option<&String>| text.map_or("nothing", String::as_str).to_owned();
        changed(&self.0, &now.0)
            .into_iter()
            .map(|(name, is)| {
                format!("{name}: {} → {}", words(self.0.get(&name)), words(is.as_ref()))
            })
            .collect()
    }
}
