//! The operating systems, one folder each, and the list of all.

mod freebsd;
mod linux;

pub use freebsd::described as described_on_freebsd;

use crate::command::Command;
use crate::error::RemoteError;
use crate::shell::Shell;
use crate::system::System;

/// Every system that goodput can change by SSH.
pub const ALL: &[&dyn System] = &[&linux::Linux, &freebsd::FreeBsd];

/// The system of a host (uname(1)).
///
/// # Errors
/// When it is none of [`ALL`], or the host does not answer.
pub fn of(shell: &mut dyn Shell) -> Result<&'static dyn System, RemoteError> {
    let printed = shell.output(&Command::new("uname", ["-s"]))?;
    let name = printed.trim_end();
    ALL.iter()
        .find(|system| system.name() == name)
        .copied()
        .ok_or_else(|| RemoteError::UnknownSystem { host: shell.host().into(), name: name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    #[test]
    fn a_system_is_known_by_its_name() {
        let mut shell = Scripted::default().prints("uname -s", "Linux\n");
        assert_eq!(of(&mut shell).unwrap().name(), "Linux");
    }

    #[test]
    fn another_system_is_named() {
        let error = of(&mut Scripted::default().prints("uname -s", "SunOS\n")).err().unwrap();
        assert!(error.to_string().contains("SunOS"), "{error}");
    }
}
