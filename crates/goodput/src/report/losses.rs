//! Losses and their explanation, for readers who want more than the verdict.

use goodput_model::{Loss, LossCandidate, LossParameter};

/// `116 of 35585 segments: chance, in runs; lost 0.33 % (0.20 to 0.50), …`; nothing if none was lost or late.
pub fn lines(loss: &Loss) -> Vec<(&'static str, String)> {
    if loss.lost_segments == 0 && loss.candidates.is_empty() {
        return Vec::new();
    }
    let explained = match loss.explanation.get() {
        Ok(model) => model.to_string(),
        Err(why) => why.to_string(),
    };
    let parameters =
        loss.explanation.value().and_then(|model| of(loss, |one| one.model == *model)).into_iter();
    let parts = parameters.flat_map(|one| &one.parameters).map(parameter);
    let lost = format!("{} of {} segments: {explained}", loss.lost_segments, loss.sent_segments);
    vec![("lost", [lost].into_iter().chain(parts).collect::<Vec<_>>().join("; "))]
}

fn of(loss: &Loss, is_it: impl Fn(&LossCandidate) -> bool) -> Option<&LossCandidate> {
    loss.candidates.iter().find(|one| is_it(one))
}

/// A name ends in its unit: `queue_s`, `lost_share`, `rate_segments_per_s`.
fn parameter(of: &LossParameter) -> String {
    const UNITS: [(&str, &str, f64); 4] = [
        ("_segments_per_s", " segments/s", 1.0),
        ("_segments", " segments", 1.0),
        ("_share", " %", 100.0),
        ("_s", " ms", 1e3),
    ];
    let of_unit = |(suffix, unit, scale)| Some((of.name.strip_suffix(suffix)?, unit, scale));
    let (name, unit, scale) = UNITS.into_iter().find_map(of_unit).unwrap_or((&of.name, "", 1.0));
    let [value, least, most] = [of.value, of.least, of.most].map(|number| short(number * scale));
    format!("{name} {value}{unit} ({least} to {most})")
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size => format!("{value:.*}", (2 - size.log10().floor() as i32).max(0) as usize),
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{Known, LossModel};

    use super::*;

    #[test]
    fn the_explanation_has_its_numbers_and_units() {
        let share = LossParameter {
            name: "lost_share".into(),
            value: 0.003_26,
            least: 0.002,
            most: 0.004_97,
        };
        let mut loss = Loss {
            sent_segments: 35_585,
            lost_segments: 116,
            repeated_segments: 120,
            needless_segments: 4,
            late_segments: 0,
            explanation: Known::Value(LossModel::Random),
            candidates: vec![LossCandidate {
                model: LossModel::Random,
                behind: 0.0,
                parameters: vec![share],
            }],
        };
        let expected = "116 of 35585 segments: chance; lost 0.326 % (0.200 to 0.497)";
        assert_eq!(lines(&loss), [("lost", expected.to_owned())]);
        loss.explanation = Known::missing("too little was lost");
        assert_eq!(lines(&loss)[0].1, "116 of 35585 segments: too little was lost");
        (loss.lost_segments, loss.candidates) = (0, Vec::new());
        assert_eq!(lines(&loss), []);
    }
}
