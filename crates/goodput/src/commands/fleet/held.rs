//! A key of the bus that one process holds for as long as it renews it: the name of an agent, the lease of the
//! coordinator. What the looks mean is decided in `goodput_fleet`.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use goodput_bus::{BusError, Entry, Keys};
use goodput_engine::Interrupt;
use goodput_fleet::{Rival, is_sure};
use goodput_model::plain_char;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tokio::time::sleep;

use super::places::{BEAT, EXPIRY, STORED};
use super::trouble::{Trouble, nats_answers};

/// Time between two looks at a key that someone else holds.
const LOOK: Duration = Duration::from_millis(500);

/// A key that this process holds.
pub(super) struct Held<'a> {
    keys: &'a Keys,
    key: &'a str,
    /// Its `session` tells it apart from those of other processes.
    value: RefCell<Value>,
    revision: Cell<u64>,
    /// When the last renewal that succeeded was asked for.
    renewed: Cell<Duration>,
    /// The clock of the server, seconds since 1970, and when it was read.
    clock: Cell<(f64, Duration)>,
    /// What stands in the way of the key.
    trouble: RefCell<Trouble>,
}

/// Another process has what this one held, in words.
#[derive(Debug)]
pub(super) struct Lost(pub String);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What became of a wish.
pub(super) enum Taken<'a> {
    /// It is ours.
    Held(Held<'a>),
    /// It belongs to someone who is alive.
    Rival(Entry),
    /// The user ended the wait.
    Interrupted,
}

