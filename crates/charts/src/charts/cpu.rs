//! CPU that the flows' threads took at both ends, over time.

use goodput_model::{EndName, Record, Role};

use super::Chart;
use crate::clip::Point;
use crate::figure::{Figure, Table};
use crate::palette;
use crate::plot::{Axis, Layer, Plot, PlotError, Shape};
use crate::series::{end, growth, highest, last, sum};
use crate::thin::thinned;
use crate::words;

/// The chart.
pub const CHART: Chart =
    Chart { id: "cpu", shows: "CPU of the flows' threads at both ends over time", draw };

fn draw(record: &Record) -> Result<Vec<Figure>, PlotError> {
    let lines: Vec<_> = [EndName::Near, EndName::Far]
        .into_iter()
        .map(|name| (name, line(record, name)))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let table = table(record);
    let said: Vec<_> = table.rows.iter().map(|row| format!("{} host {}", row[0], row[1])).collect();
    let alt =
        format!("CPU of the flows' threads. The program's mean over the run: {}.", said.join(", "));
    let svg = Some(plot(&lines).svg(&alt)?);
    let title = "CPU of the flows' threads over time".into();
    Ok(vec![Figure { id: "cpu".into(), title, alt, svg, table }])
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
    let columns = ["host", "the program", "whole host", "softirqs", "taken by the hypervisor"];
    let mut table = Table::new(columns);
    for (name, result) in [(EndName::Near, &record.result.near), (EndName::Far, &record.result.far)]
    {
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

fn plot(lines: &[(EndName, Vec<Point>)]) -> Plot {
    let all = || lines.iter().map(|(_, line)| &line[..]);
    let x = Axis { title: "", range: 0.0..last(all()), label: words::seconds };
    let y = Axis { title: "", range: 0.0..highest(all()).max(10.0) * 1.3, label: words::percent };
    let layer = |((name, line), colour): (&(EndName, Vec<Point>), _)| {
        Layer::named(format!("{name} host"), colour, Shape::Line(line.clone()))
    };
    let layers = lines.iter().zip([palette::BLUE, palette::ORANGE]).map(layer).collect();
    Plot { height: 200, x, y, layers }
}
