//! Effects of combined settings: main effects, and which values change the effects of others.

use goodput_model::{FactorEffect, Response, SettingRef};

use crate::design::Design;
use crate::judge::{Criterion, effect};
use crate::looks::{Looks, Shown};
use crate::pairs::Runs;
use crate::responses::{for_ratio, preference};

/// A comparison's arms as a table of the settings' values.
pub(crate) struct Cells<'a> {
    pub(crate) settings: &'a [SettingRef],
    /// One list per arm, in the order of the settings, the baseline first.
    pub(crate) values: &'a [Vec<String>],
}

/// One contrast, not yet judged.
struct Contrast {
    change: String,
    beside: Option<String>,
    /// Arms and weights of the effect, and, with another value, of the effect without and with this value.
    cells: [Vec<(usize, f64)>; 3],
}

/// Every main effect and every interaction of two values, by the design's first response. Empty if only one setting
/// was compared, or if not all combinations were run.
///
/// Each is an effect within blocks like an arm's. All share the 5 % (Bonferroni), at the level that the looks have for
/// their number of blocks.
pub(crate) fn factors(design: &Design, runs: &Runs, cells: &Cells) -> Vec<FactorEffect> {
    let contrasts = cells.contrasts();
    let response = design.responses.first().copied().unwrap_or(Response::Throughput);
    let criterion =
        Criterion { threshold_percent: design.threshold_percent, good: preference(response) };
    let looks = Looks::for_arms(contrasts.len() + 1);
    let copies = runs.copies(for_ratio(response));
    let judged = |cells: &Vec<(usize, f64)>| {
        let pairs = runs.contrast(cells, for_ratio(response));
        effect(&pairs, copies, looks.levels(pairs.len() as u32, Shown::default()), criterion)
    };
    let one = |contrast: Contrast| {
        let [all, without, with] = &contrast.cells;
        let beside = |cells| contrast.beside.as_ref().and_then(|_| judged(cells));
        Some(FactorEffect {
            effect: judged(all)?,
            without: beside(without),
            with: beside(with),
            change: contrast.change,
            beside: contrast.beside.clone(),
        })
    };
    contrasts.into_iter().filter_map(one).collect()
}

