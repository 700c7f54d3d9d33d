//! The run of each arm that is shown over time: of those that count, the one with the median goodput.

use goodput_model::{ArmResult, Bytes, Comparison, EndName, ReceivedBy, Record, ShownRun};

/// Most moments that are kept of a run. More would be closer to each other than what an eye tells apart.
const MAX_MOMENTS: usize = 100;

/// The runs so far that count.
#[derive(Default)]
pub struct ShownRuns(Vec<Candidate>);

struct Candidate {
    arm: usize,
    goodput: f64,
    run: ShownRun,
}

impl ShownRuns {
    /// Adds a run that counts, if its receiver kept samples.
    pub fn enter(&mut self, block: u32, arm: usize, record: &Record) {
        let goodput = record.result.goodput_bits_per_s.0;
        self.0.extend(shown(block, record).map(|run| Candidate { arm, goodput, run }));
    }

    /// Gives the baseline, and the arm that differs most from it, a run to look at.
    pub fn place(mut self, comparison: &mut Comparison) {
        let Some((base, others)) = comparison.arms.split_first_mut() else { return };
        let differs = |arm: &ArmResult| arm.primary().map_or(0.0, |effect| effect.percent.abs());
        let most =
            others.iter_mut().enumerate().max_by(|a, b| differs(a.1).total_cmp(&differs(b.1)));
        base.shown = self.take_median(0);
        if let Some((number, arm)) = most {
            arm.shown = self.take_median(number + 1);
        }
    }

    fn take_median(&mut self, arm: usize) -> Option<ShownRun> {
        let mut of_arm: Vec<_> = self.0.extract_if(.., |one| one.arm == arm).collect();
        of_arm.sort_by(|a, b| a.goodput.total_cmp(&b.goodput));
        let middle = of_arm.len().checked_sub(1)? / 2;
        Some(of_arm.swap_remove(middle).run)
    }
}

/// A run over time, if the receiver of its main direction kept samples.
fn shown(block: u32, record: &Record) -> Option<ShownRun> {
    let receiver = match record.verdict.sender {
        EndName::Near => &record.ends.far,
        EndName::Far => &record.ends.near,
    };
    let samples = &receiver.value()?.samples;
    let step = samples.len().div_ceil(MAX_MOMENTS).max(1);
    // The last one has what the run received in all.
    let kept = samples.iter().rev().step_by(step);
    let mut received: Vec<_> = kept
        .map(|sample| ReceivedBy { at_s: sample.at_s, bytes: Bytes(sample.received_bytes) })
        .collect();
    received.reverse();
    let slices = record.verdict.account.value().map_or_else(Vec::new, |held| held.slices.clone());
    (received.len() > 1).then_some(ShownRun { block, received, slices })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Judgement;

    fn candidate(arm: usize, goodput: f64) -> Candidate {
        let run = ShownRun { block: goodput as u32, received: Vec::new(), slices: Vec::new() };
        Candidate { arm, goodput, run }
    }

    #[test]
    fn the_baseline_and_the_arm_that_differs_most_show_their_median_run() {
        let arm = |value: &str, percent: f64| {
            let effect = goodput_model::Effect {
                percent,
                low_percent: percent,
                high_percent: percent,
                confidence_percent: 95.0,
                n: 3,
                adjusted_for: Vec::new(),
                judgement: Judgement::Better,
            };
            ArmResult { goodput: Some(effect), ..ArmResult::new(vec![value.into()]) }
        };
        let base = ArmResult::new(vec!["1".into()]);
        let arms = vec![base, arm("2", 5.0), arm("3", -40.0), arm("4", 7.0)];
        let mut comparison = Comparison::new(Vec::new(), arms);
        let rates = [(0, 9.0), (0, 7.0), (0, 8.0), (1, 1.0), (2, 5.0), (2, 4.0), (3, 2.0)];
        let runs = ShownRuns(rates.map(|(arm, rate)| candidate(arm, rate)).into());
        runs.place(&mut comparison);
        let blocks = comparison.arms.iter().map(|arm| arm.shown.as_ref().map(|run| run.block));
        assert_eq!(blocks.collect::<Vec<_>>(), [Some(8), None, Some(4), None]);
    }

    #[test]
    fn a_comparison_without_samples_shows_none() {
        let arms = ["1", "2"].map(|value| ArmResult::new(vec![value.into()])).into();
        let mut comparison = Comparison::new(Vec::new(), arms);
        ShownRuns::default().place(&mut comparison);
        assert!(comparison.arms.iter().all(|arm| arm.shown.is_none()));
    }

    #[test]
    fn a_long_run_keeps_its_last_moment() {
        let example = include_str!("../../../../charts/tests/records/window.json");
        let mut record: Record = serde_json::from_str(example).unwrap();
        let goodput_model::Known::Value(far) = &mut record.ends.far else { panic!("it reported") };
        let last = far.samples.last().unwrap().clone();
        far.samples = (0..1001_u32)
            .map(|number| goodput_model::Sample {
                at_s: f64::from(number),
                received_bytes: number.into(),
                ..last.clone()
            })
            .collect();
        let run = shown(3, &record).unwrap();
        assert!(run.received.len() <= MAX_MOMENTS, "{}", run.received.len());
        assert_eq!(run.received.last().unwrap().bytes, Bytes(1000));
        assert_eq!(run.block, 3);
    }
}
