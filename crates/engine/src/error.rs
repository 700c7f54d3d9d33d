//! The engine's errors, and the kind of each failure.

use goodput_capture::CaptureError;
use goodput_files::FileError;
use goodput_model::SettingRef;
use goodput_mover::socket::SocketError;
use goodput_remote::RemoteError;
use goodput_settings::{PrivateMountError, SettingError};
use goodput_wire::error::WireError;

/// Why a command of the engine did not complete.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The target could not be understood or reached.
    #[error("{0}")]
    Target(String),
    /// The conversation with the peer broke.
    #[error("{target}: {failure}")]
    Wire {
        /// The peer, as the user typed it.
        target: String,
        /// What happened.
        failure: WireError,
    },
    /// The peer refused the measurement, or broke it off.
    #[error("{target} refused: {why}")]
    Refused {
        /// The peer, as the user typed it.
        target: String,
        /// Why, in the peer's words.
        why: String,
    },
    /// A connection or a flow's socket could not be set up as the plan asks.
    #[error("{}", with_target(to, failure))]
    Socket {
        /// The target, or which flow.
        to: String,
        /// What happened.
        failure: SocketError,
    },
    /// A file server does not provide the file.
    #[error("{target}: {why}")]
    File {
        /// The target, as the user typed it.
        target: String,
        /// What happened.
        why: FileError,
    },
    /// The kernel does not list its TCP connections.
    #[error("can't list the TCP connections: {0}")]
    Connections(goodput_model::Missing),
    /// A data flow failed.
    #[error("{0}")]
    Flow(String),
    /// The peer broke off a data flow without saying why.
    #[error("{0}")]
    BrokenOff(String),
    /// The file's server, or a host that was to be changed, does not let this user go on.
    #[error("{0}")]
    Forbidden(String),
    /// A measurement achieved only a part of what was asked for, and only the whole is of use.
    #[error("{why}")]
    Incomplete {
        /// In words.
        why: String,
        /// Whether a privilege or a token is missing.
        not_permitted: bool,
    },
    /// Measuring did not end when it was asked to, at the end of the time or by an interrupt.
    #[error("{0}")]
    GivenUp(String),
    /// An operation of the operating system failed.
    #[error("can't {operation}: {cause}")]
    Io {
        /// What was tried, on what.
        operation: String,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// A file of this end can't be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Packets can't be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A setting could not be read, changed or put back.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A host reached by SSH could not be read, changed or put back.
    #[error(transparent)]
    Remote(Box<RemoteError>),
    /// The export of a mount could not be mounted with other options.
    #[error(transparent)]
    Mount(#[from] PrivateMountError),
    /// A setting of the far end could not be read, changed or put back.
    #[error("far end: {why}")]
    FarSetting {
        /// Whether a token or a privilege is missing there.
        not_permitted: bool,
        /// The setting of which the kernel there did not take the value, if that is why and the setting is as before:
        /// as the far host names its own settings.
        not_taken: Option<SettingRef>,
        /// Whether another run changes the far host now, or somebody puts back there what a run left.
        busy: bool,
        /// In the peer's words.
        why: String,
    },
    /// Something failed, and then something else could not be put back.
    #[error("{cause}; then, {not_back}")]
    NotPutBack {
        /// What failed first.
        cause: Box<EngineError>,
        /// What could not be put back, and why.
        not_back: Box<EngineError>,
    },
    /// Another program's transfer could not be watched.
    #[error("{why}")]
    Attach {
        /// Whether the rights of its user would help.
        not_permitted: bool,
        /// What is wrong, and what the user can do.
        why: String,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl From<RemoteError> for EngineError {
    fn from(error: RemoteError) -> Self {
        Self::Remote(Box::new(error))
    }
}

/// The failure, after the target or flow that it is about. A target that is the address of the failure stands once.
fn with_target(to: &str, failure: &SocketError) -> String {
    match to.contains(&failure.object) {
        true => failure.to_string(),
        false => format!("{to}: {failure}"),
    }
}

impl EngineError {
    /// Whether a host reached by SSH is lost. Such a host puts its changes back alone, so nothing more can be compared.
    pub(crate) fn has_lost_host(&self) -> bool {
        matches!(self, Self::Remote(error) if matches!(**error, RemoteError::Lost { .. }))
    }

    /// The setting of which a kernel did not take the value, if that is why, and nothing stayed changed: of this host,
    /// the far host or a host reached by SSH. Each names its own settings as those of the near end.
    pub(crate) fn not_taken(&self) -> Option<SettingRef> {
        match self {
            Self::Setting(error) => error.not_taken().cloned(),
            Self::Remote(error) => error.not_taken(),
            Self::FarSetting { not_taken, .. } => not_taken.clone(),
            _ => None,
        }
    }

    /// Whether the peer answers, but has no room for this now: what goodput's servers say then begins with `busy: `, and what
    /// goodput says of such an answer of iperf3's with `it is busy`.
    pub fn is_busy(&self) -> bool {
        let is_busy =
            |why: &String| ["busy: ", "it is busy"].iter().any(|word| why.starts_with(word));
        matches!(self, Self::Refused { why, .. } if is_busy(why))
    }

    /// Why a run failed, without what to do about it if the whole comparison ends with it.
    pub(crate) fn of_a_run(&self) -> String {
        match self {
            Self::Remote(error) => match &**error {
                RemoteError::Lost { host, .. } => format!("lost the connection to {host}"),
                error => error.to_string(),
            },
            error => error.to_string(),
        }
    }

    /// Names what was tried on what, for an error of the operating system.
    pub(crate) fn io(operation: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Self::Io { operation: operation.into(), cause }
    }

    /// Names the flow whose socket could not be set up.
    pub(crate) fn of_flow(id: u16) -> impl FnOnce(SocketError) -> Self {
        move |failure| Self::Socket { to: format!("flow {id}"), failure }
    }

    /// Why another program's transfer could not be watched.
    pub(crate) fn attach(why: impl Into<String>) -> Self {
        Self::Attach { not_permitted: false, why: why.into() }
    }

    /// Whether a privilege or a token is missing.
    pub fn not_permitted(&self) -> bool {
        match self {
            Self::Setting(error) => error.not_permitted(),
            Self::Remote(error) => error.not_permitted(),
            Self::NotPutBack { cause, .. } => cause.not_permitted(),
            Self::FarSetting { not_permitted, .. }
            | Self::Attach { not_permitted, .. }
            | Self::Incomplete { not_permitted, .. } => *not_permitted,
            Self::Forbidden(_) => true,
            Self::Storage(error) => error.not_permitted,
            Self::Mount(error) => error.not_permitted(),
            Self::Capture(error) => matches!(error, CaptureError::NotPermitted { .. }),
            Self::File { why, .. } => why.not_permitted(),
            Self::Wire { failure, .. } => matches!(failure, WireError::NotPermitted(_)),
            Self::Socket { failure, .. } => failure.is_not_permitted(),
            Self::Io { cause, .. } => cause.kind() == std::io::ErrorKind::PermissionDenied,
            Self::Target(_)
            | Self::Refused { .. }
            | Self::Connections(_)
            | Self::Flow(_)
            | Self::BrokenOff(_)
            | Self::GivenUp(_)
            | Self::Interrupted => false,
        }
    }
}

/// Why a file can't be read or written, in words: which operation failed on which file, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct StorageError {
    why: String,
    /// Whether a permission is missing.
    pub not_permitted: bool,
}

impl StorageError {
    /// The words for an error of the system.
    pub(crate) fn of(why: String, cause: &std::io::Error) -> Self {
        Self { why, not_permitted: cause.kind() == std::io::ErrorKind::PermissionDenied }
    }

    /// The same, followed by advice.
    pub(crate) fn and(self, advice: &str) -> Self {
        Self { why: self.why + advice, ..self }
    }
}

impl From<String> for StorageError {
    /// An error that no permission would change.
    fn from(why: String) -> Self {
        Self { why, not_permitted: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_not_be_read_is_not_permitted() {
        let failed = |kind: std::io::ErrorKind| {
            EngineError::from(StorageError::of("can't read x".into(), &kind.into()))
        };
        assert!(failed(std::io::ErrorKind::PermissionDenied).not_permitted());
        assert!(!failed(std::io::ErrorKind::NotFound).not_permitted());
    }

    #[test]
    fn a_socket_option_without_its_privilege_is_not_permitted() {
        let failure = |code| SocketError {
            operation: "use",
            object: "congestion control cubic".into(),
            cause: std::io::Error::from_raw_os_error(code),
            advice: None,
        };
        let error = EngineError::of_flow(0)(failure(1));
        assert!(error.not_permitted() && error.to_string().starts_with("flow 0: can't use"));
        assert!(!EngineError::of_flow(0)(failure(2)).not_permitted());
    }

    #[test]
    fn an_address_that_is_the_target_stands_once() {
        let failure = |object: &str| SocketError {
            operation: "connect to",
            object: object.into(),
            cause: std::io::Error::from_raw_os_error(111),
            advice: None,
        };
        let said = |to: &str| {
            EngineError::Socket { to: to.into(), failure: failure("127.0.0.1:9") }.to_string()
        };
        assert_eq!(said("127.0.0.1:9").matches("127.0.0.1:9").count(), 1);
        assert!(said("nas").starts_with("nas: "));
    }
}
