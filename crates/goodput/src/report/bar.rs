//! The sender's time as a bar whose parts add up to 100 %.

use goodput_model::Split;

/// Cells of the bar.
const WIDTH_CHARS: usize = 40;

/// The parts of a split, the largest first, with the character for each.
fn parts(split: &Split) -> Vec<(&'static str, char, f64)> {
    let mut parts = vec![
        ("application", '░', split.application_percent),
        ("send buffer", '▒', split.send_buffer_percent),
        ("receive window", '▓', split.receive_window_percent),
        ("path", '█', split.path_percent),
    ];
    parts.sort_by(|a, b| b.2.total_cmp(&a.2));
    parts
}

/// The bar and its legend: `████████▓▓ path 82 %  receive window 18 %`. Parts below half a percent
/// are left out of the legend.
pub fn bar(split: &Split) -> String {
    let mut cells = String::new();
    let mut drawn = 0;
    let mut sum = 0.0;
    for (_, sign, percent) in parts(split) {
        sum += percent;
        let upto = ((sum / 100.0 * WIDTH_CHARS as f64).round() as usize).min(WIDTH_CHARS);
        cells.extend(std::iter::repeat_n(sign, upto.saturating_sub(drawn)));
        drawn = drawn.max(upto);
    }
    let legend = parts(split).into_iter().filter(|part| part.2 >= 0.5);
    let legend: Vec<_> =
        legend.map(|(name, sign, percent)| format!("{sign} {name} {percent:.0} %")).collect();
    format!("{cells}  {}", legend.join("   "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_full_and_the_largest_part_comes_first() {
        let split = Split {
            application_percent: 0.4,
            send_buffer_percent: 0.0,
            receive_window_percent: 96.0,
            path_percent: 3.6,
        };
        let bar = bar(&split);
        let cells = bar.split("  ").next().unwrap();
        assert_eq!(cells.chars().count(), WIDTH_CHARS);
        assert!(cells.starts_with('▓'));
        assert!(bar.ends_with("▓ receive window 96 %   █ path 4 %"), "{bar}");
    }
}
