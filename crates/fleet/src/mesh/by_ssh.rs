//! A host without an agent, on which the agents of other sites start a server by SSH, as the mesh file names it.

use serde::{Deserialize, Serialize};

use super::place::no_place;

/// How the address of a host begins that is reached by SSH.
pub const SSH: &str = "ssh://";

/// Programs that agents start there.
pub const SSH_PROGRAMS: [&str; 2] = ["goodput", "iperf3"];

/// The server that is started there for a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshServer {
    /// One of [`SSH_PROGRAMS`]; absent: the first one that the host has.
    #[serde(default)]
    pub program: Option<String>,
    /// Where it listens; absent: goodput at any port that is free, iperf3 at its own.
    #[serde(default)]
    pub port: Option<u16>,
}

/// `[USER@]HOST[:PORT]`, kept with [`SSH`] before it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Login(pub String);

impl TryFrom<String> for Login {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rest = text.strip_prefix(SSH).unwrap_or(&text);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        address(user, place).map(Self).map_err(|why| {
            format!("{text:?} is no host that agents can log in to: {why}; write it like HOST, USER@HOST or USER@HOST:PORT")
        })
    }
}

/// The address as the program reads it, or why there is none.
fn address(user: Option<&str>, place: &str) -> Result<String, String> {
    if user.is_some_and(|user| !is_plain(user)) {
        return Err("its user is not a plain name".into());
    }
    no_place(place).map_or(Ok(()), Err)?;
    let (host, port) = host_and_port(place);
    if !is_plain(host) {
        return Err("its host is not a plain name or IP address".into());
    }
    let user = user.map_or_else(String::new, |user| format!("{user}@"));
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    Ok(match host.contains(':') {
        true => format!("{SSH}{user}[{host}]{port}"),
        false => format!("{SSH}{user}{host}{port}"),
    })
}

/// The parts of a place that has a host.
pub(super) fn host_and_port(place: &str) -> (&str, Option<u16>) {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(parts) => parts,
        // More than one colon is an IPv6 address alone.
        None if place.matches(':').count() > 1 => (place, ""),
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    (host, port.strip_prefix(':').and_then(|port| port.parse().ok()))
}

/// Whether ssh(1) can only read it as a name: not as an option, nor as anything special to a shell or to the `%` of
/// ssh_config(5).
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '+');
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}

/// One of [`SSH_PROGRAMS`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Program(pub String);

impl TryFrom<String> for Program {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match SSH_PROGRAMS.contains(&&*text) {
            true => Ok(Self(text)),
            false => Err(format!(
                "{text:?} is no program that agents start by SSH; write {}, or start it there yourself and name it as `server`",
                SSH_PROGRAMS.join(" or ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<String, String> {
        Login::try_from(text.to_string()).map(|login| login.0)
    }

    #[test]
    fn a_login_has_a_host_and_perhaps_a_user_and_a_port() {
        for (text, address) in [
            ("h", "ssh://h"),
            ("me@h", "ssh://me@h"),
            ("ssh://me@h:2222", "ssh://me@h:2222"),
            ("me@fe80::1", "ssh://me@[fe80::1]"),
            ("[::1]:022", "ssh://[::1]:22"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(address));
        }
    }

    #[test]
    fn nothing_passes_for_an_option_or_a_command() {
        for (text, words) in [
            ("-oProxyCommand=x", "plain name"),
            ("-l@h", "its user"),
            ("@h", "its user"),
            ("a@-h", "its host"),
            ("a;b", "its host"),
            ("%h", "its host"),
            ("a b", "no blanks"),
            ("me@", "the host is missing"),
            ("h:0", "\"0\" is no port"),
            ("h/x", "none of /"),
            ("iperf3://h", "iperf3://h"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(words) && why.contains("USER@HOST"), "{text}: {why}");
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_read_back_as_it_is(text in "([a-z-]{1,4}@)?([a-z.-]{1,8}|\\[[0-9a-f:]{2,9}\\])(:[0-9]{1,5})?") {
            if let Ok(address) = read(&text) {
                prop_assert_eq!(read(&address), Ok(address.clone()));
            }
        }

        #[test]
        fn any_text_is_a_login_or_an_error(text in ".{0,24}") {
            let _ = (read(&text), Program::try_from(text));
        }
    }
}
