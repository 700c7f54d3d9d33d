//! Quantiles and the trimmed mean of times that were all recorded.

/// The smallest of `sorted` that at least `share` of them (0 to 1) do not exceed: the nearest rank, type 1 of Hyndman
/// and Fan (1996). `None` if `sorted` is empty.
pub fn nearest_rank(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// The mean of `sorted` without the largest `share` of them (0 to 1); at least one remains. `None` if `sorted` is
/// empty.
pub fn trimmed_mean(sorted: &[f64], share: f64) -> Option<f64> {
    let dropped = (share * sorted.len() as f64).floor() as usize;
    let kept = &sorted[..(sorted.len() - dropped.min(sorted.len())).max(1).min(sorted.len())];
    (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_those_of_the_textbook() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        let rank = |share| nearest_rank(&hundred, share);
        assert_eq!((rank(0.5), rank(0.9), rank(0.99)), (Some(50.0), Some(90.0), Some(99.0)));
        assert_eq!((rank(0.0), rank(1.0)), (Some(1.0), Some(100.0)));
        assert_eq!(nearest_rank(&[15.0, 20.0, 35.0, 40.0, 50.0], 0.3), Some(20.0));
        assert_eq!(nearest_rank(&[], 0.5), None);
    }

    #[test]
    fn the_largest_are_left_out_of_the_mean() {
        let mut times = vec![1.0; 19];
        times.push(1000.0);
        assert_eq!(trimmed_mean(&times, 0.05), Some(1.0));
        assert_eq!(trimmed_mean(&[2.0, 4.0], 0.05), Some(3.0));
        assert_eq!(trimmed_mean(&[7.0], 1.0), Some(7.0));
        assert_eq!(trimmed_mean(&[], 0.05), None);
    }

    proptest! {
        #[test]
        fn a_quantile_is_one_of_the_times(mut times in proptest::collection::vec(0.0f64..1e9, 1..50), share in 0.0f64..=1.0) {
            times.sort_by(f64::total_cmp);
            let quantile = nearest_rank(&times, share).unwrap();
            prop_assert!(times.contains(&quantile));
            let within = times.iter().filter(|time| **time <= quantile).count();
            prop_assert!(within as f64 >= share * times.len() as f64 - 1e-9);
        }
    }
}
