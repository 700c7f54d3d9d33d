//! What all flows of the sender did together between two samples.

use super::series::Point;

/// One step of all flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total {
    /// Length.
    pub seconds: f64,
    /// Segments that arrived.
    pub passed: f64,
    /// Segments that were found not to have arrived.
    pub lost: f64,
    /// By how much the middle flow's round trip exceeded the shortest of all: the longer one of begin and end.
    pub queue_s: f64,
    /// The shorter one.
    pub least_queue_s: f64,
    /// Whether the start of most flows was over: of many, one always starts anew or comes late.
    pub has_started: bool,
}

impl Total {
    /// Segments that came to where they were lost.
    pub fn arrived(&self) -> f64 {
        self.passed + self.lost
    }
}

/// Steps from the flows' points, without samples that lack a flow; `base_s` is the round trip without a queue.
pub fn totals(flows: &[Vec<Point>], base_s: f64) -> Vec<Total> {
    let Some(first) = flows.first() else { return Vec::new() };
    let lost: Vec<Vec<f64>> = flows.iter().map(|points| super::series::lost(points)).collect();
    // Each flow's points are in the order of time, and so are the moments: what is before one is before the next.
    let mut places = vec![0; flows.len()];
    let mut at = |at_s: f64| -> Option<([f64; 4], bool)> {
        for (points, place) in flows.iter().zip(&mut places) {
            *place += points[*place..].iter().take_while(|point| point.at_s < at_s).count();
            points.get(*place).filter(|point| point.at_s == at_s)?;
        }
        let each = || flows.iter().zip(&lost).zip(&places);
        let passed = each().map(|((points, _), at)| points[*at].delivered - points[*at].needless);
        let mut queues: Vec<f64> =
            each().map(|((points, _), at)| points[*at].rtt_s - base_s).collect();
        queues.sort_by(f64::total_cmp);
        let lost = each().map(|((_, lost), at)| lost[*at]);
        let started = each().filter(|((points, _), at)| points[**at].has_started).count();
        let have_started = 2 * started > flows.len();
        Some(([at_s, passed.sum(), lost.sum(), queues[queues.len() / 2]], have_started))
    };
    let moments: Vec<([f64; 4], bool)> = first.iter().filter_map(|point| at(point.at_s)).collect();
    let step = |pair: &[([f64; 4], bool)]| {
        let (([from_s, passed, lost, queue_s], has_started), (next, _)) = (pair[0], pair[1]);
        let seconds = next[0] - from_s;
        (seconds > 0.0).then(|| Total {
            seconds,
            passed: (next[1] - passed).max(0.0),
            lost: (next[2] - lost).max(0.0),
            queue_s: queue_s.max(next[3]),
            least_queue_s: queue_s.min(next[3]),
            has_started,
        })
    };
    moments.windows(2).filter_map(step).collect()
}