impl Cells<'_> {
    fn contrasts(&self) -> Vec<Contrast> {
        let changes: Vec<(usize, &String)> =
            (0..self.settings.len()).flat_map(|setting| self.changes(setting)).collect();
        if self.settings.len() < 2 {
            return Vec::new();
        }
        let main = changes.iter().filter_map(|change| self.main(*change));
        let pairs = changes.iter().enumerate().flat_map(|(number, first)| {
            changes[number + 1..].iter().map(move |second| (*first, *second))
        });
        let together = pairs
            .filter(|(first, second)| first.0 != second.0)
            .filter_map(|(first, second)| self.together(first, second));
        main.chain(together).collect()
    }

    /// The values of a setting that are not the baseline's.
    fn changes(&self, setting: usize) -> Vec<(usize, &String)> {
        let mut changes: Vec<(usize, &String)> = Vec::new();
        let base = self.values.first().and_then(|values| values.get(setting));
        for value in self.values.iter().filter_map(|values| values.get(setting)) {
            let is_known = changes.iter().any(|(_, known)| *known == value);
            if Some(value) != base && !is_known {
                changes.push((setting, value));
            }
        }
        changes
    }

    /// The arm like `arm` but for these values.
    fn with(&self, arm: usize, changed: &[(usize, &String)]) -> Option<usize> {
        let mut wanted = self.values.get(arm)?.clone();
        for (setting, value) in changed {
            *wanted.get_mut(*setting)? = (*value).clone();
        }
        self.values.iter().position(|values| *values == wanted)
    }

    /// The mean over every combination of the other settings; all must be there.
    fn main(&self, change: (usize, &String)) -> Option<Contrast> {
        let base = self.values.first()?.get(change.0)?;
        let before: Vec<usize> = (0..self.values.len())
            .filter(|arm| self.values[*arm].get(change.0) == Some(base))
            .collect();
        let after: Vec<usize> =
            before.iter().map(|arm| self.with(*arm, &[change])).collect::<Option<_>>()?;
        let weight = 1.0 / before.len() as f64;
        let cells = after.into_iter().map(|arm| (arm, weight));
        let cells = cells.chain(before.into_iter().map(|arm| (arm, -weight))).collect();
        Some(Contrast { change: self.name(change), beside: None, cells: [cells, vec![], vec![]] })
    }

    /// Both values, the other settings as in the baseline.
    fn together(&self, first: (usize, &String), second: (usize, &String)) -> Option<Contrast> {
        let (one, other) = (self.with(0, &[first])?, self.with(0, &[second])?);
        let both = self.with(0, &[first, second])?;
        let cells = [
            vec![(both, 1.0), (other, -1.0), (one, -1.0), (0, 1.0)],
            vec![(one, 1.0), (0, -1.0)],
            vec![(both, 1.0), (other, -1.0)],
        ];
        Some(Contrast { change: self.name(first), beside: Some(self.name(second)), cells })
    }

    fn name(&self, (setting, value): (usize, &String)) -> String {
        format!("{}={value}", self.settings[setting])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::tests::trial;
    use goodput_model::{Judgement, Trial};

    fn judged(goodput: impl Fn(usize) -> f64, arms: &[[&str; 2]]) -> Vec<FactorEffect> {
        let run = |block: u32, arm| {
            trial(
                block,
                arm,
                goodput(arm) * (1.0 + 0.001 * f64::from(block * (arm as u32 + 1) % 5)),
            )
        };
        let trials: Vec<Trial> = (1..=8)
            .flat_map(|block| (0..arms.len()).map(move |arm| (block, arm)))
            .map(|(b, a)| run(b, a))
            .collect();
        let settings =
            ["qdisc.tbf.burst@eth3", "offload.tso@eth3"].map(|name| name.parse().unwrap());
        let values: Vec<Vec<String>> =
            arms.iter().map(|values| values.map(Into::into).to_vec()).collect();
        let design = Design { arms: arms.len(), ..Design::default() };
        let cells = Cells { settings: &settings, values: &values };
        factors(&design, &Runs::of(&trials, arms.len()), &cells)
    }

    const ALL: [[&str; 2]; 4] = [["1K", "on"], ["1K", "off"], ["9K", "on"], ["9K", "off"]];

    #[test]
    fn a_value_that_matters_only_with_another_is_found() {
        // The larger burst helps only with TSO on.
        let found = judged(|arm| [100.0, 160.0, 160.0, 160.0][arm], &ALL);
        let names: Vec<_> =
            found.iter().map(|one| (one.change.as_str(), one.beside.as_deref())).collect();
        let (burst, tso) = ("qdisc.tbf.burst@eth3=9K", "offload.tso@eth3=off");
        assert_eq!(names, [(burst, None), (tso, None), (burst, Some(tso))]);
        assert!((found[0].effect.percent - 26.5).abs() < 1.0, "{found:?}");
        let both = &found[2];
        assert_eq!(both.effect.judgement, Judgement::Worse);
        assert_eq!(both.without.as_ref().unwrap().judgement, Judgement::Better);
        assert_eq!(both.with.as_ref().unwrap().judgement, Judgement::NoDifference);
    }

    #[test]
    fn values_that_multiply_do_not_interact() {
        let found = judged(|arm| [100.0, 120.0, 150.0, 180.0][arm], &ALL);
        assert_eq!(found[2].effect.judgement, Judgement::NoDifference);
    }

    #[test]
    fn one_at_a_time_has_neither() {
        assert!(judged(|_| 100.0, &ALL[..3]).is_empty());
    }
}
