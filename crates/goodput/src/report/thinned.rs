//! What the record of a long measurement leaves out.

use goodput_model::{Seconds, Thinned};

/// In words: how detailed the record is.
pub fn phrase(thinned: &Thinned) -> String {
    let parts = [
        ("intervals of", thinned.intervals_every_s),
        ("near samples every", thinned.near_samples_every_s),
        ("far samples every", thinned.far_samples_every_s),
    ];
    let kept = parts.iter().filter_map(|(what, s)| Some(format!("{what} {}", Seconds((*s)?))));
    format!("{}: a long measurement; sums and rates are exact", kept.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_only_what_is_less_detailed() {
        let thinned = Thinned { near_samples_every_s: Some(25.61), ..Thinned::default() };
        let text = "near samples every 25.6 s: a long measurement; sums and rates are exact";
        assert_eq!(phrase(&thinned), text);
        let both = Thinned { intervals_every_s: Some(32.0), ..thinned };
        assert!(phrase(&both).starts_with("intervals of 32 s, near samples every 25.6 s: "));
    }
}
