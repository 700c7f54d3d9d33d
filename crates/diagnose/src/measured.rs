//! What a run shows of the quantities that numbers are fitted to.

use std::collections::BTreeMap;

use goodput_model::Evidence;

use crate::loss;
use crate::policing;
use crate::view::View;

/// What evidence shows of each quantity that a fitted number is about, by name; nothing of one that the evidence says nothing
/// of. It hardly depends on the numbers themselves, so that they can be fitted to it.
pub fn measured(evidence: &Evidence) -> BTreeMap<&'static str, f64> {
    let view = View::new(evidence);
    if !view.is_tcp() {
        return BTreeMap::new();
    }
    let of_losses = loss::measured(&view).unwrap_or_default();
    let shown = of_losses.into_iter().chain(policing::measured(&view));
    let sound = shown.filter(|(_, value)| value.is_finite());
    sound.map(|(fitted, value)| (fitted.name(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    #[test]
    fn evidence_shows_what_its_losses_say() {
        let lossy = Case::path_loss().tcp(|tcp, _| tcp.rttvar_us = Some(500));
        let shown = measured(&lossy.evidence());
        assert_eq!(shown.get("needless-if-lost"), Some(&0.0));
        assert!(shown.contains_key("window-spread"), "{shown:?}");
        assert!(measured(&Case::healthy_udp().evidence()).is_empty());
    }
}
