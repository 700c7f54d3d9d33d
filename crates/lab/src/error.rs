//! The lab's errors: what was tried, on what, why it failed, and what helps.

use std::io;

use goodput_relay::RelayError;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A scenario file that is not a valid scenario.
    #[error("scenario {origin}: {problem}")]
    Scenario {
        /// The file or the built-in scenario.
        origin: String,
        /// Where, what is wrong and what is expected.
        problem: String,
    },
    /// Neither a built-in scenario nor a file.
    #[error(
        "there is no scenario {name:?}{hint}; `goodput lab list` shows all, and a path to a file works too"
    )]
    UnknownScenario {
        /// The name as requested.
        name: String,
        /// The nearest name as a question, or nothing.
        hint: String,
    },
    /// The system does not let this user make network namespaces.
    #[error("can't make network namespaces: {why}; {remedy}")]
    Forbidden {
        /// What forbids it.
        why: String,
        /// What the user can do.
        remedy: String,
    },
    /// Privileges were requested too late.
    #[error(
        "can't enter a user namespace: the process already has {threads} threads, and the kernel admits only single-threaded processes (user_namespaces(7)); call privilege::enter first"
    )]
    Threads {
        /// Current number of threads.
        threads: usize,
    },
    /// Something that the scenario needs is missing.
    #[error("scenario {scenario} can't run here: it needs {needs}")]
    NotHere {
        /// Its name.
        scenario: String,
        /// What is missing and why.
        needs: String,
        /// Whether a permission is among the missing things.
        not_permitted: bool,
    },
    /// A fault that can't be planted as requested.
    #[error("can't plant the fault {kind} on {host}: {why}")]
    Fault {
        /// Kind of the fault.
        kind: &'static str,
        /// Host of the lab.
        host: String,
        /// Cause, and what helps.
        why: String,
    },
    /// A system call or a file.
    #[error("can't {what} {object}: {source}")]
    Io {
        /// The operation, a verb.
        what: &'static str,
        /// Its object.
        object: String,
        /// The cause.
        source: io::Error,
    },
    /// A request to the kernel's network configuration.
    #[error("{host} of the lab: {source}")]
    Netlink {
        /// Host of the lab.
        host: String,
        /// Operation and cause.
        source: goodput_netlink::NetlinkError,
    },
    /// The hosts exist, but do not reach each other.
    #[error("the lab's hosts do not reach each other: {why}")]
    Unreachable {
        /// Which connection was tried, and the outcome.
        why: String,
    },
    /// A program that the lab started.
    #[error("{what}: {problem}{output}")]
    Process {
        /// Which program, in which host.
        what: String,
        /// What it did or failed to do.
        problem: String,
        /// What it wrote to stderr, or nothing.
        output: String,
    },
}

impl From<RelayError> for LabError {
    fn from(RelayError { what, object, source }: RelayError) -> Self {
        Self::Io { what, object: object.into(), source }
    }
}

impl LabError {
    /// Whether a privilege is missing (exit code 3).
    pub fn not_permitted(&self) -> bool {
        match self {
            Self::Forbidden { .. } => true,
            Self::NotHere { not_permitted, .. } => *not_permitted,
            _ => false,
        }
    }
}
