//! Who requests changes, and who must not change anything at the same time.

use serde::{Deserialize, Serialize};

/// Who requested the changes of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// The user who started the process.
    #[default]
    User,
    /// A client of the server here that also runs on this host.
    ClientHere,
    /// A client of the server here that runs on another host.
    ClientElsewhere,
}

impl Asker {
    /// Whether it is the user who started the process.
    pub(super) fn is_user(&self) -> bool {
        *self == Self::User
    }

    /// Whether two simultaneous runs would spoil each other's measurements. A client on this host may be the
    /// same run as one that changes this host itself: both of its ends are here.
    pub(super) fn excludes(self, other: Self) -> bool {
        !matches!((self, other), (Self::User, Self::ClientHere) | (Self::ClientHere, Self::User))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_ends_of_one_run_may_change_a_host_together() {
        use Asker::{ClientElsewhere, ClientHere, User};
        for (one, other, excludes) in [
            (User, User, true),
            (User, ClientHere, false),
            (User, ClientElsewhere, true),
            (ClientHere, ClientHere, true),
            (ClientHere, ClientElsewhere, true),
            (ClientElsewhere, ClientElsewhere, true),
        ] {
            assert_eq!(one.excludes(other), excludes, "{one:?} {other:?}");
            assert_eq!(other.excludes(one), excludes, "{other:?} {one:?}");
        }
    }
}
