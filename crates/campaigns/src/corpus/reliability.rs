//! How often findings of a probability were right, and the weights behind the probabilities.

use std::fmt::Write;

use goodput_model::Confidence;

use super::fit::Fit;
use super::said::Said;
use crate::wilson;

/// Where the rows of the table begin; the borders of the words are among them.
const BINS: [f64; 8] =
    [0.99, Confidence::MIN_CERTAIN, 0.9, Confidence::MIN_LIKELY, 0.6, 0.4, 0.2, 0.0];

/// A row for each range of probabilities that was said, and the Brier score.
pub fn table(said: &[&Said]) -> String {
    let mut out = String::from("| said | on average | right |\n|---|---|---|\n");
    let upper = [1.0].into_iter().chain(BINS);
    for (lower, upper) in BINS.into_iter().zip(upper) {
        let bin: Vec<_> = said.iter().filter(|one| bin_of(one.probability) == lower).collect();
        if bin.is_empty() {
            continue;
        }
        let mean = bin.iter().map(|one| one.probability).sum::<f64>() / bin.len() as f64;
        let right = wilson::shown(bin.iter().filter(|one| one.is_right).count(), bin.len());
        let (word, [lower, upper, mean]) =
            (Confidence::of(lower), [lower, upper, mean].map(|share| 100.0 * share));
        let _ = writeln!(out, "| {lower:.0} to {upper:.0} %, {word} | {mean:.1} % | {right} |");
    }
    out.push_str(&brier(said));
    out
}

/// The lower border of a probability's bin.
fn bin_of(probability: f64) -> f64 {
    BINS.into_iter().find(|lower| probability >= *lower).unwrap_or_default()
}

/// The Brier score, beside that of one who always says the share that is right.
fn brier(said: &[&Said]) -> String {
    if said.is_empty() {
        return String::new();
    }
    let outcome = |one: &Said| f64::from(u8::from(one.is_right));
    let mean =
        |of: &dyn Fn(&Said) -> f64| said.iter().map(|one| of(one)).sum::<f64>() / said.len() as f64;
    let share = mean(&outcome);
    let score = mean(&|one| (one.probability - outcome(one)).powi(2));
    let constant = share * (1.0 - share);
    format!(
        "\nBrier score of these {} findings (G. W. Brier, 1950; 0 is best): {score:.3}. Saying {:.0} % of every finding, \
         which is the share that is right, gives {constant:.3}.\n",
        said.len(),
        100.0 * share
    )
}

/// The fitted weights.
pub fn weights(fit: &Fit) -> String {
    let mut out = format!(
        "\n## The weights\n\nThe log odds of a finding are the sum of its features, each times its weight \
         (`diagnose/src/probability.rs`). The weights are fitted to the {} findings of {} runs of the part *fitted to*. \
         Each weight has a normal prior with this mean and a standard deviation of {}: a weight with few findings behind it \
         stays near its prior. The first three priors are 99, 90 and 50 %. To know a row of 90 % within 5 % either way takes \
         139 findings. *Left of the prior* is the share of its variance that remains: at 100 %, the findings have said \
         nothing of this weight.\n\n\
         | feature | prior | weight (standard error) | findings | left of the prior |\n|---|---|---|---|---|\n",
        fit.findings, fit.runs, fit.prior_deviation
    );
    for one in &fit.weights {
        let _ = writeln!(
            out,
            "| `{}` | {:.2} | {:.2} ({:.2}) | {} | {:.0} % |",
            one.feature,
            one.prior,
            one.weight,
            one.standard_error,
            one.findings,
            100.0 * (one.standard_error / fit.prior_deviation).powi(2)
        );
    }
    out
}

/// The fitted thresholds.
pub fn thresholds(fit: &Fit) -> String {
    let mut out = String::from(
        "\n## The thresholds\n\nNumbers that are fitted to the same runs, with what stands behind each. A border stays at \
         its prior unless five runs or more of each kind lie apart on one side of it. Other numbers of the rules are constants of the kernel, of a \
         standard or of a paper, beside the code that uses them, or were measured in one lab: those are still to be moved \
         here.\n\n| number | prior | source of the prior | value | behind it |\n|---|---|---|---|---|\n",
    );
    for one in &fit.thresholds {
        let (name, prior, source, value) = (&one.name, one.prior, &one.source, one.value);
        let _ = writeln!(out, "| `{name}` | {prior} | {source} | {value} | {} |", one.behind());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(probability: f64, is_right: bool) -> Said {
        Said { probability, features: Default::default(), is_right }
    }

    #[test]
    fn a_probability_is_in_the_row_of_its_word() {
        let all = [said(0.95, true), said(0.949, false), said(0.1, false)];
        let table = table(&all.iter().collect::<Vec<_>>());
        for row in
            ["| 95 to 99 %, certain | 95.0 % | 1 of 1 ", "| 90 to 95 %, likely | 94.9 % | 0 of 1 "]
        {
            assert!(table.contains(row), "{row} in {table}");
        }
        assert!(
            table.contains("| 0 to 20 %, possible |") && !table.contains("80 to 90 %"),
            "{table}"
        );
    }

    #[test]
    fn the_brier_score_is_the_mean_squared_error() {
        let all = [said(0.9, true), said(0.5, false)];
        let text = brier(&all.iter().collect::<Vec<_>>());
        assert!(
            text.contains(": 0.130.") && text.contains("50 %") && text.contains("gives 0.250"),
            "{text}"
        );
    }
}
