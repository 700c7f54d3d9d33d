//! How even the rate is: its lowest and highest value over windows of several lengths.

use goodput_model::{BitRate, WindowRates};

use crate::trace::Came;

/// Lengths of the windows, seconds.
const WINDOW_LENGTHS_S: [f64; 4] = [0.001, 0.01, 0.1, 1.0];
/// Smallest average number of frames in a window. With fewer, the rate depends on how the frames fall into it.
const MIN_FRAMES_IN_WINDOW: f64 = 4.0;

pub(crate) fn rates(held: &[Came], frame: f64) -> Vec<WindowRates> {
    let [first, .., last] = held else { return Vec::new() };
    let span_s = last.came_s - first.came_s;
    let is_useful = |window: &f64| {
        span_s >= *window && held.len() as f64 * window / span_s >= MIN_FRAMES_IN_WINDOW
    };
    WINDOW_LENGTHS_S
        .into_iter()
        .filter(is_useful)
        .map(|window_s| over(held, frame, window_s))
        .collect()
}

/// The lowest rate is in a window that begins right after an arrival, the highest in one that begins with it.
fn over(held: &[Came], frame: f64, window_s: f64) -> WindowRates {
    let end_s = held.last().map_or(0.0, |last| last.came_s);
    let (mut lowest, mut highest) = (usize::MAX, 0);
    let (mut within, mut after) = (0, 0);
    for (place, came) in held.iter().enumerate() {
        let until = came.came_s + window_s;
        while within < held.len() && held[within].came_s < until {
            within += 1;
        }
        highest = highest.max(within - place);
        if until <= end_s {
            while after < held.len() && held[after].came_s <= until {
                after += 1;
            }
            let next = place + held[place..].partition_point(|other| other.came_s <= came.came_s);
            lowest = lowest.min(after - next);
        }
    }
    let rate = |count: usize| BitRate(count as f64 * frame * 8.0 / window_s);
    WindowRates {
        window_s,
        lowest_bits_per_s: rate(lowest.min(highest)),
        highest_bits_per_s: rate(highest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lowers_the_lowest_rate_and_a_burst_raises_the_highest() {
        let at = |came_s| Came { sent_s: 0.0, came_s, wait_s: 0.0, lost_before: 0 };
        let times = (0..100).map(|n| f64::from(n) * 1.05e-3);
        let mut held: Vec<Came> =
            times.filter(|time| !(0.042..0.051).contains(time)).map(at).collect();
        held.splice(20..20, (0..5).map(|_| at(0.0205)));
        let rates = rates(&held, 1000.0);
        let ten = rates.iter().find(|rate| rate.window_s == 0.01).unwrap();
        assert_eq!(ten.lowest_bits_per_s, BitRate(1000.0 * 8.0 / 0.01), "one arrival in 10 ms");
        assert_eq!(ten.highest_bits_per_s, BitRate(15_000.0 * 8.0 / 0.01), "ten and the five");
        assert!(rates.iter().all(|rate| rate.window_s != 0.001), "one frame each");
    }
}
