//! What the near end keeps of a running measurement, in bounded memory however long it lasts.

use goodput_model::{EndName, Interval, Plan, Sample, Thinned};

use crate::events::{Event, Listener};
use crate::near::live_intervals::LiveIntervals;
use crate::result::silence::Silence;
use crate::result::thinned_samples::ThinnedSamples;
use crate::result::window::steady;

/// Samples of both ends, thinned as they age, and the intervals cut from them, joined if there are many.
pub struct KeptSamples {
    near: ThinnedSamples,
    far: ThinnedSamples,
    live: LiveIntervals,
    /// Whether flows ran until they were stopped; the samples until then are marked.
    was_steady: bool,
}

/// What was kept of a finished measurement.
pub struct KeptMeasurement {
    /// Samples of the near end.
    pub near: Vec<Sample>,
    /// Samples of the far end.
    pub far: Vec<Sample>,
    /// The intervals, in the order of their ends.
    pub intervals: Vec<Interval>,
    /// How many samples of each end were taken before the senders were asked to stop; `None`: the flows ended
    /// on their own.
    pub steady_samples: Option<(usize, usize)>,
    /// How much was left out, if anything was.
    pub thinned: Option<Thinned>,
}

impl KeptSamples {
    /// For a plan with a far end that does or does not report what it receives.
    pub fn new(plan: &Plan, far_reports: bool) -> Self {
        Self {
            near: ThinnedSamples::default(),
            far: ThinnedSamples::default(),
            live: LiveIntervals::new(plan, far_reports),
            was_steady: false,
        }
    }

    /// The next sample of an end.
    pub fn take(&mut self, at: EndName, sample: Sample, listener: &mut Listener<'_>) {
        listener(Event::Sampled { end: at, sample: Box::new(sample.clone()) });
        self.live.take(at, &sample, listener);
        let samples = match at {
            EndName::Near => &mut self.near,
            EndName::Far => &mut self.far,
        };
        samples.push(sample);
    }

    /// Samples of the near end so far.
    pub fn near(&self) -> &[Sample] {
        &self.near
    }

    /// Samples of the far end so far.
    pub fn far(&self) -> &[Sample] {
        &self.far
    }

    /// The senders were asked to stop `far_until_s` after the far end's samples began; `are_moving`: they had not ended on
    /// their own. Samples of the far end from before that may still be on their way, for seconds if the path is full.
    pub fn stop(&mut self, are_moving: bool, far_until_s: f64) {
        let newest = |kept: &ThinnedSamples| kept.last().map_or(0.0, |last| last.at_s);
        let near_until_s = newest(&self.near);
        if are_moving {
            self.was_steady = true;
            self.near.mark(near_until_s);
            self.far.mark(far_until_s);
            self.live.stop(near_until_s, far_until_s);
        } else {
            self.live.stop(near_until_s, newest(&self.far));
        }
    }

    /// Whether the far end's reports end well before the senders were to stop.
    pub fn is_far_silent(&self) -> bool {
        let marked = |kept: &ThinnedSamples| self.was_steady.then(|| kept.marked().unwrap_or(0));
        let (near, far) = (marked(&self.near), marked(&self.far));
        Silence::of(steady(&self.near, near), steady(&self.far, far), 0.0).is_some()
    }

    /// The measurement is over. `far_reports` says whether the far end finally reported what it received.
    pub fn close(mut self, far_reports: bool, listener: &mut Listener<'_>) -> KeptMeasurement {
        let marked = |kept: &ThinnedSamples| kept.marked().unwrap_or(0);
        let steady_samples = self.was_steady.then(|| (marked(&self.near), marked(&self.far)));
        let (near, far) = steady_samples.unzip();
        let (steady_near, steady_far) = (steady(&self.near, near), steady(&self.far, far));
        if !far_reports {
            self.live.do_without_far(steady_near, listener);
        }
        let (intervals, intervals_every_s) = self.live.close(steady_near, steady_far, listener);
        let thinned = Thinned {
            intervals_every_s,
            near_samples_every_s: self.near.every_s(),
            far_samples_every_s: self.far.every_s(),
        };
        KeptMeasurement {
            near: self.near.into_samples(),
            far: self.far.into_samples(),
            intervals,
            steady_samples,
            thinned: thinned.if_any(),
        }
    }
}
