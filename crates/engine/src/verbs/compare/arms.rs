//! The arms of a comparison: every combination of the settings' values, or one change at a time.

use goodput_model::SettingRef;

/// One setting and the values to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// The setting.
    pub setting: SettingRef,
    /// Its values; the first is the baseline.
    pub values: Vec<String>,
}

/// One combination of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm(pub Vec<(SettingRef, String)>);

impl Arm {
    /// The settings, in their order.
    pub fn settings(&self) -> Vec<SettingRef> {
        self.0.iter().map(|(setting, _)| setting.clone()).collect()
    }

    /// The values, in the order of the settings.
    pub fn values(&self) -> Vec<String> {
        self.0.iter().map(|(_, value)| value.clone()).collect()
    }
}

/// Every combination; the first arm has the first value of each.
pub fn factorial(factors: &[Factor]) -> Vec<Arm> {
    let mut arms = vec![Vec::new()];
    for factor in factors {
        let extended = arms.iter().flat_map(|arm: &Vec<_>| {
            factor.values.iter().map(move |value| {
                let mut longer = arm.clone();
                longer.push((factor.setting.clone(), value.clone()));
                longer
            })
        });
        arms = extended.collect();
    }
    arms.into_iter().map(Arm).collect()
}

/// The baseline, and each other value of each setting, with the other settings as in the baseline.
pub fn one_at_a_time(factors: &[Factor]) -> Vec<Arm> {
    let first = |factor: &Factor| Some((factor.setting.clone(), factor.values.first()?.clone()));
    let baseline: Vec<_> = factors.iter().filter_map(first).collect();
    let changed = factors.iter().enumerate().flat_map(|(place, factor)| {
        let baseline = &baseline;
        factor.values.iter().skip(1).map(move |value| {
            let mut arm = baseline.clone();
            arm[place].1.clone_from(value);
            Arm(arm)
        })
    });
    let changed: Vec<Arm> = changed.collect();
    std::iter::once(Arm(baseline)).chain(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_changes_one() {
        let factor = |name: &str, values: &[&str]| Factor {
            setting: name.parse().unwrap(),
            values: values.iter().map(|v| (*v).into()).collect(),
        };
        let factors =
            [factor("mover", &["copy", "sendfile"]), factor("chunk", &["1K", "2K", "4K"])];
        let values: Vec<_> =
            one_at_a_time(&factors).iter().map(|arm| arm.values().join(" ")).collect();
        assert_eq!(values, ["copy 1K", "sendfile 1K", "copy 2K", "copy 4K"]);
    }

    #[test]
    fn two_settings_make_the_full_factorial_with_the_baseline_first() {
        let factor = |name: &str, values: &[&str]| Factor {
            setting: name.parse().unwrap(),
            values: values.iter().map(|v| (*v).into()).collect(),
        };
        let arms =
            factorial(&[factor("mover", &["copy", "sendfile"]), factor("chunk", &["1K", "2K"])]);
        let values: Vec<_> = arms.iter().map(|arm| arm.values().join(" ")).collect();
        assert_eq!(values, ["copy 1K", "copy 2K", "sendfile 1K", "sendfile 2K"]);
    }
}
