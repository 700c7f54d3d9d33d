//! As much of a long series as a picture shows.

/// Points of a line; a picture shows no more, and a page stays small.
const MAX_POINTS: usize = 400;

/// Every how-many-th item, and the last one.
pub fn thinned<T>(items: &[T]) -> impl Iterator<Item = &T> {
    let step = items.len().div_ceil(MAX_POINTS).max(1);
    let rest = items.last().filter(|_| !(items.len() - 1).is_multiple_of(step));
    items.iter().step_by(step).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_last_item_and_a_short_one_is_whole() {
        let items: Vec<_> = (0..12_001).collect();
        let thin: Vec<_> = thinned(&items).collect();
        assert!((MAX_POINTS / 2..=MAX_POINTS + 1).contains(&thin.len()), "{}", thin.len());
        assert_eq!((thin[0], thin.last()), (&0, Some(&&12_000)));
        assert_eq!(thinned(&items[..12_000]).last(), Some(&11_999));
        assert!(thinned(&items[..3]).eq(&[0, 1, 2]));
        assert_eq!(thinned::<u8>(&[]).count(), 0);
    }
}
