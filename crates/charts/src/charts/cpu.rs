//! CPU that the flows' threads took at both ends over time, and what their hosts took.

use goodput_model::{EndName, EndResult, Record, Role};
use plotters::style::RGBColor;

use super::Chart;
use crate::clip::Point;
use crate::figure::{Of, Table};
use crate::palette;
use crate::plot::{Axis, Layer, Plot, Shape};
use crate::series::{end, growth, highest, last, sum};
use crate::sketch::Sketch;
use crate::thin::thinned;
use crate::words;

/// A host that takes this many times what the panel shows has no room in it.
const FAR: f64 = 4.0;

/// The chart.
pub const CHART: Chart = Chart {
    id: "cpu",
    shows: "CPU of the flows' threads at both ends over time",
    of: Of::OneRun,
    draw,
};

fn draw(record: &Record) -> Vec<Sketch> {
    let lines: Vec<_> = [EndName::Near, EndName::Far]
        .into_iter()
        .map(|name| (name, line(record, name)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let table = table(record);
    let said: Vec<_> = table.rows.iter().map(|row| format!("{} host {}", row[0], row[1])).collect();
    let whole: Vec<_> =
        table.rows.iter().map(|row| format!("{} host {}", row[0], row[2])).collect();
    let alt = format!(
        "CPU of the flows' threads, percent of one CPU. Means over the run: the program, {}; all that ran, percent of all \
         CPUs, {}.",
        said.join(", "),
        whole.join(", ")
    );
    let plot = Some(plot(&lines, &whole_hosts(record)));
    let title = "CPU of the flows' threads and of the hosts over time".into();
    vec![Sketch { id: "cpu".into(), title, alt, plot, table }]
}

/// The mean of all that ran on each host, percent of one CPU: no record has it over time.
fn whole_hosts(record: &Record) -> Vec<(EndName, f64)> {
    let mean = |name| {
        let percent = of_host(record, name).host_cpu_percent.value()?;
        // An end that is another program does not say how many it has.
        let cpus = Some(end(record, name)?.host.cpus).filter(|cpus| *cpus > 0)?;
        Some((name, percent * f64::from(cpus)))
    };
    [EndName::Near, EndName::Far].into_iter().filter_map(mean).collect()
}

fn of_host(record: &Record, name: EndName) -> &EndResult {
    match name {
        EndName::Near => &record.result.near,
        EndName::Far => &record.result.far,
    }
}

/// Percent of one CPU, both roles together.
fn line(record: &Record, name: EndName) -> Vec<Point> {
    let Some(end) = end(record, name) else { return Vec::new() };
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

fn table(record: &Record) -> Table {
    let columns =
        ["host", "the program", "whole host, of all CPUs", "softirqs", "taken by the hypervisor"];
    let mut table = Table::new(columns);
    for name in [EndName::Near, EndName::Far] {
        let result = of_host(record, name);
        let shares = [
            &result.cpu_percent,
            &result.host_cpu_percent,
            &result.softirq_percent,
            &result.steal_percent,
        ];
        let [own, host, softirq, steal] = shares.map(|share| match share.get() {
            Ok(percent) => words::percent(*percent),
            Err(why) => why.to_string(),
        });
        table.row([name.to_string(), own, host, softirq, steal]);
    }
    table
}

/// `whole` is beside the lines; what is far above would flatten them, and the words below have it.
fn plot(lines: &[(EndName, Vec<Point>)], whole: &[(EndName, f64)]) -> Plot {
    let all = || lines.iter().map(|(_, line)| &line[..]);
    let until = last(all());
    let top = highest(all()).max(10.0) * 1.3;
    let whole: Vec<_> = whole.iter().filter(|(_, mean)| *mean < FAR * top).collect();
    let top = whole.iter().fold(top, |top, (_, mean)| top.max(mean * 1.1));
    let x = Axis { title: "", range: 0.0..until, label: words::seconds };
    let y = Axis { title: "", range: 0.0..top, label: words::percent };
    let of_flows = lines.iter().map(|(name, line)| {
        Layer::named(format!("flows, {name} host"), colours(*name)[0], Shape::Line(line.clone()))
    });
    let of_hosts = whole.into_iter().map(|(name, mean)| {
        let level = Shape::Dashed(vec![(0.0, *mean), (until, *mean)]);
        Layer::named(format!("whole {name} host, mean"), colours(*name)[1], level)
    });
    Plot { height: 200, x, y, layers: of_hosts.chain(of_flows).collect() }
}

/// Of an end's flows, and of its host.
fn colours(name: EndName) -> [RGBColor; 2] {
    match name {
        EndName::Near => [palette::BLUE, palette::LINES[0]],
        EndName::Far => [palette::ORANGE, palette::LINES[1]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_line_of_its_own_unless_it_would_flatten_the_flows() {
        let flows = [(EndName::Near, vec![(0.0, 40.0), (2.0, 50.0)])];
        let names = |whole: &[(EndName, f64)]| -> Vec<_> {
            plot(&flows, whole).layers.into_iter().filter_map(|layer| layer.name).collect()
        };
        assert_eq!(
            names(&[(EndName::Near, 150.0), (EndName::Far, 6400.0)]),
            ["whole near host, mean", "flows, near host"]
        );
        assert_eq!(plot(&flows, &[(EndName::Near, 200.0)]).y.range, 0.0..200.0 * 1.1);
        assert_eq!(names(&[]), ["flows, near host"]);
    }
}
