//! What can go wrong with a socket: operation, object, cause, and what to do.

use std::fmt::Display;
use std::fs;
use std::io;

/// A socket that could not be set up as requested.
#[derive(Debug, thiserror::Error)]
#[error("can't {operation} {object}: {cause}{}", .advice.as_ref().map(|a| format!("; {a}")).unwrap_or_default())]
pub struct SocketError {
    /// What was tried: "connect to".
    pub operation: &'static str,
    /// The object: an address, an option with its value.
    pub object: String,
    /// The system's words.
    pub cause: io::Error,
    /// What the user can do, if anything.
    pub advice: Option<String>,
}

impl SocketError {
    /// Whether a privilege is missing, not anything else.
    pub fn is_not_permitted(&self) -> bool {
        matches!(self.cause.raw_os_error(), Some(libc::EPERM | libc::EACCES))
    }

    /// Whether another connection uses the local port. Binding to the port is then refused. If the other connection
    /// only waits for its last packets to die (TIME_WAIT), connecting from the port to the same peer is refused, unless that
    /// connection had timestamps (net/ipv4/tcp_ipv4.c, `tcp_twsk_unique`).
    pub(super) fn is_of_a_taken_port(&self) -> bool {
        match self.cause.raw_os_error() {
            Some(libc::EADDRINUSE) => true,
            Some(libc::EADDRNOTAVAIL) => self.operation == "connect to",
            _ => false,
        }
    }

    /// An option that contradicts itself, found before the system was asked.
    pub(super) fn invalid(operation: &'static str, object: impl Display, why: &str) -> Self {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, why);
        Self { operation, object: object.to_string(), cause, advice: None }
    }

    /// For `map_err`: an error of `operation` on `object`, with the advice its cause suggests.
    pub(super) fn of(
        operation: &'static str,
        object: impl Display,
    ) -> impl FnOnce(io::Error) -> Self {
        move |cause| {
            let advice = advice(&cause);
            Self { operation, object: object.to_string(), cause, advice }
        }
    }

    /// The same for an operation with a known privilege that is missing if the operation is not permitted.
    pub(super) fn of_privilege(
        operation: &'static str,
        object: impl Display,
        needs: impl Into<String>,
    ) -> impl FnOnce(io::Error) -> Self {
        let error = Self::of(operation, object);
        move |cause| {
            let error = error(cause);
            let advice = if error.is_not_permitted() { Some(needs.into()) } else { error.advice };
            Self { advice, ..error }
        }
    }

    /// For `map_err`: the congestion control `name` could not be set.
    pub(super) fn of_congestion(name: &str) -> impl FnOnce(io::Error) -> Self {
        let object = format!("congestion control {name}");
        move |cause| {
            let advice = match cause.raw_os_error() {
                Some(libc::EPERM) => listed("tcp_allowed_congestion_control").map(|allowed| {
                    format!(
                        "without CAP_NET_ADMIN only these are allowed: {allowed} (sysctl \
                         net.ipv4.tcp_allowed_congestion_control)"
                    )
                }),
                Some(libc::ENOENT) => listed("tcp_available_congestion_control").map(|available| {
                    format!("this kernel has: {available}; others may need a module to be loaded")
                }),
                _ => None,
            };
            Self { operation: "use", object, cause, advice }
        }
    }
}

impl From<SocketError> for io::Error {
    /// Keeps the kind and the full text.
    fn from(error: SocketError) -> Self {
        Self::new(error.cause.kind(), error)
    }
}

fn listed(sysctl: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{sysctl}")).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(", "))
}

fn advice(cause: &io::Error) -> Option<String> {
    let fixed = match cause.raw_os_error() {
        Some(libc::ECONNREFUSED) => "nothing listens there; is the server running?",
        Some(libc::EADDRNOTAVAIL) => "no device of this host has that address",
        Some(libc::EADDRINUSE) => "another program uses this port; choose another or stop it",
        Some(libc::ENODEV) => "there is no device of this name; `ip link` lists them",
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH) => "check the route to that address",
        Some(libc::EMFILE) => return Some(descriptors()),
        Some(libc::ENFILE) => {
            "the whole system is out of file descriptors; raise sysctl fs.file-max"
        }
        Some(libc::EPERM | libc::EACCES) => "this needs a privilege; run as root or grant it",
        Some(libc::EPROTONOSUPPORT | libc::ENOPROTOOPT) => {
            "this kernel has no MPTCP, or it is switched off (sysctl net.mptcp.enabled)"
        }
        Some(libc::EAFNOSUPPORT) => "this kernel does not have that IP version",
        _ if cause.kind() == io::ErrorKind::TimedOut => {
            "no answer; check the address and firewalls on the path"
        }
        _ => return None,
    };
    Some(fixed.into())
}

/// What to do when this process has no descriptor left.
fn descriptors() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit =
        limit.map_or_else(|| "its limit of".into(), |limit| format!("its limit of {limit}"));
    format!(
        "this process has reached {limit} open descriptors; raise it (ulimit -n) or use fewer flows"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_congestion_control_error_names_which_are_allowed() {
        let forbidden = io::Error::from_raw_os_error(libc::EPERM);
        let error = SocketError::of_congestion("cubic")(forbidden);
        assert!(error.is_not_permitted());
        let words = error.to_string();
        assert!(words.starts_with("can't use congestion control cubic: "), "{words}");
        assert!(words.contains("only these are allowed: "), "{words}");
    }

    #[test]
    fn no_descriptor_left_names_the_limit() {
        let full = io::Error::from_raw_os_error(libc::EMFILE);
        let words = SocketError::of("make a socket for", "192.0.2.1:1")(full).to_string();
        assert!(words.contains("open descriptors; raise it (ulimit -n)"), "{words}");
    }
}
