//! Times at which systemd begins something.

use super::unfit;

/// A time of `OnCalendar=`; what it means is systemd's to say.
pub fn calendar(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -:*/,.~+_".contains(c);
    match !text.trim().is_empty() && text.chars().all(is_plain) {
        true => Ok(text.trim().to_owned()),
        false => {
            Err(unfit(text, "a time of systemd.time(7)", "it like daily or \"*-*-* 14:05:00\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_one_plain_line() {
        assert_eq!(calendar("Mon *-*-* 14:05:00").unwrap(), "Mon *-*-* 14:05:00");
        assert!(calendar("daily\nExecStart=x").is_err() && calendar(" ").is_err());
    }
}
