//! Changes of this host's settings that their client has not confirmed yet: they go back if no full packets get through.

use std::time::Instant;

use goodput_model::SettingRef;
use goodput_wire::session::CONFIRM_TIME;

/// The changes of one session that nobody has confirmed.
#[derive(Debug, Default)]
pub struct Unconfirmed {
    /// The settings, each with its value before.
    tried: Vec<(SettingRef, String)>,
    until: Option<Instant>,
    /// What was put back because nobody confirmed it, in words, until something else is tried.
    expired: Option<String>,
}

impl Unconfirmed {
    /// A setting with this value `before` was tried at `now`. Everything unconfirmed has time from then on.
    pub fn tried(&mut self, setting: SettingRef, before: String, now: Instant) {
        if !self.tried.iter().any(|(known, _)| *known == setting) {
            self.tried.push((setting, before));
        }
        self.until = Some(now + CONFIRM_TIME);
        self.expired = None;
    }

    /// When to put back what is not confirmed by then; `None` if nothing is unconfirmed.
    pub fn due(&self) -> Option<Instant> {
        self.until
    }

    /// The client has confirmed what it tried.
    ///
    /// # Errors
    /// If that came too late: what was put back, in words.
    pub fn confirm(&mut self) -> Result<(), String> {
        match self.expired.take() {
            Some(why) => Err(why),
            None => {
                *self = Self::default();
                Ok(())
            }
        }
    }

    /// What has to be put back because nobody has confirmed it, the last change first.
    pub fn expire(&mut self) -> Vec<(SettingRef, String)> {
        let mut back = std::mem::take(self).tried;
        back.reverse();
        let names: Vec<String> = back.iter().map(|(setting, _)| setting.to_string()).collect();
        self.expired = Some(format!(
            "{} was put back, because no full packets got through in both directions for {} s after the change",
            names.join(", "),
            CONFIRM_TIME.as_secs()
        ));
        back
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn mtu() -> SettingRef {
        "link.mtu@eth0".parse().unwrap()
    }

    #[test]
    fn what_is_confirmed_stays() {
        let now = Instant::now();
        let mut unconfirmed = Unconfirmed::default();
        assert_eq!((unconfirmed.due(), unconfirmed.confirm()), (None, Ok(())));
        unconfirmed.tried(mtu(), "1500".into(), now);
        assert_eq!(unconfirmed.due(), Some(now + CONFIRM_TIME));
        assert_eq!((unconfirmed.confirm(), unconfirmed.due()), (Ok(()), None));
    }

    #[test]
    fn what_is_not_confirmed_goes_back_to_what_it_was_first_and_the_client_learns_it() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let route: SettingRef = "route.window@10.0.0.0/8".parse().unwrap();
        let mut unconfirmed = Unconfirmed::default();
        unconfirmed.tried(mtu(), "1500".into(), now);
        unconfirmed.tried(route.clone(), "none".into(), now);
        unconfirmed.tried(mtu(), "9000".into(), later);
        assert_eq!(unconfirmed.due(), Some(later + CONFIRM_TIME));
        assert_eq!(unconfirmed.expire(), [(route, "none".into()), (mtu(), "1500".into())]);
        assert_eq!(unconfirmed.due(), None);
        let why = unconfirmed.confirm().unwrap_err();
        assert!(why.contains("link.mtu@eth0 was put back") && why.contains("8 s"), "{why}");
        assert_eq!(unconfirmed.confirm(), Ok(()), "it is said once");
    }
}
