//! A quantity of which less is better: a difference is then so much less or more of it, in plain words.

use crate::difference::Difference;

/// What there should be less of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burden {
    noun: &'static str,
    /// `less` of what is measured, `fewer` of what is counted.
    less: &'static str,
}

impl Burden {
    /// Something that is measured: `less delay`.
    #[must_use]
    pub const fn less(noun: &'static str) -> Self {
        Self { noun, less: "less" }
    }

    /// Something that is counted: `fewer drops`.
    #[must_use]
    pub const fn fewer(noun: &'static str) -> Self {
        Self { noun, less: "fewer" }
    }

    /// What it is.
    #[must_use]
    pub fn noun(self) -> &'static str {
        self.noun
    }

    /// `82.9 % less delay`, `4.0 % more delay`, `12.0 times the delay` or `no change in delay`.
    #[must_use]
    pub fn difference(self, difference: Difference) -> String {
        let noun = self.noun;
        match difference {
            _ if difference.is_factor() => format!("{difference} the {noun}"),
            _ if amount(difference) == ZERO => format!("no change in {noun}"),
            _ => format!("{} % {} {noun}", amount(difference), self.way(difference)),
        }
    }

    /// `80.1 to 84.2 % less`, or `3.2 % less to 1.5 % more`.
    pub(crate) fn interval(self, low: Difference, high: Difference) -> String {
        let [least, most] = [amount(low), amount(high)];
        match (low.0 < 0.0 && least != ZERO, high.0 > 0.0 && most != ZERO) {
            (true, false) => format!("{most} to {least} % {}", self.less),
            (true, true) => format!("{least} % {} to {most} % more", self.less),
            (false, _) => format!("{least} to {most} % more"),
        }
    }

    fn way(self, difference: Difference) -> &'static str {
        if difference.0 < 0.0 { self.less } else { "more" }
    }
}

const ZERO: &str = "0.0";

/// The percentage without its sign.
fn amount(Difference(percent): Difference) -> String {
    format!("{:.1}", percent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Burden = Burden::less("delay");

    #[test]
    fn a_difference_is_so_much_less_or_more() {
        let said = [-82.94, 4.0, 0.01, 1100.0].map(|percent| DELAY.difference(Difference(percent)));
        let plain =
            ["82.9 % less delay", "4.0 % more delay", "no change in delay", "12.0 times the delay"];
        assert_eq!(said, plain);
        assert_eq!(Burden::fewer("drops").difference(Difference(-5.0)), "5.0 % fewer drops");
    }

    #[test]
    fn an_interval_begins_with_the_smaller_change() {
        let said = [(-84.2, -80.1), (-3.2, 1.5), (1.0, 2.5), (-2.0, 0.01), (-0.01, 2.0)];
        let said = said.map(|(low, high)| DELAY.interval(Difference(low), Difference(high)));
        let plain = [
            "80.1 to 84.2 % less",
            "3.2 % less to 1.5 % more",
            "1.0 to 2.5 % more",
            "0.0 to 2.0 % less",
            "0.0 to 2.0 % more",
        ];
        assert_eq!(said, plain);
    }
}