impl<'a> Held<'a> {
    /// Waits until the key is free, and takes it; also while the server is away. `rival` hears of a holder that is
    /// certainly alive, and says whether to wait on. A holder that was killed is not alive, and its key expires. So does what
    /// nobody has written who holds a key: its holder may be alive, and then writes its own again.
    ///
    /// # Errors
    /// This user has no right to the key.
    pub async fn take(
        keys: &'a Keys,
        key: &'a str,
        value: Value,
        interrupt: &Interrupt,
        mut rival: impl FnMut(&Entry) -> bool,
    ) -> Result<Taken<'a>> {
        let (mut seen, mut trouble) = (Rival::default(), Trouble::default());
        let mut unread: Option<Duration> = None;
        loop {
            let taken = Self::taken(keys, key, &value).await;
            if taken.is_ok() {
                nats_answers();
            }
            match taken {
                Ok(Ok(held)) => return Ok(Taken::Held(held)),
                Ok(Err(Some(entry))) if is_gone(&mut seen, &entry) => {
                    match Self::seized(keys, key, &value, &entry).await {
                        Ok(Some(held)) => return Ok(Taken::Held(held)),
                        Ok(None) => {}
                        Err(why) => trouble.pass(why)?,
                    }
                }
                Ok(Err(Some(entry))) if session(&entry).is_none() => {
                    let wait = format!("waiting until it expires ({} s)", EXPIRY.as_secs());
                    trouble.say(&poison(keys, key).context(wait));
                }
                Ok(Err(Some(entry))) if seen.is_alive(entry.revision) && !rival(&entry) => {
                    return Ok(Taken::Rival(entry));
                }
                Ok(Err(None)) => {
                    let first = *unread.get_or_insert_with(awake_or_not);
                    if since(first) >= EXPIRY.as_secs_f64() {
                        trouble.say(&unreadable(keys, key));
                    }
                }
                Ok(Err(Some(_))) => {
                    unread = None;
                    trouble.is_over();
                }
                Err(why) => {
                    seen.is_out_of_sight();
                    trouble.pass(why)?;
                }
            }
            tokio::select! {
                () = sleep(LOOK) => {}
                () = interrupt.raised() => return Ok(Taken::Interrupted),
            }
        }
    }

    /// Takes the key; otherwise, what it has.
    async fn taken(
        keys: &'a Keys,
        key: &'a str,
        value: &Value,
    ) -> Result<Result<Self, Option<Entry>>, BusError> {
        let asked = awake_or_not();
        let mut revision = keys.create(key, value).await?;
        if revision.is_none() {
            // Only the answer to the last try may have been lost.
            match keys.entry(key).await? {
                Some(entry) if is_of(&entry, value) => {
                    revision = keys.update(key, value, entry.revision).await?;
                }
                entry => return Ok(Err(entry)),
            }
        }
        let Some(revision) = revision else { return Ok(Err(None)) };
        Ok(Self::with(keys, key, value, (revision, asked)).await?.ok_or(None))
    }

    /// Takes the key of a holder that is gone, whose `entry` does not expire; none: someone else has written it meanwhile.
    async fn seized(
        keys: &'a Keys,
        key: &'a str,
        value: &Value,
        entry: &Entry,
    ) -> Result<Option<Self>, BusError> {
        let asked = awake_or_not();
        let Some(revision) = keys.update(key, value, entry.revision).await? else {
            return Ok(None);
        };
        Self::with(keys, key, value, (revision, asked)).await
    }

    /// Holds the key with this revision, which was asked for at this time, once the clock of the server is known: without it,
    /// nobody can say when a task expires. None: no copy of the stream has the key for so long that it may have expired.
    async fn with(
        keys: &'a Keys,
        key: &'a str,
        value: &Value,
        (revision, asked): (u64, Duration),
    ) -> Result<Option<Self>, BusError> {
        let (revision, renewed) = (Cell::new(revision), Cell::new(asked));
        let (value, clock) = (RefCell::new(value.clone()), Cell::new((0.0, asked)));
        let trouble = RefCell::default();
        let held = Self { keys, key, value, revision, renewed, clock, trouble };
        while !held.read_clock().await? {
            if since(asked) >= EXPIRY.as_secs_f64() {
                return Ok(None);
            }
            sleep(STORED).await;
        }
        Ok(Some(held))
    }

    /// Renews the key until someone else has it, which is the result. While the server is away, goes on trying.
    pub async fn keep(&self) -> Error {
        loop {
            sleep(BEAT).await;
            match self.renew().await {
                Ok(true) => {}
                Ok(false) => return self.lost().await,
                Err(why) => {
                    if let Err(why) = self.trouble.borrow_mut().pass(why) {
                        return why;
                    }
                }
            }
        }
    }

    /// Who has the key meanwhile.
    async fn lost(&self) -> Error {
        let entry = self.keys.entry(self.key).await.ok().flatten();
        let who = entry.map(|entry| format!(" {}", holder(&entry))).unwrap_or_default();
        let (key, bucket, expiry_s) = (self.key, self.keys.bucket(), EXPIRY.as_secs());
        Error::msg(Lost(format!(
            "another process{who} has taken the name {key} (bucket {bucket}). This one was cut off from NATS or suspended for \
             more than {expiry_s} s, or two were started with one name. End one of them"
        )))
    }

    /// Has others see this value from the next renewal on.
    pub fn say(&self, value: Value) {
        *self.value.borrow_mut() = value;
    }

    /// Renews the key. Returns whether it is still ours: what nobody has written who holds keys takes it from nobody.
    pub async fn renew(&self) -> Result<bool, BusError> {
        let asked = awake_or_not();
        let value = self.value.borrow().clone();
        let mut next = self.keys.update(self.key, &value, self.revision.get()).await?;
        let mut is_poisoned = false;
        if next.is_none() {
            // It has expired, the answer to the last renewal was lost, or someone has written over it.
            let found = self.keys.entry(self.key).await?;
            is_poisoned = found.as_ref().is_some_and(|entry| session(entry).is_none());
            next = match found {
                None => self.keys.create(self.key, &value).await?,
                Some(entry) if is_poisoned || is_of(&entry, &value) => {
                    self.keys.update(self.key, &value, entry.revision).await?
                }
                Some(_) => None,
            };
        }
        if next.is_none() {
            let entry = self.keys.entry(self.key).await?;
            if entry.as_ref().is_some_and(|entry| session(entry).is_none()) {
                // Written over again. It is not renewed by that.
                self.trouble.borrow_mut().say(&poison(self.keys, self.key).context(RESTORED));
                return Ok(true);
            }
            // The answer to this one may have been lost, too.
            next = entry.filter(|entry| is_of(entry, &value)).map(|entry| entry.revision);
        }
        let Some(revision) = next else { return Ok(false) };
        match is_poisoned {
            true => self.trouble.borrow_mut().say(&poison(self.keys, self.key).context(RESTORED)),
            false => self.trouble.borrow_mut().is_over(),
        }
        self.revision.set(revision);
        self.renewed.set(asked);
        self.read_clock().await?;
        Ok(true)
    }

    /// Reads the clock of the server. `false`: the copy of the stream that answers is behind, and does not have the key yet.
    async fn read_clock(&self) -> Result<bool, BusError> {
        let entry = self.keys.entry(self.key).await?;
        nats_answers();
        if let Some(entry) = &entry {
            self.clock.set((entry.written_s, awake_or_not()));
        }
        Ok(entry.is_some())
    }

    /// Waits until the key is ours for certain. While the server is away, nobody knows.
    pub async fn wait_until_sure(&self) {
        while !is_sure(since(self.renewed.get()), EXPIRY.as_secs_f64()) {
            sleep(LOOK).await;
        }
    }

    /// The time by the clock of the server, seconds since 1970.
    pub fn now_s(&self) -> f64 {
        let (then_s, read) = self.clock.get();
        then_s + since(read)
    }

    /// Gives the key back at once.
    pub async fn release(self) {
        if let Err(why) = self.keys.remove(self.key, self.revision.get()).await {
            tracing::debug!("{why}; it expires by itself");
        }
    }
}

