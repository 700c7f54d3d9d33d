//! The format of a saved file: a mark, the values that it keeps, a checksum, and the lines that keep them.

use sha2::{Digest, Sha256};

pub use crate::setting::Assignment;

/// Begins the line that marks the file as ours.
const MARK: &str = "# Written by goodput; `goodput settings undo --saved` removes it.";
/// Begins the line of each value.
const KEEPS: &str = "# keeps ";
/// Begins the line with the checksum of the values and of the lines after it.
const CHECKSUM: &str = "# checksum ";
/// Length of the kept digest: enough against accidental changes.
const CHECKSUM_BYTES: usize = 8;
/// Begins a script, and must stay its first line (execve(2)).
const INTERPRETER: &str = "#!";

/// The contents of a file of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// What it keeps.
    pub keeps: Vec<Assignment>,
    /// Whether it is unchanged since it was written.
    pub intact: bool,
}

/// The text of a file that keeps `keeps` by `lines`.
pub fn render(keeps: &[Assignment], lines: &str) -> String {
    let (interpreter, lines) = match lines.split_once('\n') {
        Some((first, rest)) if first.starts_with(INTERPRETER) => (format!("{first}\n"), rest),
        _ => (String::new(), lines),
    };
    let keeps: String =
        keeps.iter().map(|(setting, value)| format!("{KEEPS}{setting}={value}\n")).collect();
    let checksum = checksum(&keeps, lines);
    format!("{interpreter}{MARK}\n{keeps}{CHECKSUM}{checksum}\n{lines}\n")
}

/// The contents of a file; `None` if it is not one of ours.
pub fn parse(text: &str) -> Option<Contents> {
    let text = match text.split_once('\n') {
        Some((first, rest)) if first.starts_with(INTERPRETER) => rest,
        _ => text,
    };
    let rest = text.strip_prefix(MARK)?.strip_prefix('\n')?;
    let mut keeps = Vec::new();
    let mut header = 0;
    for line in rest.split_inclusive('\n') {
        let Some(assignment) = line.trim_end().strip_prefix(KEEPS) else { break };
        let Some((setting, value)) = assignment.split_once('=') else { break };
        let Ok(setting) = setting.parse() else { break };
        keeps.push((setting, value.to_owned()));
        header += line.len();
    }
    let (named, below) = rest.split_at(header);
    let (sum, lines) = below.split_once('\n').unwrap_or((below, ""));
    let lines = lines.strip_suffix('\n').unwrap_or(lines);
    let intact = sum.strip_prefix(CHECKSUM).is_some_and(|sum| sum == checksum(named, lines));
    Some(Contents { keeps, intact })
}

/// Reveals a change made by hand; it is no secret.
fn checksum(keeps: &str, lines: &str) -> String {
    let digest = Sha256::digest(format!("{keeps}{lines}"));
    digest.iter().take(CHECKSUM_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keeps() -> Vec<Assignment> {
        let rmem = "sysctl.net.ipv4.tcp_rmem".parse().unwrap();
        vec![(rmem, "4096 65536 8388608".into()), ("link.mtu@eth0".parse().unwrap(), "9000".into())]
    }

    #[test]
    fn what_was_written_is_read_back_and_what_was_edited_is_seen() {
        for lines in ["net.ipv4.tcp_rmem = 1 2 3", "#!/bin/sh\nip link\nip route"] {
            let text = render(&keeps(), lines);
            assert_eq!(parse(&text), Some(Contents { keeps: keeps(), intact: true }), "{text}");
            let edited = text.clone() + "more\n";
            assert!(!parse(&edited).unwrap().intact);
            assert!(!parse(&text.replace("9000", "1500")).unwrap().intact);
        }
        assert!(render(&keeps(), "#!/bin/sh\nip link").starts_with("#!/bin/sh\n"));
        assert_eq!(parse("net.ipv4.tcp_sack = 1\n"), None, "someone else's");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(#!/bin/sh\n)?.*\n(.*\n){0,5}", cut in 0usize..400) {
            parse(&text);
            let whole = render(&keeps(), "a = 1");
            let part: String = whole.chars().take(cut).collect();
            if let Some(read) = parse(&part) {
                prop_assert!(!read.intact || part.trim_end() == whole.trim_end());
            }
        }
    }
}
