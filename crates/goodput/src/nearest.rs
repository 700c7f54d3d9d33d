//! Guesses a mistyped name.

/// Below this similarity (0 to 1, `jaro_winkler`) a suggestion is no help.
const MIN_LIKENESS: f64 = 0.75;

/// The name most similar to `typed`, if any is similar enough.
pub fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |other: &str| strsim::jaro_winkler(typed, other);
    let best = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.filter(|best| likeness(best) >= MIN_LIKENESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_looks_like_it_is_named() {
        let names = ["path-loss", "socket.sndbuf", "nfs.rsize"];
        assert_eq!(nearest("path-los", names.into_iter()), Some("path-loss"));
        assert_eq!(nearest("socket.sndbf", names.into_iter()), Some("socket.sndbuf"));
        for nonsense in ["nonsense", ""] {
            assert_eq!(nearest(nonsense, names.into_iter()), None, "{nonsense}");
        }
    }
}
