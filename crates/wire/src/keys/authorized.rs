//! The clients that a server knows: a file with a line for each, like ssh's `authorized_keys` (sshd(8)).
//!
//! ```text
//! # NAME          ROLE      KEY                 OPTIONS
//! ann@laptop      measure   x25519:mY5b…
//! ops@fleet       settings  x25519:Qr0x…        max-duration=1h from=192.0.2.0/24,2001:db8::/32
//! ```

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::BitRate;

use super::{KeyError, PrivateKey, PublicKey, checked_name, lines};
use crate::limits::Limits;
use crate::network::Network;

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRole {
    /// Measure.
    Measure,
    /// Measure, and read and change the settings that the server's operator has named.
    Settings,
}

impl KeyRole {
    /// Every role with its word.
    const ALL: [(&'static str, Self); 2] =
        [("measure", Self::Measure), ("settings", Self::Settings)];
}

/// A client that is known by its key.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizedKey {
    /// Who it is, for logs.
    pub name: String,
    /// What it may do.
    pub role: KeyRole,
    /// Its key.
    pub key: PublicKey,
    /// Highest rate of all this client's measurements together, in each direction, instead of the server's limit for
    /// one client.
    pub max_rate: Option<BitRate>,
    /// Longest measurement, seconds, instead of the server's own.
    pub max_duration_s: Option<f64>,
    /// Measurements at the same time.
    pub max_measurements: Option<u32>,
    /// The networks that it may connect from; empty: any.
    pub from: Vec<Network>,
}

impl AuthorizedKey {
    /// What it may ask for, if other clients may ask for `limits`.
    pub fn limits(&self, limits: Limits) -> Limits {
        Limits {
            duration_s: self.max_duration_s.unwrap_or(limits.duration_s),
            rate_bits_per_s: self.max_rate.map(|rate| rate.0).or(limits.rate_bits_per_s),
            ..limits
        }
    }

    fn parse(words: &[&str]) -> Result<Self, String> {
        let &[name, role, key, ref options @ ..] = words else {
            return Err("a line has the form NAME ROLE KEY [OPTIONS]".into());
        };
        let roles = || KeyRole::ALL.map(|(word, _)| word).join(" or ");
        let known = KeyRole::ALL.into_iter().find(|(word, _)| *word == role);
        let mut read = Self {
            name: checked_name(name).map_err(|why| why.to_string())?,
            role: known.ok_or_else(|| format!("{role:?} is not a role; write {}", roles()))?.1,
            key: key.parse().map_err(|why: KeyError| why.to_string())?,
            max_rate: None,
            max_duration_s: None,
            max_measurements: None,
            from: Vec::new(),
        };
        let mut seen = HashSet::new();
        for option in options {
            let (what, value) = option.split_once('=').unwrap_or((option, ""));
            if !seen.insert(what) {
                return Err(format!("{what} appears twice"));
            }
            read.set(what, value)?;
        }
        Ok(read)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "max-rate" => self.max_rate = Some(rate(value)?),
            "max-duration" => self.max_duration_s = Some(duration_s(value)?),
            "max-measurements" => {
                let number = value.parse().ok().filter(|number| *number > 0);
                let why = || format!("max-measurements={value} is not a number of at least 1");
                self.max_measurements = Some(number.ok_or_else(why)?);
            }
            "from" => self.from = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            _ => {
                return Err(format!(
                    "{option:?} is not an option; options are max-rate=RATE, max-duration=TIME, \
                     max-measurements=N and from=NETWORK,…"
                ));
            }
        }
        Ok(())
    }
}

fn rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|why| format!("max-rate: {why}"))?;
    if rate.0 > 0.0 { Ok(rate) } else { Err("max-rate=0 would let nothing through".into()) }
}

