//! What the server refuses this user. A request to which a user has no right gets no answer: the server only says beside
//! it which subject was refused.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Refusals that are kept: those of one operation and of what goes on beside it.
const MOST: usize = 64;

/// How long a user is refused at the door before it counts. One server of a cluster may refuse it while another one lets it
/// in, as while they get a new configuration one after the other. A fleet's names and lease expire after as long: whoever
/// was out for longer holds nothing any more that it could lose by ending.
const OUT_FOR: Duration = Duration::from_secs(12);

/// What was refused since the connection was made.
#[derive(Debug, Clone)]
pub(crate) struct Refusals(Arc<watch::Sender<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    all: Vec<Refusal>,
    /// When a login was refused first, since the last one that was not.
    out_since: Option<Instant>,
}

/// A right that this user does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What it wanted to do there.
    pub right: Right,
    /// The subject.
    pub subject: String,
}

/// What a user may do at a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// To write there, and so to ask.
    Publish,
    /// To hear what is written there, and so answers.
    Subscribe,
    /// To log in at all: a server knew this user before, and for a while none has let it in.
    Login,
}

impl Refusal {
    /// Reads the words of nats-server (server/client.go, `pubPermissionViolation` and `subPermissionViolation`).
    fn read(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("Permissions Violation for ")?;
        let (what, rest) = rest.split_once(" to \"")?;
        let right = match what {
            "Publish" => Right::Publish,
            "Subscription" => Right::Subscribe,
            _ => return None,
        };
        let (subject, _) = rest.split_once('"')?;
        Some(Self { right, subject: subject.into() })
    }
}

impl Refusals {
    /// None yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Heard::default())))
    }

    /// Takes what the server says. `false`: it is no refusal.
    pub fn note(&self, text: &str) -> bool {
        let Some(refusal) = Refusal::read(text) else { return false };
        self.add(refusal);
        true
    }

    /// A server does not let this user in any more. That counts once it has lasted, and no other server has let it in.
    pub fn note_login(&self, now: Instant) {
        let mut since = now;
        self.0.send_modify(|heard| since = *heard.out_since.get_or_insert(now));
        if now.duration_since(since) >= OUT_FOR {
            self.add(Refusal { right: Right::Login, subject: String::new() });
        }
    }

    fn add(&self, refusal: Refusal) {
        self.0.send_modify(|Heard { all, .. }| {
            all.retain(|other| *other != refusal);
            all.push(refusal);
            let surplus = all.len().saturating_sub(MOST);
            all.drain(..surplus);
        });
    }

    /// Forgets all: the server says it again to a new connection.
    pub fn clear(&self) {
        self.0.send_modify(|heard| *heard = Heard::default());
    }

    /// Forgets what was refused at these subjects: it is tried again. Who hears nothing at the inbox hears nothing for as long
    /// as the connection lasts.
    pub fn forget(&self, on: &On<'_>) {
        self.0.send_if_modified(|Heard { all, .. }| {
            let before = all.len();
            all.retain(|refusal| !on.is_published(refusal));
            all.len() < before
        });
    }

    /// Waits until something is refused there.
    pub async fn next(&self, on: &On<'_>) -> Refusal {
        let mut heard = self.0.subscribe();
        let found = heard.wait_for(|heard| heard.all.iter().any(|refusal| on.has(refusal))).await;
        let found = found.ok();
        let found = found.and_then(|heard| heard.all.iter().find(|it| on.has(it)).cloned());
        match found {
            Some(refusal) => refusal,
            // Nobody says anything any more.
            None => pending().await,
        }
    }
}

/// Where an operation publishes, and where it hears answers.
pub(crate) struct On<'a> {
    /// How the subjects end to which it publishes: a request about a subject has the name of a request before it.
    pub subjects: &'a [String],
    /// What else it hears, as a whole subject; empty: nothing.
    pub heard: &'a str,
    /// What the subjects of answers begin with.
    pub inbox: &'a str,
}

impl On<'_> {
    fn has(&self, refusal: &Refusal) -> bool {
        match refusal.right {
            Right::Login => true,
            Right::Publish => self.is_published(refusal),
            Right::Subscribe => {
                refusal.subject.starts_with(self.inbox) || refusal.subject == self.heard
            }
        }
    }

    fn is_published(&self, refusal: &Refusal) -> bool {
        let ends = |end: &String| {
            let before = refusal.subject.strip_suffix(end.as_str());
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        refusal.right == Right::Publish && self.subjects.iter().any(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISH: &str =
        "Permissions Violation for Publish to \"$JS.API.DIRECT.GET.KV_k.$KV.k.b\"";
    const HEAR: &str = "Permissions Violation for Subscription to \"_INBOX.agent.b.x.*\"";

    fn on(subjects: &[String]) -> On<'_> {
        On { subjects, heard: "", inbox: "_INBOX.agent.b" }
    }

    #[test]
    fn the_words_of_a_server_are_read() {
        let read = Refusal::read(PUBLISH).unwrap();
        assert_eq!(read.right, Right::Publish);
        assert_eq!(read.subject, "$JS.API.DIRECT.GET.KV_k.$KV.k.b");
        let queue = format!("nats: {HEAR} using queue \"q\"");
        assert_eq!(Refusal::read(&queue).unwrap().subject, "_INBOX.agent.b.x.*");
        for other in ["", "authorization violation", "Permissions Violation for Publish to x"] {
            assert_eq!(Refusal::read(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn an_operation_hears_of_its_own_subjects_and_of_its_inbox() {
        let refusals = Refusals::new();
        assert!(refusals.note(PUBLISH) && !refusals.note("slow consumer"));
        let [own, other] = ["$KV.k.b", "V.k.b"].map(|subject| [subject.to_owned()]);
        assert_eq!(refusals.next(&on(&own)).await.right, Right::Publish);
        let elsewhere = on(&other);
        let nothing = tokio::select! {
            biased;
            refusal = refusals.next(&elsewhere) => Some(refusal),
            () = std::future::ready(()) => None,
        };
        assert_eq!(nothing, None, "a word is whole");
        refusals.note(HEAR);
        refusals.forget(&on(&own));
        assert_eq!(refusals.next(&on(&own)).await.right, Right::Subscribe, "that stays");
        let now = Instant::now();
        refusals.note_login(now);
        refusals.note_login(now + OUT_FOR);
        refusals.forget(&on(&other));
        assert_eq!(refusals.0.borrow().all.len(), 2, "both stay");
        refusals.clear();
        assert!(refusals.0.borrow().all.is_empty());
    }

    #[test]
    fn a_login_that_one_server_refuses_counts_only_if_no_other_one_lets_the_user_in() {
        let (refusals, now) = (Refusals::new(), Instant::now());
        let is_out = |after| {
            refusals.note_login(now + after);
            !refusals.0.borrow().all.is_empty()
        };
        assert!(!is_out(Duration::ZERO) && !is_out(OUT_FOR / 2));
        refusals.clear();
        assert!(!is_out(OUT_FOR), "it was let in meanwhile");
        assert!(is_out(OUT_FOR * 2));
    }

    #[test]
    fn a_server_that_refuses_all_costs_no_memory() {
        let refusals = Refusals::new();
        for number in 0..1000 {
            refusals.note(&format!("Permissions Violation for Publish to \"x.{number}\""));
        }
        let heard = refusals.0.borrow();
        let all = &heard.all;
        assert_eq!((all.len(), all.last().unwrap().subject.as_str()), (MOST, "x.999"));
    }
}
