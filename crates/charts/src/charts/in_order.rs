//! The runs of a comparison in the order in which they were made, and in blocks: what is compared with what.

use goodput_model::answer::arm_name;
use goodput_model::{Comparison, Trial, counted};

use crate::axis::{Axis, Ticks};
use crate::clip::Point;
use crate::figure::Table;
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::sketch::Sketch;
use crate::words;

/// Arms that have a colour of their own, with the baseline; of more, lines would be mistaken for each other.
const MAX_ARMS: usize = palette::ARMS.len() + 1;

/// The goodput of each run by its number. Of many arms only the numbers.
pub fn in_order(comparison: &Comparison) -> Sketch {
    let plot = (comparison.arms.len() <= MAX_ARMS).then(|| plot(comparison));
    Sketch {
        id: "in-order".into(),
        title: "The runs in their order".into(),
        alt: alt(comparison),
        plot,
        table: table(comparison),
    }
}

fn alt(comparison: &Comparison) -> String {
    let runs = counted(comparison.trials.len(), "run");
    let blocks = counted(blocks(comparison).len(), "block");
    let in_pairs = match &comparison.arms[..] {
        [_, only] => {
            let (more, all) = pairs(comparison);
            format!(
                " {} gave more in {more} of {} that count.",
                arm_name(comparison, only),
                counted(all, "pair")
            )
        }
        _ => String::new(),
    };
    format!("{runs} in {blocks}; each block runs every arm that is open once.{in_pairs}")
}

/// Blocks in which the first arm gave more than the baseline, and those in which both count.
fn pairs(comparison: &Comparison) -> (usize, usize) {
    let rate = |block, arm| {
        let run = trial(comparison, block, arm)?;
        run.discarded.is_none().then_some(run.goodput_bits_per_s.value()?.0)
    };
    let both = |block: &u32| Some((rate(*block, 0)?, rate(*block, 1)?));
    let both: Vec<(f64, f64)> = blocks(comparison).iter().filter_map(both).collect();
    (both.iter().filter(|(base, arm)| arm > base).count(), both.len())
}

/// The numbers of the blocks, in order.
fn blocks(comparison: &Comparison) -> Vec<u32> {
    let mut blocks: Vec<u32> = comparison.trials.iter().map(|trial| trial.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

fn trial(comparison: &Comparison, block: u32, arm: usize) -> Option<&Trial> {
    comparison.trials.iter().find(|trial| trial.block == block && trial.arm == arm)
}

/// A block in a row.
fn table(comparison: &Comparison) -> Table {
    let mut table = Table::new(["block"]);
    table.columns.extend(comparison.arms.iter().map(|arm| arm_name(comparison, arm)));
    for block in blocks(comparison) {
        let cell = |arm| trial(comparison, block, arm).map_or("not run".into(), goodput);
        let cells = (0..comparison.arms.len()).map(cell);
        table.rows.push(std::iter::once(block.to_string()).chain(cells).collect());
    }
    table
}

/// What a run gave, and why it does not count.
fn goodput(trial: &Trial) -> String {
    let rate = match trial.goodput_bits_per_s.get() {
        Ok(rate) => words::rate(rate.0),
        Err(why) => why.to_string(),
    };
    trial.discarded.iter().fold(rate, |rate, why| format!("{rate} (not counted: {why})"))
}

fn plot(comparison: &Comparison) -> Plot {
    let arms = comparison.arms.iter().enumerate();
    let layers =
        arms.flat_map(|(number, arm)| layers(comparison, number, arm_name(comparison, arm)));
    let rates = comparison.trials.iter().filter_map(|run| Some(run.goodput_bits_per_s.value()?.0));
    let x = Axis::new(0.0..comparison.trials.len() as f64 + 1.0, number);
    let x = x.titled("number of the run").with_ticks(Ticks::Whole);
    let y = Axis::new(0.0..rates.fold(1.0, f64::max) * 1.1, words::rate);
    Plot { height: 260, x, y, layers: layers.collect() }
}

/// The runs of an arm that count as dots on a line, the others as rings.
fn layers(comparison: &Comparison, arm: usize, name: String) -> [Layer; 3] {
    let runs = (1_u32..).zip(&comparison.trials).filter(|(_, trial)| trial.arm == arm);
    let point = |(number, trial): (u32, &Trial)| {
        Some((f64::from(number), trial.goodput_bits_per_s.value()?.0))
    };
    let (counted, others): (Vec<_>, Vec<_>) = runs.partition(|(_, run)| run.discarded.is_none());
    let points =
        |runs: Vec<(u32, &Trial)>| runs.into_iter().filter_map(point).collect::<Vec<Point>>();
    let (counted, others) = (points(counted), points(others));
    [
        Layer::unnamed(palette::of_arm(arm), Shape::Thin(counted.clone())),
        Layer::named(name, palette::of_arm(arm), Shape::Dots(counted)),
        Layer::unnamed(palette::of_arm(arm), Shape::Rings(others)),
    ]
}

/// The number of a run; nothing between two runs.
fn number(value: f64) -> String {
    if (value - value.round()).abs() < 1e-6 && value >= 0.5 {
        value.round().to_string()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::{ArmResult, BitRate, Known, SettingRef};

    use super::*;

    fn comparison(arms: usize, runs: &[(u32, usize, f64)]) -> Comparison {
        let trial = |(block, arm, rate): &(u32, usize, f64)| Trial {
            discarded: (*block == 0).then(|| "warm-up".into()),
            ..Trial::new(*block, *arm, Known::Value(BitRate(*rate)))
        };
        let setting: SettingRef = "chunk".parse().unwrap();
        let arms = (0..arms).map(|arm| ArmResult::new(vec![format!("{arm}K")])).collect();
        Comparison {
            trials: runs.iter().map(trial).collect(),
            ..Comparison::new(vec![setting], arms)
        }
    }

    #[test]
    fn pairs_that_count_are_counted_and_every_block_is_a_row() {
        let runs = [
            (0, 1, 9e6),
            (0, 0, 1e6),
            (1, 0, 1e6),
            (1, 1, 2e6),
            (2, 1, 5e5),
            (2, 0, 1e6),
            (3, 0, 1e6),
        ];
        let sketch = in_order(&comparison(2, &runs));
        assert!(
            sketch.alt.ends_with("chunk=1K gave more in 1 of 2 pairs that count."),
            "{}",
            sketch.alt
        );
        assert!(sketch.alt.starts_with("7 runs in 4 blocks"), "{}", sketch.alt);
        assert_eq!(sketch.table.columns, ["block", "chunk=0K", "chunk=1K"]);
        let rows = &sketch.table.rows;
        assert_eq!(
            rows[0],
            ["0", "1 Mbit/s (not counted: warm-up)", "9 Mbit/s (not counted: warm-up)"]
        );
        assert_eq!(rows[3], ["3", "1 Mbit/s", "not run"]);
        assert!(sketch.figure(crate::figure::Of::All).svg.is_some());
    }

    #[test]
    fn arms_without_a_colour_of_their_own_are_a_table() {
        let sketch = in_order(&comparison(MAX_ARMS + 1, &[(1, 0, 1e6)]));
        assert!(sketch.plot.is_none() && sketch.table.rows[0].len() == MAX_ARMS + 2);
        assert_eq!([1.0, 2.5, 12.0].map(number), ["1", "", "12"]);
    }
}
