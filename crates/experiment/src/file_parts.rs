//! Which part of a file transfer is slowest: every part alone is an arm, and the slowest is the baseline.

use goodput_model::{
    BitRate, Comparison, FilePart, FileParts, FilesAlone, Judgement, Known, Missing, PartRate,
    Trial, median,
};

use crate::analyse::{ArmAnalysis, Settled, analyse};
use crate::design::Design;

/// Arm of `comparison` whose payload is memory: the network alone.
const MEMORY_ARM: usize = 0;
/// Arm of `comparison` that moves the files.
const FILES_ARM: usize = 1;
/// The single parts, without the whole transfer.
const PARTS_ALONE: [FilePart; 3] = [FilePart::Source, FilePart::Network, FilePart::Sink];

/// What a comparison of memory (its baseline) and files shows about the parts. The rates of the files alone come from
/// the runs before which they were measured, so all parts of a block belong together.
pub fn file_parts(comparison: &Comparison) -> FileParts {
    let mut parts = slowest_first(&comparison.trials);
    parts.push(FilePart::Together);
    let judged = judge(comparison, &parts);
    match PARTS_ALONE.into_iter().find_map(|part| unrated(comparison, part)) {
        Some(why) if parts.len() > 1 => FileParts { limit: Known::Missing(why), ..judged },
        _ => judged,
    }
}

/// How far the question of the slowest part is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartsStanding {
    /// One part is slower than all others, or two of the slowest are equally fast.
    Decided,
    /// Further runs may answer the question.
    Open,
    /// Further runs won't help: each part has had all its looks.
    Undecidable,
}

/// How far the runs of a design answer the question of the slowest part; `None` if no run has rated two parts.
pub(crate) fn parts_standing(design: &Design, trials: &[Trial]) -> Option<PartsStanding> {
    let parts = slowest_first(trials);
    let analysed = analysed(design.threshold_percent, trials, &parts);
    let others = analysed.get(1..).filter(|others| !others.is_empty())?;
    let is = |arm: &ArmAnalysis, judgement: Judgement| {
        let judged = arm.goodput.as_ref().map(|effect| effect.judgement);
        arm.settled == Some(Settled::Decided) && judged == Some(judgement)
    };
    let is_slowest = others.iter().all(|arm| is(arm, Judgement::Better));
    Some(match () {
        () if is_slowest => PartsStanding::Decided,
        () if others.iter().any(|arm| is(arm, Judgement::NoDifference)) => PartsStanding::Decided,
        () if others.iter().all(|arm| arm.settled.is_some()) => PartsStanding::Undecidable,
        () => PartsStanding::Open,
    })
}

/// The single parts that runs have rated, the slowest first.
fn slowest_first(trials: &[Trial]) -> Vec<FilePart> {
    let (mut parts, mut slowest) = (Vec::new(), None);
    for part in PARTS_ALONE {
        let counted = trials.iter().filter(|trial| trial.discarded.is_none());
        let rates: Vec<_> = counted.filter_map(|t| rate(t, part)).collect();
        let Some(middle) = median(rates) else { continue };
        if slowest.is_none_or(|(_, least)| middle < least) {
            slowest = Some((parts.len(), middle));
        }
        parts.push(part);
    }
    if let Some((place, _)) = slowest {
        parts.swap(0, place);
    }
    parts
}

/// Why no run could rate a part of the transfer, if so: this part may be the slowest.
fn unrated(comparison: &Comparison, part: FilePart) -> Option<Missing> {
    if comparison.trials.iter().any(|trial| rate(trial, part).is_some()) {
        return None;
    }
    let why = |known: &Known<BitRate>| known.get().err();
    let reason = comparison.trials.iter().find_map(|trial| match part {
        FilePart::Source => why(trial.files_alone.as_ref()?.source_bits_per_s.as_ref()?),
        FilePart::Sink => why(trial.files_alone.as_ref()?.sink_bits_per_s.as_ref()?),
        FilePart::Network if trial.arm == MEMORY_ARM => why(&trial.goodput_bits_per_s),
        FilePart::Network | FilePart::Together => None,
    })?;
    let name = match part {
        FilePart::Source => "source",
        FilePart::Sink => "sink",
        FilePart::Network | FilePart::Together => "network",
    };
    Some(Missing::because(format!("no run could rate the {name} alone ({reason})")))
}

