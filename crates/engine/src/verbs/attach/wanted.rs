//! Which transfer to watch: a process, or a port of either end.

use std::fmt;
use std::str::FromStr;

use goodput_kernel::{Owner, SocketFilter, foreign_sockets};

use crate::error::EngineError;

/// Whose transfer to watch, as the user writes it: `PID`, `PORT`, `pid:PID` or `port:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachTo {
    /// The connections of a process.
    Process(u32),
    /// The connections that have this port at either end.
    Port(u16),
    /// Either: a process if there is one with this id, else a port.
    Number(u32),
}

/// The same once it is known which of the two a plain number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolvedTarget {
    /// The connections of a process.
    Process(u32),
    /// The connections that have this port at either end.
    Port(u16),
}

impl FromStr for AttachTo {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let (kind, number) = text.split_once(':').unwrap_or(("", text));
        let wrong = || {
            EngineError::attach(format!(
                "{text:?} is neither a process id nor a port; write PID, PORT, pid:PID or port:PORT"
            ))
        };
        let number: u32 = number.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
        match (kind, u16::try_from(number)) {
            ("" | "pid", _) if !text.contains(':') => Ok(Self::Number(number)),
            ("pid", _) => Ok(Self::Process(number)),
            ("port" | "", Ok(port)) => Ok(Self::Port(port)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for ResolvedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => match Owner::of(*pid) {
                Some(owner) => write!(f, "process {pid} ({})", owner.name),
                None => write!(f, "process {pid}"),
            },
            Self::Port(port) => write!(f, "port {port}"),
        }
    }
}

/// Decides what a plain number means. If it is both a process and a port in use, the user has to say
/// which.
pub fn resolve(to: AttachTo) -> Result<ResolvedTarget, EngineError> {
    let number = match to {
        AttachTo::Process(pid) => return Ok(ResolvedTarget::Process(pid)),
        AttachTo::Port(port) => return Ok(ResolvedTarget::Port(port)),
        AttachTo::Number(number) => number,
    };
    let process = Owner::of(number);
    let port = u16::try_from(number).ok();
    let used = port.filter(|port| is_used(*port));
    match (process, used, port) {
        (Some(owner), Some(_), _) => Err(EngineError::attach(format!(
            "{number} is a process ({}) and a port in use; write pid:{number} or port:{number}",
            owner.name
        ))),
        (Some(_), None, _) => Ok(ResolvedTarget::Process(number)),
        (None, _, Some(port)) => Ok(ResolvedTarget::Port(port)),
        (None, _, None) => Err(EngineError::attach(format!(
            "there is no process {number}, and the number is too high for a port; check if the process still runs"
        ))),
    }
}

fn is_used(port: u16) -> bool {
    let filter = SocketFilter { port: Some(port), ..SocketFilter::default() };
    foreign_sockets(&filter).is_ok_and(|sockets| !sockets.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_a_port_can_be_distinguished() {
        let read = |text: &str| text.parse::<AttachTo>().ok();
        assert_eq!(read("5201"), Some(AttachTo::Number(5201)));
        assert_eq!(read("pid:70000"), Some(AttachTo::Process(70_000)));
        assert_eq!(read("port:443"), Some(AttachTo::Port(443)));
        assert_eq!(read(":443"), Some(AttachTo::Port(443)));
        for wrong in ["", "0", "-1", "x", "port:70000", "pid:", "udp:5", "port:0", "1:2:3"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_number_too_high_for_a_port_is_a_process_or_nothing() {
        let error = resolve(AttachTo::Number(u32::MAX)).unwrap_err().to_string();
        assert!(error.contains("no process"), "{error}");
        let me = std::process::id();
        if me > 65_535 {
            assert_eq!(resolve(AttachTo::Number(me)).unwrap(), ResolvedTarget::Process(me));
        }
    }
}
