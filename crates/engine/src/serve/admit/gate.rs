//! The one place that decides what a client may do, by what it has proven about itself.
//!
//! Sessions of every protocol report what a client has proven (`Action::Proven`) and then ask for what
//! it wants. A protocol without credentials reports nothing, so it can't forget to refuse anyone.

use std::sync::Arc;

use goodput_settings::allowlist::AllowedSettings;
use goodput_wire::keys::AuthorizedKey;
use goodput_wire::session::{CREDENTIAL_REQUIRED, Credential, SettingRefusal, SettingRequest};

/// Who may do what.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    /// Whether a client must prove something to measure.
    pub credential_required: bool,
    /// What clients with the right to change settings may reach.
    pub settings: &'a AllowedSettings,
}

/// Shows that the gate was asked before resources are taken, and for whom; nothing else makes one.
#[derive(Debug)]
pub struct Permit(Option<Arc<AuthorizedKey>>);

impl Permit {
    /// The client's key, if the client is known by one.
    pub fn key(&self) -> Option<&AuthorizedKey> {
        self.0.as_deref()
    }

    /// The permit of a server whose gate is open.
    #[cfg(test)]
    pub fn any() -> Self {
        Self(None)
    }

    /// The permit of a client with this key.
    #[cfg(test)]
    pub fn of(key: Arc<AuthorizedKey>) -> Self {
        Self(Some(key))
    }
}

impl Gate<'_> {
    /// Lets a client with this credential measure, or says why not.
    pub fn may_measure(&self, proven: Option<&Credential>) -> Result<Permit, String> {
        if self.credential_required && proven.is_none() {
            return Err(CREDENTIAL_REQUIRED.into());
        }
        Ok(Permit(match proven {
            Some(Credential::Key(key)) => Some(Arc::clone(key)),
            _ => None,
        }))
    }

    /// Whether this end may carry out a setting request for a client with this credential. The settings helper, which
    /// knows what was there before, checks the value.
    pub fn may_ask(
        &self,
        proven: Option<&Credential>,
        request: &SettingRequest,
    ) -> Result<(), SettingRefusal> {
        let refused = |why: &str| {
            Err(SettingRefusal { not_permitted: true, why: why.into(), ..Default::default() })
        };
        if !proven.is_some_and(Credential::may_change_settings) {
            let who = match proven {
                Some(credential) => format!("{credential} is for measuring only"),
                None => "the client has shown no credential".into(),
            };
            return refused(&format!("{who}; settings need one with the role settings"));
        }
        if self.settings.is_empty() {
            return refused(
                "this server allows no client to change settings; start it with --allow-settings '*', or with a pattern",
            );
        }
        let checked = match request {
            SettingRequest::Read(setting) => self.settings.check_read(setting),
            SettingRequest::Check(arm) => {
                arm.iter().try_for_each(|(setting, _)| self.settings.check_change(setting))
            }
            SettingRequest::Apply(setting, _) | SettingRequest::Try(setting, _) => {
                self.settings.check_change(setting)
            }
            SettingRequest::Echo(_)
            | SettingRequest::EchoAll(_)
            | SettingRequest::Confirm
            | SettingRequest::Place
            | SettingRequest::Hold
            | SettingRequest::Restore => Ok(()),
        };
        checked.map_err(|error| SettingRefusal {
            not_permitted: error.not_permitted(),
            why: error.to_string(),
            ..Default::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_proves_something_measures_where_that_is_asked_for() {
        let none = AllowedSettings::default();
        let open = Gate { credential_required: false, settings: &none };
        assert!(open.may_measure(None).is_ok());
        let closed = Gate { credential_required: true, settings: &none };
        assert!(closed.may_measure(None).unwrap_err().contains("token"));
        for proven in [Credential::Token { settings: false }, Credential::User("mario".into())] {
            assert!(closed.may_measure(Some(&proven)).is_ok());
        }
    }

    #[test]
    fn settings_take_a_credential_with_the_role_and_a_name_that_is_allowed() {
        let read = |name: &str| SettingRequest::Read(name.parse().unwrap());
        let (rmem, wmem) = ("sysctl.net.ipv4.tcp_rmem", "sysctl.net.ipv4.tcp_wmem");
        let allowed = AllowedSettings::new(vec![rmem.parse().unwrap()]);
        let gate = Gate { credential_required: false, settings: &allowed };
        let why = |proven: Option<&Credential>, request| gate.may_ask(proven, &request).err();
        let token = Credential::Token { settings: true };
        assert_eq!(why(Some(&token), read(rmem)), None);
        assert_eq!(why(Some(&token), SettingRequest::Restore), None);
        for (proven, request) in [
            (None, read(rmem)),
            (None, SettingRequest::Restore),
            (None, SettingRequest::Echo("a".into())),
            (None, SettingRequest::EchoAll(vec!["a".into()])),
            (None, SettingRequest::Confirm),
            (None, SettingRequest::Place),
            (None, SettingRequest::Hold),
            (Some(&Credential::Token { settings: false }), SettingRequest::Hold),
            (Some(&Credential::User("mario".into())), read(rmem)),
            (Some(&Credential::Token { settings: false }), read(rmem)),
            (Some(&token), read(wmem)),
            (Some(&token), read("sysctl.net.ipv4.tcp_fastopen_key")),
            (Some(&token), SettingRequest::Check(vec![(wmem.parse().unwrap(), "1 1 1".into())])),
            (Some(&token), SettingRequest::Apply(wmem.parse().unwrap(), "1 1 1".into())),
            (Some(&token), SettingRequest::Try(wmem.parse().unwrap(), "1 1 1".into())),
        ] {
            assert!(why(proven, request.clone()).unwrap().not_permitted, "{proven:?} {request:?}");
        }
        let none = Gate { credential_required: false, settings: &AllowedSettings::default() };
        let refusal = none.may_ask(Some(&token), &read(rmem)).unwrap_err();
        assert!(refusal.why.contains("--allow-settings"), "{}", refusal.why);
    }

    /// What every client learns about this host, without any right to read settings.
    #[test]
    fn no_snapshot_has_a_sysctl_that_others_may_not_read() {
        let context = goodput_kernel::Context::towards(([127, 0, 0, 1], 0).into());
        let snapshot = goodput_kernel::snapshot(&context);
        let readable: Vec<_> =
            snapshot.facts.keys().filter(|name| name.starts_with("sysctl.")).collect();
        assert!(readable.len() > 10, "{readable:?}");
        for name in readable {
            assert!(goodput_settings::allowlist::listed(name).is_some(), "{name}");
        }
    }
}