/// Rate of a part in a run that reports it, bits per second.
fn rate(trial: &Trial, part: FilePart) -> Option<f64> {
    let alone = trial.files_alone.as_ref();
    let alone = |read: fn(&FilesAlone) -> Option<&Known<BitRate>>| {
        alone.and_then(read).and_then(|rate| rate.value().copied())
    };
    let own = |arm: usize| trial.goodput_bits_per_s.value().copied().filter(|_| trial.arm == arm);
    let rate = match part {
        FilePart::Source => alone(|alone| alone.source_bits_per_s.as_ref()),
        FilePart::Sink => alone(|alone| alone.sink_bits_per_s.as_ref()),
        FilePart::Network => own(MEMORY_ARM),
        FilePart::Together => own(FILES_ARM),
    };
    rate.map(|rate| rate.0)
}

/// Every part against the first, each as a comparison of two arms. One part is claimed to limit only if all the others
/// are shown to be faster. A claim for which every test must agree needs no correction for their number
/// (intersection-union test; Berger 1982).
fn judge(comparison: &Comparison, parts: &[FilePart]) -> FileParts {
    let analysed = analysed(comparison.threshold_percent, &comparison.trials, parts);
    let results: Vec<_> = parts
        .iter()
        .enumerate()
        .zip(&analysed)
        .map(|((place, part), analysis)| PartRate {
            part: *part,
            rate_bits_per_s: analysis.goodput_bits_per_s.clone(),
            against_slowest: analysis.goodput.clone().filter(|_| place > 0),
            without_it_bits_per_s: without(*part, parts, &analysed),
        })
        .collect();
    let n = analysed.iter().map(|analysis| analysis.n).min().unwrap_or(0);
    let limit = limit(&results).into();
    FileParts { parts: results, n, limit }
}

/// Every part against the first.
fn analysed(threshold_percent: f64, trials: &[Trial], parts: &[FilePart]) -> Vec<ArmAnalysis> {
    let design = Design { arms: 2, threshold_percent, ..Design::default() };
    let against_first = |part: FilePart| {
        let pair = [parts[0], part];
        let trials: Vec<_> = trials.iter().flat_map(|t| as_parts(t, &pair)).collect();
        analyse(&design, &trials).into_iter().nth(1)
    };
    parts.iter().filter_map(|part| against_first(*part)).collect()
}

/// One run as runs of the parts that it reports.
fn as_parts(trial: &Trial, parts: &[FilePart]) -> Vec<Trial> {
    let as_part = |(arm, part): (usize, &FilePart)| {
        let goodput_bits_per_s = Known::Value(BitRate(rate(trial, *part)?));
        Some(Trial { arm, goodput_bits_per_s, ..trial.clone() })
    };
    parts.iter().enumerate().filter_map(as_part).collect()
}

/// The slowest of the other parts.
fn without(part: FilePart, parts: &[FilePart], analysed: &[ArmAnalysis]) -> Known<BitRate> {
    if part == FilePart::Together {
        return Known::missing("it is not a part");
    }
    let others = parts.iter().zip(analysed);
    let others = others.filter(|(other, _)| **other != part && **other != FilePart::Together);
    let rates = others.filter_map(|(_, analysis)| analysis.goodput_bits_per_s.value().copied());
    let least = rates.reduce(|a, b| if b.0 < a.0 { b } else { a });
    least.map_or(Known::missing("no other part was measured"), Known::Value)
}

