//! Fills a history with many records, and times what a page of `goodput web` asks of it:
//!
//!     cargo run --release -p goodput-store --example long_history -- DIRECTORY|URL [RECORDS]
//!
//! In PostgreSQL, all but the newest records have no JSON: no list reads it, and ten million would fill a disk.
//!
//! Then `XDG_DATA_HOME=DIRECTORY goodput web` shows that history, and `curl -so /dev/null -w '%{time_total}\n'
//! 'http://127.0.0.1:7488/path?target=host-7'` times a whole page.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use goodput_model::BitRate;
use goodput_store::{Place, Position, Store, StoreError, Wanted, read_record};
use rusqlite::{Connection, params};

const RECORD: &str = include_str!("../tests/golden/v1/test.json");

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name: PathBuf = arguments.next().ok_or("name a directory or a database")?.into();
    let count = arguments.next().map_or(Ok(100_000), |count| count.parse())?;
    let place = match Place::named(&name)? {
        Place::File(directory) => Place::File(directory.join("goodput/history.db")),
        database @ Place::Postgres(_) => database,
    };
    drop(Store::open(&place)?);
    match &place {
        Place::File(path) => fill(path, count)?,
        Place::Postgres(_) => fill_database(&name, count)?,
    }
    let wanted = |text: &str| Wanted { text: Some(text.into()), limit: 51, ..Wanted::default() };
    let page = Wanted { limit: 51, ..Wanted::default() };
    time("the newest page", &place, |store| store.search(&page).map(drop))?;
    let middle = Some(Position { started: "2026-06-15T10:00:00Z".into(), id: 1 });
    let far_down = Wanted { before: middle, ..page.clone() };
    time("a page far down", &place, |store| store.search(&far_down).map(drop))?;
    let of = |target: &str| Some(target.to_owned());
    let results = Wanted { target: of("host-7"), limit: 500, ..Wanted::default() };
    time("a page of targets with a text", &place, |store| {
        store.search(&wanted("host-7")).map(drop)
    })?;
    time("a page of the only target", &place, |store| store.search(&wanted("host-77")).map(drop))?;
    time("a search without a result", &place, |store| store.search(&wanted("nowhere")).map(drop))?;
    time("the results of a target", &place, |store| store.search(&results).map(drop))?;
    time("the newest to compare with", &place, |store| {
        store.newest("test", "host-7", "9999", |_| true).map(drop)
    })?;
    time("the names to choose from", &place, |store| store.names().map(drop))?;
    let all = || 1..=i64::from(count).min(10_000);
    time("10,000 records in short, as for CSV", &place, |store| {
        all().try_for_each(|id| store.summary(id).map(drop))
    })?;
    time("10,000 records", &place, |store| all().try_for_each(|id| store.get(id).map(drop)))
}

fn fill(path: &Path, count: u32) -> Result<(), Box<dyn Error>> {
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

fn fill_database(url: &Path, count: u32) -> Result<(), Box<dyn Error>> {
    let url = url.to_str().ok_or("it is no URL")?;
    let json = read_record(RECORD)?.to_json()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let fill = format!(
            "INSERT INTO goodput.records (started, kind, target, goodput_bits_per_s, rule, format, transport,
                 direction, flows, json)
             SELECT to_char(timestamp '2020-01-01' + n * interval '15 s', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), 'test',
                 'host-' || n % 500, 1e6 * (n % 900 + 1), CASE n % 3 WHEN 0 THEN 'path-loss' ELSE 'none' END, 1, 'tcp',
                 'send', 1, CASE WHEN n > {count} - 10000 THEN $json${json}$json$ ELSE '{{}}' END
             FROM generate_series(0, {count} - 1) AS n"
        );
        client.batch_execute(&fill).await?;
        client.batch_execute("ANALYZE goodput.records").await?;
        Ok(())
    })
}

/// Prints how long one question takes, with the opening of the history.
fn time(
    what: &str,
    place: &Place,
    ask: impl Fn(&Store) -> Result<(), StoreError>,
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    ask(&Store::open(place)?)?;
    println!("{what}: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
