//! Changes of this host's settings that their client has not confirmed yet: they go back if no full packets get through.

use std::time::{Duration, Instant};

use goodput_model::SettingRef;
use goodput_wire::session::CONFIRM_TIME;

/// Pause before a setting that could not be put back is tried again; twice as long after each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A setting, and its value before it was tried.
pub type Tried = (SettingRef, String);

/// The changes of one session that nobody has confirmed.
#[derive(Debug, Default)]
pub struct Unconfirmed {
    /// Those that may still be confirmed.
    tried: Vec<Tried>,
    until: Option<Instant>,
    /// Those that could not be put back.
    overdue: Vec<Tried>,
    /// When they are tried again, and the pause before that.
    again: Option<(Instant, Duration)>,
    /// What was to be put back because nobody confirmed it, until something else is tried.
    expired: Vec<SettingRef>,
}

impl Unconfirmed {
    /// A setting with this value `before` was tried at `now`. Everything unconfirmed has time from then on.
    pub fn tried(&mut self, setting: SettingRef, before: String, now: Instant) {
        let earlier = self.overdue.iter().position(|(known, _)| *known == setting);
        let before = earlier.map_or(before, |place| self.overdue.remove(place).1);
        if !self.tried.iter().any(|(known, _)| *known == setting) {
            self.tried.push((setting, before));
        }
        self.until = Some(now + CONFIRM_TIME);
        self.expired.clear();
    }

    /// The client has given a setting another value, which needs no confirmation.
    pub fn superseded(&mut self, setting: &SettingRef) {
        let is_overdue = |known: &SettingRef| self.overdue.iter().any(|(one, _)| one == known);
        self.expired.retain(|known| known != setting || !is_overdue(known));
        self.overdue.retain(|(known, _)| known != setting);
    }

    /// When something has to be put back, if anything has.
    pub fn due(&self) -> Option<Instant> {
        let again = self.again.map(|(at, _)| at).filter(|_| !self.overdue.is_empty());
        self.until.into_iter().chain(again).min()
    }

    /// The client has confirmed what it tried.
    ///
    /// # Errors
    /// If that came too late: what was put back, in words.
    pub fn confirm(&mut self) -> Result<(), String> {
        if !self.expired.is_empty() {
            return Err(self.too_late());
        }
        self.tried.clear();
        self.until = None;
        Ok(())
    }

    /// What became of the settings that nobody confirmed in time, in words. It is said once.
    fn too_late(&mut self) -> String {
        let is_overdue = |known: &SettingRef| self.overdue.iter().any(|(one, _)| one == known);
        let expired = std::mem::take(&mut self.expired);
        let (left, back): (Vec<_>, Vec<_>) = expired.into_iter().partition(is_overdue);
        let said = |settings: &[SettingRef], words: &str| {
            let names: Vec<String> = settings.iter().map(ToString::to_string).collect();
            (!names.is_empty()).then(|| format!("{} {words}", names.join(", ")))
        };
        let said = [said(&back, "was put back"), said(&left, "could not be put back yet")];
        let said: Vec<String> = said.into_iter().flatten().collect();
        let confirm_s = CONFIRM_TIME.as_secs();
        format!(
            "no full packets got through in both directions for {confirm_s} s after the change: {}",
            said.join("; ")
        )
    }

    /// What has to be put back at `now`, the last change first: what nobody has confirmed in time, and what could not be put
    /// back before.
    pub fn expire(&mut self, now: Instant) -> Vec<Tried> {
        if self.overdue.is_empty() {
            // What fails from now on has not failed before.
            self.again = None;
        }
        let overdue = match self.again {
            Some((at, _)) if at <= now => std::mem::take(&mut self.overdue),
            _ => Vec::new(),
        };
        if self.until.is_none_or(|until| until > now) {
            return overdue;
        }
        self.until = None;
        let mut back = std::mem::take(&mut self.tried);
        back.reverse();
        self.expired = back.iter().map(|(setting, _)| setting.clone()).collect();
        back.extend(overdue);
        back
    }

    /// What [`Self::expire`] returned could not be put back at `now`: it is due again after a pause.
    pub fn failed(&mut self, tried: Tried, now: Instant) {
        let pause = match self.again {
            // Another one of the same time.
            Some((at, pause)) if at > now => pause,
            Some((_, pause)) => (2 * pause).min(LONGEST_PAUSE),
            None => FIRST_PAUSE,
        };
        self.again = Some((now + pause, pause));
        self.overdue.push(tried);
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            unconfirmed.expire(later + CONFIRM_TIME),
            [(route, "none".into()), (mtu(), "1500".into())]
        );
        assert_eq!(unconfirmed.due(), None);
        let why = unconfirmed.confirm().unwrap_err();
        assert!(why.contains("link.mtu@eth0 was put back") && why.contains("8 s"), "{why}");
        assert_eq!(unconfirmed.confirm(), Ok(()), "it is said once");
    }

    #[test]
    fn what_could_not_be_put_back_is_due_again_ever_later_until_it_is_back() {
        let mut now = Instant::now();
        let mut unconfirmed = Unconfirmed::default();
        unconfirmed.tried(mtu(), "1500".into(), now);
        for pause_s in [1, 2, 4, 8, 16, 32, 60, 60] {
            now = unconfirmed.due().unwrap();
            let tried = unconfirmed.expire(now);
            assert_eq!(tried, [(mtu(), "1500".into())]);
            assert_eq!(unconfirmed.due(), None, "it is under way");
            unconfirmed.failed(tried[0].clone(), now);
            assert_eq!(unconfirmed.due(), Some(now + Duration::from_secs(pause_s)));
        }
        let why = unconfirmed.confirm().unwrap_err();
        assert!(why.ends_with("link.mtu@eth0 could not be put back yet"), "{why}");
        // Tried once more, it has the value before the first time to go back to.
        unconfirmed.tried(mtu(), "9000".into(), now);
        assert_eq!(unconfirmed.due(), Some(now + CONFIRM_TIME));
        assert_eq!(unconfirmed.expire(now + CONFIRM_TIME), [(mtu(), "1500".into())]);
        unconfirmed.failed((mtu(), "1500".into()), now);
        unconfirmed.superseded(&mtu());
        assert_eq!(unconfirmed.due(), None, "the client has given it another value");
        assert_eq!(unconfirmed.confirm(), Ok(()), "and nothing was put back");
    }

    #[test]
    fn the_pause_is_short_again_once_all_is_back() {
        let mut now = Instant::now();
        let mut unconfirmed = Unconfirmed::default();
        for _ in 0..2 {
            unconfirmed.tried(mtu(), "1500".into(), now);
            for pause_s in [1, 2, 4] {
                now = unconfirmed.due().unwrap();
                let tried = unconfirmed.expire(now).swap_remove(0);
                unconfirmed.failed(tried, now);
                assert_eq!(unconfirmed.due(), Some(now + Duration::from_secs(pause_s)));
            }
            now = unconfirmed.due().unwrap();
            assert_eq!(unconfirmed.expire(now).len(), 1);
            assert_eq!(unconfirmed.due(), None, "it is back");
        }
    }
}