/// Seconds, with the unit s, m or h, or without one.
fn duration_s(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches(['s', 'm', 'h']);
    let scale = match &text[number.len()..] {
        "" | "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let seconds = number.parse::<f64>().ok().zip(scale).map(|(number, scale)| number * scale);
    let is_sign = number.starts_with(['+', '-']);
    seconds
        .filter(|seconds| !is_sign && seconds.is_finite() && *seconds > 0.0)
        .ok_or_else(|| format!("max-duration={text} is not a time; write it like 90s, 10m or 2h"))
}

/// Every client that is known.
#[derive(Debug, Clone, Default)]
pub struct AuthorizedKeys(HashMap<PublicKey, Arc<AuthorizedKey>>);

impl AuthorizedKeys {
    /// Reads the text of a file. Each name and each key may be there once.
    ///
    /// # Errors
    /// When any line is wrong: the author didn't mean half a list.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (mut keys, mut names) = (HashMap::new(), HashSet::new());
        for (line, words) in lines(text) {
            let wrong = |why| KeyError::Line { line, why };
            let read = AuthorizedKey::parse(&words).map_err(wrong)?;
            if !names.insert(read.name.clone()) {
                return Err(wrong(format!("the name {} appears twice", read.name)));
            }
            if let Some(other) = keys.insert(read.key, Arc::new(read)) {
                return Err(wrong(format!("the key of {} appears twice", other.name)));
            }
        }
        Ok(Self(keys))
    }

    /// The client with this key, if it is known and comes from an address that its line names.
    ///
    /// # Errors
    /// Why it is not, in words for the administrator of the file.
    pub fn find(&self, key: &PublicKey, from: IpAddr) -> Result<Arc<AuthorizedKey>, String> {
        let known = self.0.get(key).ok_or_else(|| {
            format!(
                "the key {key} is unknown here; have the server's operator add your line to --authorized-keys \
                 (`goodput key` prints it)"
            )
        })?;
        if !known.from.is_empty() && !known.from.iter().any(|network| network.holds(from)) {
            return Err(format!("the key of {} may not be used from {from}", known.name));
        }
        Ok(Arc::clone(known))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

const UNUSABLE: &str = "the list of keys can't be used at the moment";

/// The present list of clients, shared by all holders; the reader of the file replaces it.
#[derive(Debug, Clone, Default)]
pub struct Clients(Arc<Mutex<Option<Arc<AuthorizedKeys>>>>);

impl Clients {
    /// These.
    pub fn new(keys: AuthorizedKeys) -> Self {
        let clients = Self::default();
        clients.set(Some(keys));
        clients
    }

    /// Replaces the list; `None` if the list can't be used, and then no key is accepted.
    pub fn set(&self, keys: Option<AuthorizedKeys>) {
        let keys = keys.map(Arc::new);
        let before = std::mem::replace(&mut *self.list(), keys);
        // Dropping a long list under the lock would make others wait.
        drop(before);
    }

    /// Whether the list can be used.
    pub fn is_usable(&self) -> bool {
        self.list().is_some()
    }

    /// The client with this key, if it is known now ([`AuthorizedKeys::find`]).
    ///
    /// # Errors
    /// Why it is not.
    pub fn find(&self, key: &PublicKey, from: IpAddr) -> Result<Arc<AuthorizedKey>, String> {
        let list = self.list().clone();
        list.ok_or(UNUSABLE)?.find(key, from)
    }

    /// The present entry of a client that was known before.
    ///
    /// # Errors
    /// When its key was removed from the list, or the list can't be used.
    pub fn again(
        &self,
        client: &AuthorizedKey,
        from: IpAddr,
    ) -> Result<Arc<AuthorizedKey>, String> {
        let name = &client.name;
        let Some(list) = self.list().clone() else {
            return Err(format!("the key of {name} is not taken: {UNUSABLE}"));
        };
        list.find(&client.key, from)
            .map_err(|why| format!("the key of {name} was withdrawn: {why}"))
    }

    fn list(&self) -> MutexGuard<'_, Option<Arc<AuthorizedKeys>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a server needs to authenticate clients by their keys.
#[derive(Debug, Clone)]
pub struct KeyAuthorization {
    /// Its own key, by which clients know it.
    pub own: Arc<PrivateKey>,
    /// The clients as they are now.
    pub clients: Clients,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::limits;
    use proptest::prelude::*;

    fn public(number: u8) -> PublicKey {
        PrivateKey::of([number; 32]).unwrap().public()
    }

    fn find(text: &str, number: u8, from: &str) -> Result<Arc<AuthorizedKey>, String> {
        AuthorizedKeys::parse(text).unwrap().find(&public(number), from.parse().unwrap())
    }

    fn wrong(text: &str) -> String {
        AuthorizedKeys::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_line_says_who_may_do_what() {
        let text = format!(
            "# clients\n\nann@laptop measure {} # her old one\n\t ops  settings {} max-rate=1gbit \
             max-duration=10m max-measurements=2 from=192.0.2.0/24,2001:db8::/32\n",
            public(1),
            public(2)
        );
        let ann = find(&text, 1, "203.0.113.1").unwrap();
        assert_eq!((ann.name.as_str(), ann.role), ("ann@laptop", KeyRole::Measure));
        assert_eq!(ann.limits(limits()), limits());
        let ops = find(&text, 2, "::ffff:192.0.2.9").unwrap();
        assert_eq!((ops.role, ops.max_measurements), (KeyRole::Settings, Some(2)));
        let allowed = ops.limits(Limits { duration_s: 60.0, ..limits() });
        assert_eq!((allowed.duration_s, allowed.rate_bits_per_s), (600.0, Some(1e9)));
        assert!(find(&text, 2, "203.0.113.1").unwrap_err().contains("ops"));
        let unknown = find(&text, 3, "192.0.2.9").unwrap_err();
        assert!(unknown.contains(&public(3).to_string()), "{unknown}");
    }

    #[test]
    fn what_a_line_does_not_say_is_as_for_every_client() {
        let server = Limits { rate_bits_per_s: Some(1e8), ..limits() };
        let ann = find(&format!("ann measure {}", public(1)), 1, "192.0.2.1").unwrap();
        assert_eq!(ann.limits(server), server);
        let text = format!("ann measure {} max-rate=1gbit", public(1));
        let ann = find(&text, 1, "192.0.2.1").unwrap();
        assert_eq!(ann.limits(server).rate_bits_per_s, Some(1e9));
    }

    #[test]
    fn a_wrong_line_is_named_and_nothing_is_taken() {
        let good = format!("ann measure {}", public(1));
        for (line, word) in [
            ("ann measure", "NAME ROLE KEY"),
            ("ann admin KEY", "measure or settings"),
            ("ann measure x25519:AAAA", "goodput key"),
            ("a/b measure KEY", "name"),
            ("ann measure KEY max-rate=fast", "max-rate"),
            ("ann measure KEY max-rate=0", "nothing"),
            ("ann measure KEY max-duration=1d", "90s"),
            ("ann measure KEY max-duration=-1", "90s"),
            ("ann measure KEY max-duration=1hm", "90s"),
            ("ann measure KEY max-measurements=0", "at least 1"),
            ("ann measure KEY from=", "network"),
            ("ann measure KEY from=10.0.0.0/8,x", "network"),
            ("ann measure KEY shell=no", "not an option"),
            ("ann measure KEY max-rate=1M max-rate=2M", "twice"),
        ] {
            let line = line.replace("KEY", &public(2).to_string());
            let why = wrong(&format!("\n{line}\n"));
            assert!(why.starts_with("line 2: ") && why.contains(word), "{line}: {why}");
        }
        assert!(wrong(&format!("{good}\nbob measure {}", public(1))).contains("key of ann"));
        assert!(wrong(&format!("{good}\nann settings {}", public(2))).contains("name ann"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "((ann|#|measure|x25519:|max-rate=|from=|[ -~]{0,9})[ \n]){0,12}") {
            let _ = AuthorizedKeys::parse(&text);
        }
    }

    proptest! {
        // Making keys is slow in test builds.
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn what_is_written_is_read(secrets in proptest::collection::hash_set(any::<[u8; 32]>(), 0..9)) {
            let publics: HashSet<_> =
                secrets.into_iter().map(|secret| PrivateKey::of(secret).unwrap().public()).collect();
            let lines = publics.iter().enumerate().map(|(n, key)| format!("n{n} measure {key}\n"));
            let keys = AuthorizedKeys::parse(&lines.collect::<String>()).unwrap();
            prop_assert_eq!(keys.len(), publics.len());
            let from = [192, 0, 2, 1].into();
            prop_assert!(publics.iter().all(|key| keys.find(key, from).unwrap().key == *key));
        }
    }
}
