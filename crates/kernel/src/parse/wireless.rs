//! /proc/net/wireless: two lines of headings, then a line for each radio
//! (net/wireless/wext-proc.c `wireless_seq_printf_stats`).

use super::ParseError;

/// Words of a line after the name: status, link, level, noise, nwid, crypt, frag, retry, misc, missed beacons.
const WORDS_PER_LINE: usize = 10;

/// What one radio reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Status {
    /// Signal, dBm.
    pub signal_dbm: f64,
    /// Frames given up after all retries.
    pub retries_given_up: u64,
}

/// The line of `device`; `None` if there is none.
pub fn parse(text: &str, device: &str) -> Result<Option<Status>, ParseError> {
    let broken = |line: &str| ParseError::new("/proc/net/wireless", format!("{line:?}"));
    for line in text.lines().skip(2) {
        let (name, rest) = line.split_once(':').ok_or_else(|| broken(line))?;
        if name.trim() != device {
            continue;
        }
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let words: &[&str; WORDS_PER_LINE] = words.first_chunk().ok_or_else(|| broken(line))?;
        let level = words[2].trim_end_matches('.').parse::<f64>().ok();
        let signal_dbm = level.filter(|level| level.is_finite()).ok_or_else(|| broken(line))?;
        let retries_given_up = words[7].parse().map_err(|_| broken(line))?;
        return Ok(Some(Status { signal_dbm, retries_given_up }));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "Inter-| sta-| Quality | Discarded packets | Missed | WE\n face | tus | \
                        link level noise | nwid crypt frag retry misc | beacon | 22\n wlan0: 0000 \
                        54. -56. -256 0 0 0 7 0 0\n";

    #[test]
    fn level_and_retries_are_found_by_place() {
        let status = Status { signal_dbm: -56.0, retries_given_up: 7 };
        assert_eq!(parse(TEXT, "wlan0"), Ok(Some(status)));
        assert_eq!(parse(TEXT, "wlan1"), Ok(None));
        assert!(parse("a\nb\nwlan0: 0000 54.\n", "wlan0").is_err());
        assert!(parse("a\nb\nwlan0\n", "wlan0").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(wlan0: |[0-9.-]{1,6}| |\n){0,40}") {
            let _ = parse(&text, "wlan0");
        }
    }
}
