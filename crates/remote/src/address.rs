//! `ssh://[USER@]HOST[:PORT]`: how the user names a host without goodput.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// A host reached by SSH. Whatever is left out comes from the user's SSH configuration; the host may be an alias
/// from there (ssh_config(5)).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Login name.
    pub user: Option<String>,
    /// Name, alias or IP address, an IPv6 address without its brackets.
    pub host: String,
    /// TCP port of its SSH server.
    pub port: Option<NonZeroU16>,
}

/// An address that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a host reached by SSH: {why}; write it like ssh://root@host or ssh://host:2222"
)]
pub struct BadAddress {
    /// The given address.
    text: String,
    /// What is wrong with it.
    why: &'static str,
}

const SCHEME: &str = "ssh://";

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = |why| BadAddress { text: text.into(), why };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| bad("it does not begin with ssh://"))?;
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, rest),
        };
        let (host, port) = host_and_port(place).ok_or_else(|| bad("its port is not 1 to 65535"))?;
        if !user.iter().all(|user| is_plain(user)) {
            return Err(bad("its user is not a plain name"));
        }
        if host.is_empty() {
            return Err(bad("it names no host"));
        }
        if !is_plain(host) {
            return Err(bad("its host is not a plain name or IP address"));
        }
        Ok(Self { user, host: host.into(), port })
    }
}

/// `None` if the part after the host is not a port.
fn host_and_port(place: &str) -> Option<(&str, Option<NonZeroU16>)> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port),
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    match port {
        "" => Some((host, None)),
        port => Some((host, Some(port.strip_prefix(':')?.parse().ok()?))),
    }
}

/// Whether ssh(1) can only read it as a name: not as an option, nor as anything special to a shell or to the
/// `%` of ssh_config(5), as in a `ProxyCommand` of the user.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '+');
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}

impl Address {
    /// Whether two addresses differ at most in what means the same to every resolver. Different addresses may still lead
    /// to one host.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.host.eq_ignore_ascii_case(&other.host)
            && (&self.user, self.port) == (&other.user, other.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn user_and_port_may_be_left_out() {
        let all: Address = "ssh://root@[2001:db8::1]:2222".parse().unwrap();
        assert_eq!((all.user.as_deref(), &*all.host), (Some("root"), "2001:db8::1"));
        assert_eq!(all.port.map(NonZeroU16::get), Some(2222));
        let least: Address = "ssh://b".parse().unwrap();
        assert_eq!(least, Address { user: None, host: "b".into(), port: None });
    }

    #[test]
    fn a_user_without_a_host_names_none() {
        for text in ["ssh://root@", "ssh://", "ssh://:22", "ssh://root@:22"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("names no host"), "{error}");
        }
    }

    #[test]
    fn nothing_passes_for_an_option_or_a_command() {
        for text in [
            "b",
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://-l@b",
            "ssh://a@-b",
            "ssh://@b",
            "ssh://a b",
            "ssh://a;b",
            "ssh://a'b",
            "ssh://%h",
            "ssh://b/path",
            "ssh://b:0",
            "ssh://b:65536",
            "ssh://b:x",
            "ssh://[::1",
            "ssh://[::1]x",
            "ssh://a@b@-c",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(text in "ssh://([a-z-]{1,4}@)?([a-z.-]{1,8}|\\[[0-9a-f:]{2,9}\\])(:[0-9]{1,5})?") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
            }
        }

        #[test]
        fn any_text_is_an_address_or_an_error(text in ".{0,32}") {
            let _ = text.parse::<Address>();
        }
    }
}
