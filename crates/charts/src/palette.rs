//! Colours that a reader with any colour vision can distinguish, on light and on dark paper.

use goodput_model::Limiter;
use plotters::style::RGBColor;

/// Text and axes. The style below turns it light on dark paper, so nothing else may have this colour.
pub const INK: RGBColor = RGBColor(1, 2, 3);

/// Lines of the grid, and what is unknown.
pub const GREY: RGBColor = RGBColor(136, 136, 136);

/// Goodput, and other lines that come first.
pub const BLUE: RGBColor = RGBColor(0, 114, 178);

/// What is compared with it.
pub const ORANGE: RGBColor = RGBColor(213, 94, 0);

/// A third line.
pub const GREEN: RGBColor = RGBColor(0, 158, 115);

/// What could be at most, in a chart that has all the colours of limiters.
pub const BROWN: RGBColor = RGBColor(146, 98, 52);

/// Lines of a kind, such as flows. M. Okabe and K. Ito, "Color Universal Design", 2008; their black and yellow are left
/// out, as each is lost on one of the papers.
pub const LINES: [RGBColor; 6] =
    [RGBColor(86, 180, 233), RGBColor(230, 159, 0), GREEN, RGBColor(204, 121, 167), ORANGE, BLUE];

/// Arms of a comparison, without the baseline. An arm has its colour in every chart, and one of these charts has the limiters
/// beside the arms: so none of these is the colour of a limiter, nor that of a goodput.
pub const ARMS: [RGBColor; 6] = [
    RGBColor(200, 30, 170),
    RGBColor(0, 175, 200),
    BROWN,
    RGBColor(240, 100, 120),
    RGBColor(90, 160, 50),
    RGBColor(60, 80, 210),
];

/// The colour of an arm of a comparison; the baseline is grey.
pub fn of_arm(arm: usize) -> RGBColor {
    if arm == 0 { GREY } else { ARMS[(arm - 1) % ARMS.len()] }
}

macro_rules! rules {
    () => {
        ":root{color-scheme:light dark}@media print{:root{color-scheme:only light}}text{font-family:system-ui,sans-serif}@media screen and (prefers-color-scheme:dark){\
[fill=\"#010203\"]{fill:#e8e8e8}[stroke=\"#010203\"]{stroke:#e8e8e8}}"
    };
}

/// Style of every picture: ink is light on a dark screen. What is printed is on white paper.
pub const RULES: &str = rules!();

/// The same, as a picture that stands alone has it, with its own paper: the page around it may be dark where this
/// reader's other pages are light.
pub const STYLE: &str = concat!(
    "<style>",
    rules!(),
    "svg{background:#fff}@media screen and (prefers-color-scheme:dark){svg{background:#161616}}</style>"
);

/// The colour of what limits.
pub fn limiter(limiter: Limiter) -> RGBColor {
    match limiter {
        Limiter::Application => RGBColor(204, 121, 167),
        Limiter::SendBuffer => RGBColor(230, 159, 0),
        Limiter::ReceiveWindow => ORANGE,
        // Not blue: the band is below the blue line of the goodput.
        Limiter::CongestionWindow => RGBColor(148, 148, 30),
        Limiter::Recovery => RGBColor(160, 30, 60),
        Limiter::PathRate => GREEN,
        Limiter::Startup => RGBColor(86, 180, 233),
        Limiter::Host => RGBColor(120, 94, 240),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(RGBColor(r, g, b): RGBColor, RGBColor(x, y, z): RGBColor) -> f64 {
        [(r, x), (g, y), (b, z)]
            .map(|(one, other)| (f64::from(one) - f64::from(other)).powi(2))
            .iter()
            .sum::<f64>()
            .sqrt()
    }

    /// Nearer ones would be taken for each other.
    #[test]
    fn an_arm_looks_like_no_limiter_no_goodput_and_no_other_arm() {
        const APART: f64 = 50.0;
        let others = || Limiter::ALL.into_iter().map(limiter).chain([BLUE, INK]);
        for arm in 0..=ARMS.len() {
            for other in others().chain((0..arm).map(of_arm)) {
                let apart = distance(of_arm(arm), other);
                assert!(apart > APART, "{arm}: {:?} and {other:?}: {apart:.0}", of_arm(arm));
            }
        }
    }
}
