//! Whom this run waits for at a host, for a person who waits as well.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Who started a process at a host, and when, as far as the host shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whose {
    /// The user's name, or number.
    pub user: String,
    /// The host from which the user logged in.
    pub from: Option<IpAddr>,
    /// How long ago the process began.
    pub age: Option<Duration>,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of {}", self.user)?;
        if let Some(from) = self.from {
            write!(f, " from {from}")?;
        }
        match self.age {
            Some(age) => write!(f, ", began {} s ago", age.as_secs()),
            None => Ok(()),
        }
    }
}

/// A process at a host, in words: `process 812 there, of root from 192.0.2.7, began 35 s ago`.
pub(crate) fn process(pid: u32, whose: Option<&Whose>) -> String {
    let whose = whose.map(|whose| format!(", {whose}"));
    format!("process {pid} there{}", whose.unwrap_or_default())
}

/// A process at a host that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedThere {
    /// The host, as `ssh://…`.
    pub host: String,
    /// Its id there.
    pub pid: u32,
    /// Whose it is; `None` if the host does not show it, or if it has just ended.
    pub whose: Option<Whose>,
    /// What it does, as the rest of a sentence.
    pub does: &'static str,
    /// How much longer it is waited for at most.
    pub left: Duration,
}

impl fmt::Display for AwaitedThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = process(self.pid, self.whose.as_ref());
        let (host, does, left_s) = (&self.host, self.does, self.left.as_secs_f64().ceil());
        write!(
            f,
            "{host}: waiting for another goodput, which {does} (at most {left_s} s; {process})"
        )
    }
}

/// Is told what this run waits for, if that takes longer than a moment. By default, nobody is.
#[derive(Clone, Default)]
pub struct Notify(Option<Arc<Tell>>);

/// How it is told.
type Tell = dyn Fn(&AwaitedThere) + Send + Sync;

impl Notify {
    /// Tells each of them this way.
    pub fn by(tell: impl Fn(&AwaitedThere) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// Tells it, if anybody listens.
    pub(crate) fn tell(&self, awaited: &AwaitedThere) {
        if let Self(Some(tell)) = self {
            tell(awaited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_waited_for_and_since_when_is_said() {
        let whose = Whose {
            user: "root".into(),
            from: Some(IpAddr::from([192, 0, 2, 7])),
            age: Some(Duration::from_secs(35)),
        };
        let mut awaited = AwaitedThere {
            host: "ssh://b".into(),
            pid: 812,
            whose: Some(whose),
            does: "puts back what an ended run left",
            left: Duration::from_secs_f64(28.6),
        };
        assert_eq!(
            awaited.to_string(),
            "ssh://b: waiting for another goodput, which puts back what an ended run left (at most 29 s; process 812 there, \
             of root from 192.0.2.7, began 35 s ago)"
        );
        awaited.whose = None;
        assert!(awaited.to_string().ends_with("(at most 29 s; process 812 there)"));
    }
}