/// Whether who has written this has not renewed it for so long that it must have expired.
fn is_gone(seen: &mut Rival, entry: &Entry) -> bool {
    seen.is_gone(entry.revision, awake_or_not().as_secs_f64(), EXPIRY.as_secs_f64())
}

/// A key that exists, or that this process has written, and that nobody can read for longer than it lives.
fn unreadable(keys: &Keys, key: &str) -> Error {
    anyhow!(
        "the NATS server does not give back the key {key} of the bucket {}, although it is written there; if that lasts, \
         restart the NATS server. Trying again",
        keys.bucket()
    )
}

/// What becomes of a key that someone has written over.
const RESTORED: &str = "a key of this process was written over, and is put there again";

/// What tells the process apart that has written this; none: nobody who holds keys has.
fn session(entry: &Entry) -> Option<String> {
    let found: Value = serde_json::from_slice(&entry.value).ok()?;
    found["session"].as_str().filter(|session| !session.is_empty()).map(Into::into)
}

/// Whether the same process has written both.
fn is_of(entry: &Entry, value: &Value) -> bool {
    session(entry).is_some_and(|session| value["session"] == session)
}

/// The process that has written this, for people: `on host h since 2026-11-24T14:05:07Z (by its clock)`.
pub(super) fn holder(entry: &Entry) -> String {
    let found: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    // An agent says more of its host than its name.
    let host = found["host"]["name"].as_str().or(found["host"].as_str());
    let known = |text: Option<&str>| -> String {
        text.unwrap_or("unknown").chars().take(MAX_SHOWN_CHARS).map(plain_char).collect()
    };
    format!("on host {} since {} (by its clock)", known(host), known(found["since"].as_str()))
}

/// Longest text of another process that is shown, characters.
const MAX_SHOWN_CHARS: usize = 100;

/// What is wrong with a key that nobody has written who holds keys.
fn poison(keys: &Keys, key: &str) -> Error {
    anyhow!(
        "the key {key} of the bucket {} has a value that is none of goodput's; find who else writes there",
        keys.bucket()
    )
}

/// The time since this host began, also while it was suspended (clock_gettime(2), `CLOCK_BOOTTIME`): a key expires
/// meanwhile.
fn awake_or_not() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

fn since(then: Duration) -> f64 {
    awake_or_not().saturating_sub(then).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(value: &str) -> Entry {
        Entry { value: value.into(), revision: 7, written_s: 0.0 }
    }

    #[test]
    fn only_who_holds_keys_has_a_session() {
        for garbage in
            ["", "poison", "7", "{}", r#"{"session":7}"#, r#"{"session":""}"#, "[\"session\"]"]
        {
            assert_eq!(session(&entry(garbage)), None, "{garbage}");
            assert!(!is_of(&entry(garbage), &json!({ "session": "s" })));
        }
        let own = entry(r#"{"session":"s"}"#);
        assert!(
            is_of(&own, &json!({ "session": "s" })) && !is_of(&own, &json!({ "session": "t" }))
        );
    }

    #[test]
    fn a_holder_is_named_with_its_host_and_whose_clock_counts() {
        let coordinator = r#"{"session":"s","host":"h\u001b","since":"noon"}"#;
        let agent = r#"{"session":"s","host":{"name":"h"},"since":"noon"}"#;
        assert_eq!(holder(&entry(agent)), "on host h since noon (by its clock)");
        assert!(!holder(&entry(coordinator)).contains('\u{1b}'));
        assert_eq!(holder(&entry("poison")), "on host unknown since unknown (by its clock)");
    }
}
