//! The names most similar to a mistyped one.

/// Number of names worth showing.
const MAX_SHOWN_NAMES: usize = 3;

/// Below this similarity (0 to 1) a name is no help.
const MIN_SIMILARITY: f64 = 0.6;

/// The most similar of `candidates`, best first, at most three; none if none is similar.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut scored: Vec<(f64, &str)> = candidates
        .map(|candidate| (similarity(name, candidate), candidate))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(MAX_SHOWN_NAMES).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// `did you mean NAME?`, with the most similar of `candidates`; `None` if none is similar.
pub fn meant<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).first().map(|nearest| format!("did you mean {nearest:?}?"))
}

/// Compares the names without the groups that begin both, which say nothing (`sysctl.net.`), and also the candidate's
/// last word: `congestion` should find `socket.congestion`.
fn similarity(name: &str, candidate: &str) -> f64 {
    let both = name.bytes().zip(candidate.bytes()).take_while(|(a, b)| a == b).count();
    let begin =
        name.as_bytes()[..both].iter().rposition(|byte| *byte == b'.').map_or(0, |at| at + 1);
    let whole = strsim::normalized_damerau_levenshtein(&name[begin..], &candidate[begin..]);
    let last = candidate.rsplit('.').next().unwrap_or(candidate);
    whole.max(strsim::normalized_damerau_levenshtein(name, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_and_a_missing_prefix_are_both_helped() {
        let all = ["socket.sndbuf", "socket.congestion", "mover"];
        assert_eq!(nearest("socket.sndbf", all.into_iter())[0], "socket.sndbuf");
        assert_eq!(nearest("congestion", all.into_iter()), ["socket.congestion"]);
        for nonsense in ["zebra", "", "socket.zebra"] {
            assert!(nearest(nonsense, all.into_iter()).is_empty(), "{nonsense}");
        }
    }
}
