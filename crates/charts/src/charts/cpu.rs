//! CPU at both ends over time: of the flows' threads, and of all that ran on their hosts.

use goodput_model::{End, EndName, EndResult, HostCpu, Known, Record, Role, counted};
use plotters::style::RGBColor;

use super::Chart;
use crate::axis::Axis;
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::moments::{self, Column, Values};
use crate::palette;
use crate::plot::{Layer, Plot, Shape};
use crate::series::{axis_length, end, growth, highest, joined, sum};
use crate::sketch::Sketch;
use crate::thin::thinned;
use crate::words;

/// A host whose mean is this many times what the panel shows has no room in it.
const FAR: f64 = 4.0;

/// Room for a host that hardly does anything, percent.
const LEAST_TOP: f64 = 10.0;

/// The chart.
pub const CHART: Chart = Chart {
    id: "cpu",
    shows: "CPU of the flows' threads and of the hosts over time",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let ends = [EndName::Near, EndName::Far].into_iter();
    let seen = ends.filter_map(|name| Some((name, end(record, name)?)));
    seen.filter_map(|(name, end)| sketch(record, name, end)).collect()
}

/// What is drawn of one end.
struct Line {
    name: &'static str,
    colour: RGBColor,
    /// Percent of one CPU.
    points: Vec<Point>,
    /// The mean of the run, or why it is unknown.
    mean: Known<f64>,
}

/// Takes one use of the CPUs from a reading of a host, microseconds.
type Use = fn(&HostCpu) -> u64;

fn sketch(record: &Record, name: EndName, end: &End) -> Option<Sketch> {
    let lines = lines(of_host(record, name), end);
    if lines.iter().all(|line| line.points.is_empty()) {
        return None;
    }
    let said: Vec<_> = lines.iter().map(words_of).collect();
    let of_all = match of_host(record, name).host_cpu_percent.value() {
        Some(percent) if cpus(end) > 0 => {
            let cpus = cpus(end);
            format!(
                " The whole host used {} of its {}.",
                words::percent(*percent),
                counted(cpus, "CPU")
            )
        }
        _ => String::new(),
    };
    let program = match of_host(record, name).cpu_percent.get() {
        Ok(percent) => words::percent(*percent),
        Err(why) => format!("an unknown share ({why})"),
    };
    let alt = format!(
        "CPU of the {name} host, percent of one CPU: {}. The whole program used {program} on average.{of_all}",
        said.join("; ")
    );
    let table = table(&lines);
    let title = format!("CPU of the {name} host over time");
    Some(Sketch { id: format!("cpu-{name}"), title, alt, plot: Some(plot(&lines)), table })
}

/// CPUs of a host. An older record only has those that the program could use; 0 if that is unknown, too.
fn cpus(end: &End) -> u32 {
    let counted = end.host_cpu.value().and_then(|readings| readings.last());
    counted.map_or(end.host.cpus, |last| last.cpus)
}

fn of_host(record: &Record, name: EndName) -> &EndResult {
    match name {
        EndName::Near => &record.result.near,
        EndName::Far => &record.result.far,
    }
}

/// The flows' threads, and the host with its parts.
fn lines(result: &EndResult, end: &End) -> Vec<Line> {
    let flows = of_flows(end);
    // An end that is another program does not say how many CPUs it has.
    let of_one = |percent: f64| match cpus(end) {
        0 => Known::missing("the number of its CPUs is unknown"),
        cpus => Known::Value(percent * f64::from(cpus)),
    };
    let whole = result.host_cpu_percent.get().map(|percent| of_one(*percent));
    let whole = whole.unwrap_or_else(Known::Missing);
    let of_host: [(&str, RGBColor, Use, Known<f64>); 3] = [
        ("whole host", palette::ORANGE, |one| one.busy_us, whole),
        ("soft interrupts", palette::GREEN, |one| one.softirq_us, result.softirq_percent.clone()),
        (
            "taken by the hypervisor",
            palette::LINES[3],
            |one| one.steal_us,
            result.steal_percent.clone(),
        ),
    ];
    let readings = end.host_cpu.value().map(Vec::as_slice).unwrap_or_default();
    let of_host = of_host.into_iter().map(|(name, colour, of, mean)| Line {
        name,
        colour,
        points: shares(readings, of),
        mean,
    });
    let mean = mean(&flows).map_or(Known::missing("no flow reports it"), Known::Value);
    let flows = Line { name: "flows' threads", colour: palette::BLUE, points: flows, mean };
    of_host.chain([flows]).collect()
}

