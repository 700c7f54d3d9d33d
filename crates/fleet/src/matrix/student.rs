//! Student's distribution: how far an effect is from nothing, if its noise was estimated from few values.

/// With more degrees of freedom the quantiles hardly change, and stay on the safe side.
const MOST_DOF: usize = 300;
/// No quantile that is asked for is farther out.
const MOST: f64 = 1e9;
/// Halvings of the range in which a quantile lies.
const HALVINGS: usize = 100;

/// The value that a variable exceeds in either direction with this probability, above 0 and below 1; at least one degree
/// of freedom.
pub(super) fn two_sided_quantile(probability: f64, dof: usize) -> f64 {
    let dof = dof.clamp(1, MOST_DOF);
    let (mut low, mut high) = (0.0, MOST);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if 1.0 - within(middle, dof) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Probability of a value between -`t` and `t`: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn within(t: f64, dof: usize) -> f64 {
    let angle = (t / (dof as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = dof % 2 == 1;
    let (mut power, mut term) = if is_odd { (1, cos) } else { (0, 1.0) };
    let mut sum = 0.0;
    while power + 2 <= dof {
        sum += term;
        term *= cos * cos * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    if is_odd { std::f64::consts::FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the tables in Abramowitz and Stegun, 26.10.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, dof, expected) in [
            (0.05, 1, 12.706),
            (0.05, 2, 4.303),
            (0.05, 10, 2.228),
            (0.01, 5, 4.032),
            (0.01, 30, 2.750),
            (0.001, 120, 3.373),
            (0.05, 1_000_000, 1.968),
        ] {
            let found = two_sided_quantile(probability, dof);
            assert!((found - expected).abs() < 1e-3, "{probability} {dof}: {found}");
        }
    }
}
