//! The page of a long test with many flows: how long it takes to make, and how large it is.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use goodput_model::median;

use super::{Figure, Stage};
use crate::bench::net::{Net, address};
use crate::bench::place::Place;
use crate::crowd::SERVER_PORT;

/// How often the page is made.
const TIMES: usize = 5;

pub fn figures(stage: &Stage<'_>) -> Result<Vec<Figure>> {
    let record = stage.folder().join("record.json");
    measure(stage, &record)?;
    let page = stage.folder().join("page.html");
    let mut seconds = Vec::new();
    for _ in 0..TIMES {
        let mut report = Net::at_client(Place::Veth, &stage.program.to_string_lossy());
        report.arg("report").arg(&record).arg("-o").arg(&page).stdout(Stdio::null());
        let began = Instant::now();
        let status = report.status().context("can't start `goodput report`")?;
        seconds.push(began.elapsed().as_secs_f64());
        ensure!(status.success(), "`goodput report` ended with {status}");
    }
    let seconds = median(seconds).context("nothing was drawn")?;
    let megabytes = fs::metadata(&page)?.len() as f64 / 1e6;
    let of = format!("`goodput report` of {} minutes, 64 flows", stage.options.minutes);
    Ok(vec![
        Figure::at_most(format!("{of}, seconds"), seconds, 2.0),
        Figure::at_most(format!("{of}, MB"), megabytes, 2.0),
    ])
}

fn measure(stage: &Stage<'_>, record: &std::path::Path) -> Result<()> {
    let _server = stage.serve()?;
    let target = format!("{}:{SERVER_PORT}", address(Place::Veth));
    let seconds = (stage.options.minutes * 60).to_string();
    let mut test = Net::at_client(Place::Veth, &stage.program.to_string_lossy());
    test.args(["test", &target, "--flows", "64", "-t", &seconds, "--json", "--no-store"]);
    let test = test.stdout(File::create(record)?).stderr(Stdio::piped()).spawn()?;
    let ended = test.wait_with_output()?;
    // A problem that the diagnosis found is 1, and no failure of the measurement.
    ensure!(
        matches!(ended.status.code(), Some(0 | 1)),
        "the test of 64 flows ended with {}: {}",
        ended.status,
        String::from_utf8_lossy(&ended.stderr).trim()
    );
    Ok(())
}