/// A use between each two readings, percent of one CPU: its share of what the kernel counted meanwhile. A thread that waits
/// for a CPU between the clock and the counters would shift a share of the clock, up to more CPUs than there are.
fn shares(readings: &[HostCpu], of: Use) -> Vec<Point> {
    let readings = joined(readings.to_vec(), |one| one.at_s);
    let grown = |pair: &[HostCpu], count: Use| {
        let [before, now] = [0, 1].map(|at| count(&pair[at]));
        now.saturating_sub(before) as f64
    };
    let share = |pair: &[HostCpu]| {
        let share = grown(pair, of) / grown(pair, |one| one.counted_us);
        (pair[1].at_s, share * f64::from(pair[1].cpus) * 100.0)
    };
    let forward = readings.windows(2).filter(|pair| pair[1].at_s > pair[0].at_s);
    forward.map(share).filter(|(_, share)| share.is_finite()).collect()
}

/// CPU of all flows of an end, both roles together, percent of one CPU.
fn of_flows(end: &End) -> Vec<Point> {
    let detailed: Vec<_> =
        end.samples.iter().filter(|sample| !sample.flows.is_empty()).cloned().collect();
    growth(thinned(&detailed), |sample| {
        let roles = [Role::Sender, Role::Receiver];
        let here = roles.iter().filter(|role| sample.flows.iter().any(|flow| flow.role == **role));
        let each: Option<Vec<f64>> =
            here.map(|role| sum(sample, *role, |flow| flow.cpu_us.clone())).collect();
        Some(each?.into_iter().sum::<f64>() / 1e4)
    })
}

/// The mean of a line over its time; each rate stands at the end of its time.
fn mean(points: &[Point]) -> Option<f64> {
    let last = points.last().filter(|(at, _)| *at > 0.0)?;
    let mut before = 0.0;
    let sum: f64 =
        points.iter().map(|(at, rate)| rate * (at - std::mem::replace(&mut before, *at))).sum();
    Some(sum / last.0)
}

/// `whole host 120 % on average, at most 150 %`.
fn words_of(line: &Line) -> String {
    let mean = match &line.mean {
        Known::Value(mean) => format!("{} {} on average", line.name, words::percent(*mean)),
        Known::Missing(why) => format!("{} unknown ({why})", line.name),
    };
    match line.points.is_empty() {
        true => mean,
        false => format!("{mean}, at most {}", words::percent(highest([&line.points[..]]))),
    }
}

/// Percent of one CPU over time, after the means of the run.
fn table(lines: &[Line]) -> Table {
    let mean = |line: &Line| match line.mean.get() {
        Ok(percent) => words::percent(*percent),
        Err(why) => why.to_string(),
    };
    let columns: Vec<_> = lines
        .iter()
        .map(|line| Column {
            values: Values::Rates,
            first: vec![mean(line)],
            ..Column::of(line.name, &line.points)
        })
        .collect();
    moments::table(&["mean"], &columns, words::percent)
}