/// The first part, if every other part is shown to be faster.
fn limit(parts: &[PartRate]) -> Result<FilePart, Missing> {
    let alone: Vec<_> = parts.iter().filter(|part| part.part != FilePart::Together).collect();
    let [first, others @ ..] = &alone[..] else {
        return Err(Missing::because("nothing was measured"));
    };
    if others.is_empty() {
        return Err(Missing::because("only one part was measured"));
    }
    let judgement = |part: &&PartRate| part.against_slowest.as_ref().map(|effect| effect.judgement);
    if others.iter().all(|part| judgement(part) == Some(Judgement::Better)) {
        return Ok(first.part);
    }
    let same = others.iter().any(|part| judgement(part) == Some(Judgement::NoDifference));
    Err(Missing::because(match same {
        true => "the slowest two parts are equally fast",
        false => "too few runs, or runs that vary too much",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;

    /// Rates of source, network, sink and the whole transfer, in units of 1 Mbit/s, in ten blocks.
    fn parts(source: f64, network: f64, sink: Option<f64>, together: f64) -> FileParts {
        let blocks = 1..=10;
        let trials = blocks.flat_map(|block| {
            let varied = |rate: f64| rate * 1e6 * (1.0 + 0.002 * f64::from(block % 3));
            let known = |rate: f64| Some(Known::Value(BitRate(varied(rate))));
            let alone = FilesAlone {
                source_bits_per_s: known(source),
                sink_bits_per_s: sink.and_then(known),
            };
            let memory = trial(block, MEMORY_ARM, varied(network));
            let files = trial(block, FILES_ARM, varied(together));
            [memory, Trial { files_alone: Some(alone), ..files }]
        });
        let (settings, values) = (Vec::new(), vec![Vec::new(); 2]);
        let design = Design::default();
        file_parts(&crate::conclude(settings, values, &design, trials.collect(), "enough"))
    }

    fn without(parts: &FileParts, of: FilePart) -> f64 {
        let part = parts.parts.iter().find(|part| part.part == of).unwrap();
        (part.without_it_bits_per_s.get().unwrap().0 / 1e6).round()
    }

    #[test]
    fn the_slowest_part_limits_and_the_next_bounds_what_a_faster_one_brings() {
        let slow_disk = parts(400.0, 940.0, Some(2000.0), 390.0);
        assert_eq!((slow_disk.limit.clone(), slow_disk.n), (Known::Value(FilePart::Source), 10));
        assert_eq!(slow_disk.parts[0].part, FilePart::Source);
        assert!((without(&slow_disk, FilePart::Source) - 940.0).abs() < 5.0, "{slow_disk:?}");
        assert!((without(&slow_disk, FilePart::Network) - 400.0).abs() < 5.0, "{slow_disk:?}");
        let slow_network = parts(4000.0, 94.0, None, 93.0);
        assert_eq!(slow_network.limit, Known::Value(FilePart::Network));
        assert_eq!(slow_network.parts.len(), 3);
        assert_eq!(parts(400.0, 940.0, Some(100.0), 99.0).limit, Known::Value(FilePart::Sink));
    }

    #[test]
    fn a_part_that_no_run_could_rate_may_be_the_slowest() {
        let trials = (1..=10).flat_map(|block| {
            let alone = FilesAlone {
                source_bits_per_s: Some(Known::Value(BitRate(4e9))),
                sink_bits_per_s: Some(Known::missing("the far end does not report it")),
            };
            let files = trial(block, FILES_ARM, 9e7);
            [trial(block, MEMORY_ARM, 9e8), Trial { files_alone: Some(alone), ..files }]
        });
        let values = vec![Vec::new(); 2];
        let design = Design::default();
        let parts =
            file_parts(&crate::conclude(Vec::new(), values, &design, trials.collect(), "enough"));
        let why = parts.limit.get().unwrap_err().to_string();
        assert!(why.contains("the sink alone") && why.contains("the far end"), "{why}");
        assert_eq!(parts.parts.len(), 3, "those that were rated stay");
    }

    #[test]
    fn equal_parts_and_too_few_runs_name_none() {
        let equal = parts(940.0, 940.0, None, 900.0);
        assert!(equal.limit.get().unwrap_err().to_string().contains("equally fast"));
        let none =
            crate::conclude(Vec::new(), Vec::new(), &Design::default(), Vec::new(), "broken");
        assert!(file_parts(&none).limit.get().is_err());
    }
}
