//! Errors of requests to the kernel.

use std::io;

/// Why the kernel did not do, or did not report, what was requested.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The kernel refused.
    #[error("can't {operation}: {cause}{}{}", says(.explanation), advice(.cause))]
    Refused {
        /// The request, with its object: "change the mtu of link 7".
        operation: String,
        /// The kernel's error number.
        cause: io::Error,
        /// The kernel's explanation, if any (NLMSGERR_ATTR_MSG).
        explanation: Option<String>,
    },
    /// The reply contradicts the kernel's headers.
    #[error("can't {operation}: reply not understood: {why}; please report this kernel's version")]
    Malformed {
        /// The request, with its object.
        operation: String,
        /// What is wrong with the reply.
        why: String,
    },
    /// The request itself can't be made.
    #[error("can't {operation}: {why}")]
    Impossible {
        /// The request, with its object.
        operation: String,
        /// Why it can't be made.
        why: String,
    },
}

impl NetlinkError {
    pub(crate) fn refused(operation: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        Self::Refused { operation: operation.into(), cause: cause.into(), explanation: None }
    }

    pub(crate) fn malformed(operation: impl Into<String>, why: impl ToString) -> Self {
        Self::Malformed { operation: operation.into(), why: why.to_string() }
    }

    pub(crate) fn impossible(operation: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Impossible { operation: operation.into(), why: why.into() }
    }

    /// A privilege is missing: usually CAP_NET_ADMIN over this network namespace.
    pub fn not_permitted(&self) -> bool {
        matches!(self.errno(), Some(libc::EPERM | libc::EACCES))
    }

    /// The kernel, the device or its driver does not support this.
    pub fn not_supported(&self) -> bool {
        matches!(self.errno(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
    }

    /// The link, route, address or qdisc does not exist.
    pub fn not_found(&self) -> bool {
        matches!(self.errno(), Some(libc::ENODEV | libc::ENOENT | libc::ESRCH | libc::ENXIO))
    }

    /// The kernel's error number, if it refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { cause, .. } => cause.raw_os_error(),
            Self::Malformed { .. } | Self::Impossible { .. } => None,
        }
    }
}

fn says(explanation: &Option<String>) -> String {
    explanation.as_ref().map(|words| format!(": {words}")).unwrap_or_default()
}

fn advice(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "; needs CAP_NET_ADMIN in this network namespace",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_operation_cause_and_remedy() {
        let error = NetlinkError::Refused {
            operation: "set link 7 up".into(),
            cause: io::Error::from_raw_os_error(libc::EPERM),
            explanation: Some("not yours".into()),
        };
        assert!(error.not_permitted() && !error.not_found() && !error.not_supported());
        let text = error.to_string();
        assert!(text.starts_with("can't set link 7 up: "), "{text}");
        assert!(text.contains("not yours") && text.contains("CAP_NET_ADMIN"), "{text}");
    }
}