fn plot(lines: &[Line]) -> Plot {
    let all = || lines.iter().map(|line| &line.points[..]);
    let until = axis_length(all());
    let top = highest(all()).max(LEAST_TOP) * 1.3;
    // An older record has only the mean of a host. If it is far above, it would flatten the flows, and the words have it.
    let level = |line: &Line| match line.mean {
        Known::Value(mean) if line.points.is_empty() && mean < FAR * top => Some(mean),
        _ => None,
    };
    let top = lines.iter().filter_map(level).fold(top, |top, mean| top.max(mean * 1.1));
    let layer = |line: &Line| match (level(line), line.points.is_empty()) {
        // Most hosts have no hypervisor that takes time.
        (_, false) if highest([&line.points[..]]) > 0.0 => {
            Some(Layer::named(line.name, line.colour, Shape::Line(line.points.clone())))
        }
        (Some(mean), _) if mean > 0.0 => {
            let level = Shape::Dashed(vec![(0.0, mean), (until, mean)]);
            Some(Layer::named(format!("{}, mean", line.name), line.colour, level))
        }
        _ => None,
    };
    let x = Axis::new(0.0..until, words::seconds);
    let y = Axis::new(0.0..top, words::percent);
    Plot { height: 200, x, y, layers: lines.iter().filter_map(layer).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &'static str, points: &[Point], mean: f64) -> Line {
        let colour = palette::BLUE;
        Line { name, colour, points: points.to_vec(), mean: Known::Value(mean) }
    }

    fn names(plot: Plot) -> Vec<String> {
        plot.layers.into_iter().filter_map(|layer| layer.name).collect()
    }

    #[test]
    fn a_mean_is_a_level_line_unless_it_would_flatten_the_flows() {
        let flows = || line("flows' threads", &[(0.0, 40.0), (2.0, 50.0)], 45.0);
        let of = |mean| plot(&[line("whole host", &[], mean), flows()]);
        assert_eq!(names(of(150.0)), ["whole host, mean", "flows' threads"]);
        assert_eq!(of(200.0).y.range, 0.0..200.0 * 1.1);
        assert_eq!(names(of(6400.0)), ["flows' threads"]);
    }

    #[test]
    fn a_host_over_time_is_a_line_and_what_is_nothing_is_none() {
        let busy = line("whole host", &[(1.0, 6400.0), (2.0, 6000.0)], 6200.0);
        let flows = line("flows' threads", &[(1.0, 40.0), (2.0, 50.0)], 45.0);
        let stolen = line("hypervisor", &[(1.0, 0.0), (2.0, 0.0)], 0.0);
        let plot = plot(&[busy, stolen, flows]);
        assert!(plot.y.range.end > 6400.0, "{:?}", plot.y.range);
        assert_eq!(names(plot), ["whole host", "flows' threads"]);
    }

    #[test]
    fn a_host_is_never_busier_than_its_cpus_whatever_the_clock_says() {
        let reading = |at_s, counted_us, busy_us| HostCpu {
            at_s,
            cpus: 2,
            counted_us,
            busy_us,
            ..HostCpu::default()
        };
        // The reading at 1 s has an early time: by the clock, 250 % of two CPUs.
        let all = [
            HostCpu::default(),
            reading(0.6, 1_000_000, 500_000),
            reading(1.0, 2_000_000, 1_500_000),
            reading(1.5, 3_000_000, 2_000_000),
        ];
        let busy = shares(&all, |one| one.busy_us);
        assert_eq!(busy, [(0.6, 100.0), (1.0, 200.0), (1.5, 100.0)]);
        let stopped = [reading(0.5, 7, 7), reading(1.0, 7, 7)];
        assert_eq!(shares(&stopped, |one| one.busy_us), [], "nothing was counted");
    }

    #[test]
    fn a_row_has_the_cpu_of_the_time_that_it_ends() {
        let host = line("whole host", &[(1.0, 100.0), (2.0, 200.0)], 150.0);
        let flows = line("flows' threads", &[(0.5, 40.0), (1.5, 50.0)], 45.0);
        let rows = table(&[host, flows]).rows;
        assert_eq!(rows[0], ["mean", "150 %", "45 %"]);
        assert_eq!(rows[3], ["500 ms", "100 %", "40 %"]);
        assert_eq!(rows[4], ["1 s", "100 %", "50 %"]);
        assert_eq!(rows[6], ["2 s", "200 %", "unknown"]);
    }

    #[test]
    fn the_mean_of_a_line_weighs_by_time() {
        assert_eq!(mean(&[(1.0, 10.0), (4.0, 50.0)]), Some(40.0));
        assert_eq!(mean(&[]), None);
    }
}
