//! The one place that decides what a client may do, by what it has proven about itself.
//!
//! Sessions of every protocol report what a client has proven ([`Action::Proven`]) and then ask for
//! what it wants. A protocol that has no words for credentials reports nothing, so it can't forget to
//! refuse anybody.

use goodput_wire::session::{Action, CREDENTIAL_REQUIRED, Credential};

/// Who may do what.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// Whether a client that has proven nothing may not measure.
    pub credential_required: bool,
}

impl Gate {
    /// Whether a client that has proven this may measure; if not, why.
    pub fn may_measure(&self, proven: Option<&Credential>) -> Result<(), String> {
        if self.credential_required && proven.is_none() {
            return Err(CREDENTIAL_REQUIRED.into());
        }
        Ok(())
    }
}

/// Whether an action takes this host's resources for a measurement.
pub fn is_measurement(action: &Action) -> bool {
    matches!(
        action,
        Action::ExpectFlows { .. } | Action::Echo(_) | Action::RunErrand(_) | Action::Converse
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_proves_something_measures_where_that_is_asked_for() {
        let open = Gate { credential_required: false };
        assert!(open.may_measure(None).is_ok());
        let closed = Gate { credential_required: true };
        assert!(closed.may_measure(None).unwrap_err().contains("token"));
        for proven in [Credential::Token, Credential::User("mario".into())] {
            assert!(closed.may_measure(Some(&proven)).is_ok());
        }
    }
}
