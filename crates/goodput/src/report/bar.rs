//! The flows' time as a bar whose parts add up to 100 %.

use goodput_model::Account;

/// Cells of the bar.
const WIDTH_CHARS: usize = 40;
/// What the parts are drawn with, the largest first; all further parts share the last.
const SIGNS: [char; 5] = ['█', '▓', '▒', '░', '·'];
/// Percentage below which a part is left out of the legend.
const MIN_NAMED_PERCENT: f64 = 0.5;

/// The parts of an account, the largest first, and what is unknown last: name, character, percentage.
fn parts(account: &Account) -> Vec<(String, char, f64)> {
    let percent = |seconds: f64| seconds / account.flow_seconds * 100.0;
    let named = account.parts.iter().map(|part| (part.limiter.at(part.end), percent(part.seconds)));
    let signs = SIGNS.into_iter().chain(std::iter::repeat(SIGNS[SIGNS.len() - 1]));
    let parts = named.zip(signs).map(|((name, percent), sign)| (name, sign, percent));
    parts.chain([("unknown".to_owned(), ' ', percent(account.unknown_s))]).collect()
}

/// The bar and its legend: `████████▓▓ path rate 82 %  receive window (far) 18 %`.
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
    let legend: Vec<_> =
        legend.map(|(name, sign, percent)| format!("{sign} {name} {percent:.0} %")).collect();
    format!("{cells}  {}", legend.join("   "))
}

#[cfg(test)]
mod tests {
    use goodput_model::{AccountPart, Limiter, Place};

    use super::*;

    #[test]
    fn the_bar_is_full_and_the_largest_part_comes_first() {
        let part = |limiter, end, seconds| AccountPart { limiter, end, seconds };
        let account = Account {
            flows: 1,
            flow_seconds: 10.0,
            parts: vec![
                part(Limiter::ReceiveWindow, Place::Far, 9.6),
                part(Limiter::PathRate, Place::Path, 0.37),
                part(Limiter::Host, Place::Near, 0.03),
            ],
            unknown_s: 0.0,
            timeline: Vec::new(),
        };
        let bar = bar(&account);
        let cells = bar.split("  ").next().unwrap();
        assert_eq!(cells.chars().count(), WIDTH_CHARS);
        assert!(cells.starts_with('█'));
        assert!(bar.ends_with("█ receive window (far) 96 %   ▓ path rate 4 %"), "{bar}");
    }
}
