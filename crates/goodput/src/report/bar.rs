//! The flows' time as a bar whose parts add up to 100 %.

use goodput_model::Account;

/// Cells of the bar.
const WIDTH_CHARS: usize = 40;
/// What the parts are drawn with, the largest first; all further parts share the last.
const SIGNS: [char; 5] = ['█', '▓', '▒', '░', '·'];
/// Percentage below which a part is left out of the legend.
const MIN_NAMED_PERCENT: f64 = 0.5;

/// The parts of an account, the largest first, and what is unknown last: name and share, character, percentage.
fn parts(account: &Account) -> Vec<(String, char, f64)> {
    let percent = |seconds: f64| seconds / account.flow_seconds * 100.0;
    let named = account.parts.iter().map(|part| {
        let text = format!("{} {}", part.limiter.at(part.end), account.share_text(part));
        (text, percent(part.seconds))
    });
    let signs = SIGNS.into_iter().chain(std::iter::repeat(SIGNS[SIGNS.len() - 1]));
    let parts = named.zip(signs).map(|((text, percent), sign)| (text, sign, percent));
    let unknown = percent(account.unknown_s);
    parts.chain([(format!("unknown {unknown:.0} %"), ' ', unknown)]).collect()
}

/// The bar and its legend: `████████▓▓ path rate 82 % (74 to 90 %)  receive window (far) 18 % (10 to 26 %)`.
pub fn bar(account: &Account) -> String {
    let parts = parts(account);
    let mut cells = String::new();
    let mut drawn = 0;
    let mut sum = 0.0;
    for (_, sign, percent) in &parts {
        sum += percent;
        let upto = ((sum / 100.0 * WIDTH_CHARS as f64).round() as usize).min(WIDTH_CHARS);
        cells.extend(std::iter::repeat_n(*sign, upto.saturating_sub(drawn)));
        drawn = drawn.max(upto);
    }
    let legend = parts.iter().filter(|part| part.2 >= MIN_NAMED_PERCENT);
    let legend: Vec<_> = legend.map(|(text, sign, _)| format!("{sign} {text}")).collect();
    format!("{cells}  {}", legend.join("   "))
}

#[cfg(test)]
mod tests {
    use goodput_model::{AccountPart, Limiter, Place};

    use super::*;

    #[test]
    fn the_bar_is_full_and_the_largest_part_comes_first() {
        let part =
            |limiter, end, seconds, between_s| AccountPart { limiter, end, seconds, between_s };
        let account = Account {
            flows: 1,
            flow_seconds: 10.0,
            parts: vec![
                part(Limiter::ReceiveWindow, Place::Far, 9.6, Some([8.8, 10.0])),
                part(Limiter::PathRate, Place::Path, 0.37, None),
                part(Limiter::Host, Place::Near, 0.03, None),
            ],
            unknown_s: 0.0,
            timeline: Vec::new(),
            slices: Vec::new(),
        };
        let bar = bar(&account);
        let cells = bar.split("  ").next().unwrap();
        assert_eq!(cells.chars().count(), WIDTH_CHARS);
        assert!(cells.starts_with('█'));
        let legend = "█ receive window (far) 96 % (88 to 100 %)   ▓ path rate 4 %";
        assert!(bar.ends_with(legend), "{bar}");
    }
}
