//! Draws a record from a file: `cargo run -p goodput-charts --example draw -- RECORD.json > page.html`.

use goodput_charts::{figures, page};
use goodput_model::Record;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("which record?")?;
    let record: Record = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let figures = figures(&record, |_| true)?;
    println!("{}", page(&[(&record, figures)]));
    Ok(())
}
