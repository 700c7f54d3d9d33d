//! Reads a series of measurements: `CLOCK:RATE,…`, or a file with a clock and a rate in each line.

use std::fs::File;
use std::io::{ErrorKind, Read};

use anyhow::{Context, Result, bail};
use goodput_model::BitRate;

use crate::args::{frequency, rate};

/// Largest file that is read, bytes: a hundred thousand lines.
const MAX_SERIES_FILE_BYTES: u64 = 4 << 20;

/// The points of a series, or of the file with this name.
pub fn read(text: &str) -> Result<Vec<(f64, BitRate)>> {
    match File::open(text) {
        Ok(file) => lines(&content(file, text)?).with_context(|| format!("can't read {text}")),
        Err(cause) if cause.kind() == ErrorKind::NotFound => match text.contains(':') {
            true => series(text),
            false => bail!(
                "there is no file {text}; write its name, or a series like \
                 6.7MHz:740KB/s,13.4MHz:970KB/s,20MHz:1030KB/s"
            ),
        },
        Err(cause) => Err(cause).with_context(|| format!("can't open {text}")),
    }
}

fn content(file: File, name: &str) -> Result<String> {
    let mut text = String::new();
    file.take(MAX_SERIES_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("can't read {name}"))?;
    if text.len() as u64 > MAX_SERIES_FILE_BYTES {
        bail!("{name} is larger than {MAX_SERIES_FILE_BYTES} bytes, too large for a series");
    }
    Ok(text)
}

fn series(text: &str) -> Result<Vec<(f64, BitRate)>> {
    let points = text.split(',').map(|point| {
        let (clock, rate) = point
            .split_once(':')
            .with_context(|| format!("{point:?} is not CLOCK:RATE, like 8MHz:800KB/s"))?;
        parsed(clock, rate)
    });
    points.collect()
}

/// Empty lines and lines that begin with `#` are ignored.
fn lines(text: &str) -> Result<Vec<(f64, BitRate)>> {
    let lines = text.lines().map(str::trim).enumerate();
    let said = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let points = said.map(|(number, line)| {
        let at = || format!("line {}, {line:?}", number + 1);
        let (clock, rate) = line
            .split_once(char::is_whitespace)
            .context("write a clock and a rate, like 8MHz 800KB/s")
            .with_context(at)?;
        parsed(clock, rate).with_context(at)
    });
    points.collect()
}

fn parsed(clock: &str, rate_text: &str) -> Result<(f64, BitRate)> {
    let clock = frequency::hertz(clock).map_err(anyhow::Error::msg)?;
    let rate = rate::positive(rate_text).map_err(|why| anyhow::anyhow!("{rate_text:?}: {why}"))?;
    Ok((clock, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_and_the_lines_of_a_file_say_the_same() {
        let of_series = series("6.7MHz:740KB/s,8:1mbit").unwrap();
        let of_file = lines("# ISA\n6.7MHz 740KB/s\n\n 8\t1 mbit\n").unwrap();
        assert_eq!(of_series, [(6.7e6, BitRate(740.0 * 8e3)), (8.0, BitRate(1e6))]);
        assert_eq!(of_series, of_file);
    }

    #[test]
    fn nonsense_is_named_with_its_line() {
        let why = |text: &str| crate::exit::in_words(&lines(text).unwrap_err());
        assert!(why("1 1\nx 2").contains("line 2, \"x 2\""), "{}", why("1 1\nx 2"));
        assert!(why("12").contains("a clock and a rate"));
        assert!(why("1MHz 0").contains("above 0"));
        assert!(series("1MHz").unwrap_err().to_string().contains("CLOCK:RATE"));
        assert!(read("no-such-file").unwrap_err().to_string().contains("a series like"));
    }
}
