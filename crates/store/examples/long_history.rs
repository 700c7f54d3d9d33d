//! Fills a history with many records, and times what a page of `goodput web` asks of it:
//!
//!     cargo run --release -p goodput-store --example long_history -- DIRECTORY [RECORDS]
//!
//! Then `XDG_DATA_HOME=DIRECTORY goodput web` shows that history, and `curl -so /dev/null -w '%{time_total}\n'
//! 'http://127.0.0.1:7488/path?target=host-7'` times a whole page.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use goodput_model::BitRate;
use goodput_store::{Store, Wanted, read_record};
use rusqlite::{Connection, params};

const RECORD: &str = include_str!("../tests/golden/v1/test.json");

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory: PathBuf = arguments.next().ok_or("name a directory")?.into();
    let count = arguments.next().map_or(Ok(100_000), |count| count.parse())?;
    let path = directory.join("goodput/history.db");
    drop(Store::open(&path)?);
    fill(&path, count)?;
    let wanted = |text: &str| Wanted { text: Some(text.into()), limit: 51, ..Wanted::default() };
    let page = Wanted { limit: 51, ..Wanted::default() };
    time("the newest page", &path, |store| store.search(&page).map(drop))?;
    let of = |target: &str| Some(target.to_owned());
    let results = Wanted { target: of("host-7"), limit: 500, ..Wanted::default() };
    time("a page of targets with a text", &path, |store| {
        store.search(&wanted("host-7")).map(drop)
    })?;
    time("a page of the only target", &path, |store| store.search(&wanted("host-77")).map(drop))?;
    time("a search without a result", &path, |store| store.search(&wanted("nowhere")).map(drop))?;
    time("the results of a target", &path, |store| store.search(&results).map(drop))?;
    time("the newest to compare with", &path, |store| {
        store.newest("test", "host-7", |_| true).map(drop)
    })?;
    time("the names to choose from", &path, |store| store.names().map(drop))
}

fn fill(path: &std::path::Path, count: u32) -> Result<(), Box<dyn Error>> {
    let mut record = read_record(RECORD)?;
    let mut db = Connection::open(path)?;
    let step = db.transaction()?;
    for number in 0..count {
        let day = number % 28 + 1;
        record.target = format!("host-{}", number % 500);
        record.started = format!("2026-{:02}-{day:02}T10:00:00Z", number % 12 + 1);
        record.result.goodput_bits_per_s = BitRate(1e6 * f64::from(number % 900 + 1));
        step.execute(
            "INSERT INTO records (started, kind, target, goodput_bits_per_s, rule, json)
             VALUES (?1, 'test', ?2, ?3, ?4, ?5)",
            params![
                record.started,
                record.target,
                record.result.goodput_bits_per_s.0,
                if number % 3 == 0 { "path-loss" } else { "none" },
                record.to_json()?
            ],
        )?;
    }
    Ok(step.commit()?)
}

/// Prints how long one question takes, with the opening of the file.
fn time(
    what: &str,
    path: &std::path::Path,
    ask: impl Fn(&Store) -> Result<(), goodput_store::StoreError>,
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    ask(&Store::open(path)?)?;
    println!("{what}: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
