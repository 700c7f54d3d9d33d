//! Why ssh ended: finds the messages of ssh from which the user learns what to do.

use std::process::ExitStatus;

use crate::error::RemoteError;
use crate::plain;

/// Exit code of ssh(1) for its own errors; any other one is that of the host's command.
const SSH_FAILED: i32 = 255;

/// Longest piece of ssh's output in an error, characters from its end.
const MAX_SAID: usize = 600;

/// Why a session never began. `printed` is the output of the host's shell.
pub(super) fn before_it_began(
    host: &str,
    status: Option<ExitStatus>,
    printed: &str,
    said: &str,
) -> RemoteError {
    let host = host.to_owned();
    let whole = said;
    let said = last(said);
    if status.and_then(|status| status.code()) != Some(SSH_FAILED) {
        let said = last(&format!("{printed}\n{whole}"));
        return RemoteError::NoShell { host, said };
    }
    let has = |words: &[&str]| words.iter().any(|words| whole.contains(words));
    // sshconnect.c, sshconnect2.c and misc.c of OpenSSH 9.
    if has(&["HOST IDENTIFICATION HAS CHANGED"]) {
        return RemoteError::OtherHostKey { host, said };
    }
    if has(&["Host key verification failed", "host key is known"]) {
        return RemoteError::HostKey { host, said };
    }
    if has(&["Permission denied", "Too many authentication failures"]) {
        return RemoteError::Login { host, said };
    }
    RemoteError::Unreachable { host, said }
}

/// The last output of ssh and the host.
pub(super) fn last(said: &str) -> String {
    let said = plain::one_line(said);
    let from = said.char_indices().rev().nth(MAX_SAID - 1).map_or(0, |(at, _)| at);
    match (from, &said[from..]) {
        (_, "") => "no reason was given".into(),
        (0, whole) => whole.into(),
        // From the next word on.
        (_, end) => format!("… {}", end.split_once(' ').map_or(end, |(_, rest)| rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn each_trouble_says_what_to_do() {
        let error = |code: i32, said: &str| {
            before_it_began("ssh://b", Some(ExitStatus::from_raw(code << 8)), "", said)
        };
        let key = error(255, "No ED25519 host key is known for b\r\nHost key verification failed.");
        assert!(matches!(key, RemoteError::HostKey { .. }), "{key}");
        let banner = "@@@@@\r\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\n@@@@@\r\nHost key verification failed.";
        let banner = &banner
            .replace("HAS CHANGED! @", &format!("HAS CHANGED! @{}", "\r\nlong words".repeat(99)));
        let other = error(255, banner);
        assert!(matches!(other, RemoteError::OtherHostKey { .. }), "{other}");
        assert!(!other.to_string().contains(['\r', '\n']), "{other}");
        let login = error(255, "root@b: Permission denied (publickey,password).");
        assert!(matches!(login, RemoteError::Login { .. }) && login.not_permitted(), "{login}");
        let gone = error(255, "ssh: Could not resolve hostname b: Name or service not known");
        assert!(matches!(gone, RemoteError::Unreachable { .. }), "{gone}");
        let shell = error(1, "This account is currently not available.");
        assert!(matches!(shell, RemoteError::NoShell { .. }), "{shell}");
    }

    #[test]
    fn long_words_are_cut_at_a_character_and_others_between_words() {
        assert_eq!(last(&"ä".repeat(2 * MAX_SAID)), format!("… {}", "ä".repeat(MAX_SAID)));
        let cut = last(&"words ".repeat(MAX_SAID));
        assert!(cut.starts_with("… words words ") && cut.ends_with(" words"), "{cut}");
    }
}
