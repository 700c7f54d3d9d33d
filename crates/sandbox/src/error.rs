//! Why a process could not drop its privileges.

use std::io;

/// Why a process could not drop its privileges.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// There is no such user.
    #[error("there is no user {0:?}; `--user` names another one")]
    NoUser(String),
    /// Only root can become someone else.
    #[error("only root can become user {0:?}; start the server as root, or as that user")]
    NotRoot(String),
    /// The user namespace has no such user.
    #[error("this user namespace has no user {name} (id {id}); `--user root` stays who it is")]
    NotMapped {
        /// The user's name.
        name: String,
        /// The user's or the group's number.
        id: u32,
    },
    /// The process has more threads than the calling one.
    #[error("can't give up privileges while {0} threads run")]
    Threads(usize),
    /// The user that the server becomes has no access to a directory that the server needs.
    #[error(
        "user {user} can't {purpose} {directory}: {cause}; change its owner or its mode, or choose \
         another `--user`"
    )]
    Closed {
        /// The user.
        user: String,
        /// `read` or `write`.
        purpose: &'static str,
        /// The directory.
        directory: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// Something that this kernel should support failed.
    #[error("can't {what}: {cause}; --no-sandbox serves without it")]
    Failed {
        /// The operation.
        what: String,
        /// The error of the kernel or a library.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SandboxError {
    /// Whether a privilege is missing, rather than anything else (exit code 3).
    pub fn not_permitted(&self) -> bool {
        match self {
            Self::NotRoot(_) => true,
            Self::Closed { cause, .. } => cause.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }

    /// The failure of `what`.
    pub(crate) fn of<E: std::error::Error + Send + Sync + 'static>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |cause| Self::Failed { what, cause: Box::new(cause) }
    }
}
