//! The classes of a shaper: what each should get and got.

use goodput_model::{BitRate, ClassAnswer, Estimate, Known, ShapingClass};

use super::labelled::lines;
use super::table::Table;

/// Adds a row for each class, and which of them borrow.
pub(super) fn add(out: &mut String, classes: &[ShapingClass], tolerance_percent: f64) {
    if classes.is_empty() {
        return;
    }
    let headings = ["class", "rate", "beside", "datagrams", "ceil", "alone", "answer"];
    let mut table = Table::new(&headings);
    for class in classes {
        let ceil = match &class.ceil_bits_per_s {
            Known::Value(ceil) => ceil.to_string(),
            Known::Missing(_) => "unknown".into(),
        };
        let cells = [
            &class.name,
            &class.rate_bits_per_s.to_string(),
            &rate(&class.beside_bits_per_s),
            &rate(&class.datagrams_bits_per_s),
            &ceil,
            &rate(&class.alone_bits_per_s),
            answer(class.answer),
        ];
        match class.answer {
            ClassAnswer::Gives | ClassAnswer::Inconclusive => table.row(&cells),
            _ => table.bad_row(&cells),
        }
    }
    *out += &format!("\n{}\n", table.text());
    lines(out, "borrows", classes.iter().map(|class| borrows(class, tolerance_percent)));
}

fn rate(seen: &Known<Estimate>) -> String {
    match seen {
        Known::Value(seen) => BitRate(seen.value).to_string(),
        Known::Missing(_) => "unknown".into(),
    }
}

/// Whether a class gets more than its rate while the others send nothing.
fn borrows(class: &ShapingClass, tolerance_percent: f64) -> String {
    let ShapingClass { name, rate_bits_per_s, .. } = class;
    let Known::Value(alone) = &class.alone_bits_per_s else { return format!("{name}: unknown") };
    let tolerance = tolerance_percent / 100.0;
    let most = rate_bits_per_s.0 * (1.0 + tolerance);
    match class.ceil_bits_per_s.value() {
        Some(ceil) if ceil.0 <= most => format!("{name} may not: its ceil is its rate"),
        _ if alone.value <= most => format!("{name} does not"),
        Some(ceil) if alone.value >= ceil.0 * (1.0 - tolerance) => format!("{name} up to its ceil"),
        Some(ceil) => format!("{name} up to {}, not to its ceil of {ceil}", BitRate(alone.value)),
        None => format!("{name} up to {}; its ceil is unknown", BitRate(alone.value)),
    }
}

fn answer(answer: ClassAnswer) -> &'static str {
    match answer {
        ClassAnswer::Gives => "fine",
        ClassAnswer::Starves => "starves",
        ClassAnswer::TooSlow => "slow",
        ClassAnswer::TooFast => "fast",
        ClassAnswer::BelowCeil => "capped",
        ClassAnswer::Inconclusive => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_borrows_up_to_its_ceil_or_says_how_far() {
        let class = |ceil: Known<BitRate>, alone: f64| ShapingClass {
            name: "ef".into(),
            rate_bits_per_s: BitRate(2e7),
            ceil_bits_per_s: ceil,
            most_bits_per_s: BitRate(2e7),
            htb_class: Known::missing("elsewhere"),
            alone_bits_per_s: Known::Value(Estimate { value: alone, low: alone, high: alone }),
            beside_bits_per_s: Known::missing("not measured"),
            datagrams_bits_per_s: Known::missing("not measured"),
            answer: ClassAnswer::Gives,
        };
        let to = |ceil: f64| Known::Value(BitRate(ceil));
        let unknown = || Known::missing("elsewhere");
        assert_eq!(borrows(&class(to(1e8), 9.9e7), 2.0), "ef up to its ceil");
        assert_eq!(
            borrows(&class(to(1e8), 5e7), 2.0),
            "ef up to 50 Mbit/s, not to its ceil of 100 Mbit/s"
        );
        assert_eq!(borrows(&class(to(1e8), 2e7), 2.0), "ef does not");
        assert_eq!(borrows(&class(to(2e7), 2e7), 2.0), "ef may not: its ceil is its rate");
        assert_eq!(borrows(&class(unknown(), 5e7), 2.0), "ef up to 50 Mbit/s; its ceil is unknown");
        let mut out = String::new();
        add(&mut out, &[class(to(1e8), 9.9e7)], 2.0);
        assert!(out.contains("99 Mbit/s") && out.contains("fine"), "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    }
}
