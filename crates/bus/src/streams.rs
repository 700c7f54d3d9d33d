//! The streams that a connection has opened, and whether they are still there. A server that was set up anew has none of them,
//! and someone may remove one: whoever uses it would otherwise try again for ever.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::connection::State;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{Context, ErrorCode};
use tokio::time::sleep;

/// Time between two looks. Only what is gone in both counts: a cluster that starts may not know all of its streams yet.
const LOOK: Duration = Duration::from_secs(3);
/// How long the servers of a stream may elect its leader before a person is asked to look.
const LEADERLESS: Duration = Duration::from_secs(120);

/// The streams of a connection. All clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams(Arc<Opened>);

#[derive(Debug, Default)]
struct Opened {
    /// When each was made, nanoseconds since 1970 by the clock of the server, by its name.
    made: Mutex<BTreeMap<String, i128>>,
    /// Something has failed since they were looked at.
    is_doubtful: AtomicBool,
}

/// What the servers say of the streams.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// All are there.
    All,
    /// This one is gone, or another one has its name.
    Without(String),
    /// Nobody answers for this one.
    Unknown(String),
}

impl Streams {
    /// Notes a stream that was opened.
    pub fn note(&self, stream: &Stream) {
        let info = stream.cached_info();
        self.made().insert(info.config.name.clone(), info.created.unix_timestamp_nanos());
    }

    /// Has them looked at soon.
    pub fn doubt(&self) {
        self.0.is_doubtful.store(true, Ordering::Relaxed);
    }

    /// Waits until one is gone, and returns its name.
    pub async fn lost(&self, jetstream: &Context, client: &Client) -> String {
        let mut looks = Looks::default();
        loop {
            sleep(LOOK).await;
            if !self.0.is_doubtful.swap(false, Ordering::Relaxed) {
                continue;
            }
            let seen = match client.connection_state() {
                State::Connected => self.look(jetstream).await,
                _ => continue,
            };
            if seen != Seen::All {
                self.doubt();
            }
            match looks.after(seen, Instant::now()) {
                Some(Found::Lost(name)) => return name,
                Some(Found::Leaderless(name)) => tracing::warn!(
                    "nobody has answered for the stream {name} for {} min, although NATS is connected. Start the other servers of \
                     the cluster. If they are lost for good, remove the stream (nats stream rm {name} -f), or set NATS up anew: \
                     goodput then makes its streams again",
                    LEADERLESS.as_secs() / 60
                ),
                None => {}
            }
        }
    }

    async fn look(&self, jetstream: &Context) -> Seen {
        let made = self.made().clone();
        for (name, created) in made {
            match jetstream.get_stream(&name).await {
                Ok(stream) if stream.cached_info().created.unix_timestamp_nanos() == created => {}
                Ok(_) => return Seen::Without(name),
                Err(why) => {
                    let is_gone = matches!(why.kind(), GetStreamErrorKind::JetStream(why)
                        if why.error_code() == ErrorCode::STREAM_NOT_FOUND);
                    return if is_gone { Seen::Without(name) } else { Seen::Unknown(name) };
                }
            }
        }
        Seen::All
    }

    fn made(&self) -> MutexGuard<'_, BTreeMap<String, i128>> {
        // A panic in between leaves a whole list.
        self.0.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What looks have shown, one after the other.
#[derive(Debug, Default)]
struct Looks {
    /// In the last look, one was gone.
    was_gone: bool,
    /// Since when nobody answers for one, and whether that was found.
    unknown: Option<(Instant, bool)>,
}

/// What looks show together.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// This stream is gone.
    Lost(String),
    /// Nobody has answered for this stream for long.
    Leaderless(String),
}

impl Looks {
    /// Takes one more look.
    fn after(&mut self, seen: Seen, now: Instant) -> Option<Found> {
        let was_gone = std::mem::take(&mut self.was_gone);
        match seen {
            Seen::All => self.unknown = None,
            Seen::Without(name) if was_gone => return Some(Found::Lost(name)),
            Seen::Without(_) => (self.was_gone, self.unknown) = (true, None),
            Seen::Unknown(name) => {
                let (since, is_found) = self.unknown.get_or_insert((now, false));
                if !*is_found && now.duration_since(*since) >= LEADERLESS {
                    *is_found = true;
                    return Some(Found::Leaderless(name));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_lost_if_two_looks_in_turn_do_not_find_it() {
        let (mut looks, now) = (Looks::default(), Instant::now());
        let without = || Seen::Without("x".into());
        assert_eq!(looks.after(without(), now), None, "a cluster that starts");
        assert_eq!(looks.after(Seen::All, now), None);
        assert_eq!(looks.after(without(), now), None);
        assert_eq!(looks.after(Seen::Unknown("x".into()), now), None);
        assert_eq!(looks.after(without(), now), None);
        assert_eq!(looks.after(without(), now), Some(Found::Lost("x".into())));
    }

    #[test]
    fn a_stream_without_a_leader_for_long_is_found_once() {
        let (mut looks, began) = (Looks::default(), Instant::now());
        let mut found = |s| {
            let seen = looks.after(Seen::Unknown("x".into()), began + Duration::from_secs(s));
            seen.is_some()
        };
        let found: Vec<_> = (0..100).map(|turn| 3 * turn).filter(|s| found(*s)).collect();
        assert_eq!(found, [LEADERLESS.as_secs()]);
    }
}
