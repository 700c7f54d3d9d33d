//! One test, as a task for the agent of one site.

use goodput_model::{BitRate, Bytes, Direction, EndName};
use serde::{Deserialize, Serialize};

use super::language::{from_json, is_id, is_name, knows};
use crate::mesh::{MAX_LENGTH_S, SshServer};
use crate::span::span;

/// How long a task may be begun after it was given out, seconds. In this time, it is known whether it was.
pub const TASK_LIFE_S: f64 = 86_400.0;

/// How long the bus knows which tasks were begun, and how they ended, seconds: longer than any task lives.
pub const KEPT_S: u64 = 7 * 86_400;

/// Share of a test's bytes that is payload, at least: with IPv6 and 1500-byte packets, headers and acknowledgements cost 7.5 %.
/// Tests of a watch are expected to cost as much.
const PAYLOAD_SHARE: f64 = 0.9;

/// What a test may go on after its length, seconds: whoever meters it sees ten samples in a second, and expects three more.
const END_S: f64 = 0.5;

/// One test of one direction, which the near site carries out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// [`super::FORMAT`].
    pub format: u32,
    /// Names it for good: letters, digits, `-` and `_`.
    pub id: String,
    /// The site that calls, measures and keeps the record.
    pub near: String,
    /// The site that is called.
    pub far: String,
    /// What the near site calls the far one.
    pub target: String,
    /// What the near site starts at the far one, if `target` is reached by SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_ssh: Option<SshServer>,
    /// Who sends: [`Direction::Send`] is the near site, [`Direction::Reverse`] the far one.
    pub direction: Direction,
    /// Length of the test, seconds.
    pub length_s: f64,
    /// Rate that the sender keeps, bits per second; absent: as fast as possible.
    pub rate: Option<BitRate>,
    /// The end whose agent allows no higher rate than `rate`; absent: as older versions, it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_of: Option<EndName>,
    /// When it is too late to begin, seconds since 1970, by the clock of the bus.
    pub expires_s: f64,
    /// Grows with each coordinator: one that was away must not go on beside its successor.
    pub token: u64,
}

/// Why a task is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its id, if at least this could be read.
    pub id: Option<String>,
    /// What is wrong, in words.
    pub why: String,
}

/// The part of a site in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It calls.
    Near,
    /// It is called.
    Far,
}

/// The part that is read first.
#[derive(Deserialize)]
struct Head {
    format: u32,
    id: String,
}

impl Task {
    /// Reads a task for `site` in this role, at `now_s` by the clock of the bus.
    ///
    /// # Errors
    /// What is wrong with it. Anyone who may write to the bus may have written it.
    pub fn read(json: &[u8], role: Role, site: &str, now_s: f64) -> Result<Self, Unreadable> {
        let head: Head = from_json(json).map_err(|why| Unreadable { id: None, why })?;
        if !is_id(&head.id) {
            return Err(Unreadable { id: None, why: "its id is no id".into() });
        }
        let refused = |why| Unreadable { id: Some(head.id.clone()), why };
        knows(head.format, "the coordinator").map_err(refused)?;
        let task: Self = from_json(json).map_err(refused)?;
        let problem = task.problem().or_else(|| task.misplaced(role, site, now_s));
        problem.map_or(Ok(task), |why| Err(refused(why)))
    }

    fn problem(&self) -> Option<String> {
        if ![&self.near, &self.far, &self.target].into_iter().all(|text| is_name(text)) {
            return Some("a name in the task is empty, too long or not printable".into());
        }
        if self.far == self.near {
            return Some("the task is a test of a site with itself".into());
        }
        if self.direction == Direction::Both {
            return Some("the task has both directions at once; a task has one".into());
        }
        if self.rate.is_some_and(|rate| !(rate.0 > 0.0 && rate.0.is_finite())) {
            return Some("the rate of the task is no rate".into());
        }
        no_length(self.length_s)
    }

    /// Why it is not for this site, or not for this time.
    fn misplaced(&self, role: Role, site: &str, now_s: f64) -> Option<String> {
        let own = if role == Role::Near { &self.near } else { &self.far };
        if own != site {
            return Some(format!("the task is for {own}, not for {site}"));
        }
        let left_s = self.expires_s - now_s;
        // A time that is no number is refused, too.
        if left_s.is_nan() || left_s < 0.0 {
            let ago = span(-left_s.round());
            return Some(format!("the task expired {ago} ago, by the clock of NATS"));
        }
        let is_long = left_s > KEPT_S as f64 - TASK_LIFE_S;
        is_long.then(|| {
            format!(
                "the task may be begun for {}; nobody knows for so long what was done",
                span(left_s.round())
            )
        })
    }

    /// The site that sends payload.
    pub fn sender(&self) -> &str {
        if self.direction == Direction::Reverse { &self.far } else { &self.near }
    }

    /// The site that receives payload.
    pub fn receiver(&self) -> &str {
        if self.direction == Direction::Reverse { &self.near } else { &self.far }
    }

    /// The site at the other end.
    pub fn peer_of(&self, site: &str) -> &str {
        if self.near == site { &self.far } else { &self.near }
    }

    /// What it may cost the line, if it has a rate: IP packets in both directions. A budget with less would end it early.
    pub fn most_bytes(&self) -> Option<Bytes> {
        let payload = self.rate?.0 * (self.length_s + END_S) / 8.0;
        Some(Bytes((payload / PAYLOAD_SHARE).ceil() as u64))
    }
}

/// Why this is no length of a test, if it is none.
pub(super) fn no_length(length_s: f64) -> Option<String> {
    let fits = length_s > 0.0 && length_s <= MAX_LENGTH_S;
    (!fits).then(|| {
        format!("{length_s} s is no length of a test: more than 0 s, {MAX_LENGTH_S} s at most")
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::task::FORMAT;
    use proptest::prelude::*;

    pub fn task() -> Task {
        let [id, near, far, target] = ["t-1", "a", "b", "b.example"].map(String::from);
        let direction = Direction::Send;
        let (format, length_s, rate, expires_s, token) = (FORMAT, 10.0, None, 1000.0, 7);
        Task {
            format,
            id,
            near,
            far,
            target,
            by_ssh: None,
            direction,
            length_s,
            rate,
            rate_limit_of: None,
            expires_s,
            token,
        }
    }

    fn read(task: &Task) -> Result<Task, Unreadable> {
        Task::read(&serde_json::to_vec(task).unwrap(), Role::Near, "a", 999.0)
    }

    #[test]
    fn a_task_is_read_as_it_was_written_and_its_direction_says_who_sends() {
        assert_eq!(read(&task()), Ok(task()));
        assert_eq!((task().sender(), task().receiver()), ("a", "b"));
        let turned = Task { direction: Direction::Reverse, ..task() };
        assert_eq!((turned.sender(), turned.receiver()), ("b", "a"));
        assert_eq!((task().peer_of("a"), task().peer_of("b")), ("b", "a"));
        let far = Task::read(&serde_json::to_vec(&task()).unwrap(), Role::Far, "b", 999.0);
        assert_eq!(far, Ok(task()));
        let paced = Task { rate: Some(BitRate(8e6)), ..task() };
        assert_eq!((task().most_bytes(), paced.most_bytes()), (None, Some(Bytes(11_666_667))));
    }

    #[test]
    fn a_poisoned_task_is_refused_in_words_with_its_id_if_it_has_one() {
        for (poison, words) in [
            (Task { format: 99, ..task() }, "version 99"),
            (Task { near: "c".into(), ..task() }, "for c, not for a"),
            (Task { far: "a".into(), ..task() }, "with itself"),
            (Task { direction: Direction::Both, ..task() }, "both directions"),
            (Task { length_s: 1e9, ..task() }, "3600 s"),
            (Task { rate: Some(BitRate(-1.0)), ..task() }, "no rate"),
            (Task { target: "\x1b[2J".into(), ..task() }, "not printable"),
            (Task { expires_s: 900.0, ..task() }, "expired 99 s ago"),
            (Task { expires_s: 1e9, ..task() }, "for so long"),
        ] {
            let refused = read(&poison).unwrap_err();
            assert!(refused.why.contains(words), "{refused:?}");
            assert_eq!(refused.id.as_deref(), Some("t-1"), "{refused:?}");
        }
        for id in ["", "../../etc/passwd", "a.b", "a b", &"a".repeat(129)] {
            let refused = read(&Task { id: id.into(), ..task() }).unwrap_err();
            assert_eq!(refused.id, None, "{refused:?}");
        }
        let cut = Task::read(b"{\"format\":2}", Role::Near, "a", 0.0);
        assert_eq!(cut.unwrap_err().id, None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_for_this_site_and_this_time(
            near in "[ab]", far in "[ab]", length_s in any::<f64>(), expires_s in -1e7..1e7_f64, now_s in -1e7..1e7_f64,
            rate in prop::option::of(any::<f64>()),
        ) {
            let rate = rate.map(BitRate);
            let task = Task { near, far, length_s, expires_s, rate, ..task() };
            let json = serde_json::to_vec(&task).unwrap();
            if let Ok(read) = Task::read(&json, Role::Near, "a", now_s) {
                prop_assert_eq!((&*read.near, &*read.far), ("a", "b"));
                prop_assert!(read.length_s > 0.0 && read.length_s <= MAX_LENGTH_S);
                prop_assert!((0.0..=KEPT_S as f64).contains(&(read.expires_s - now_s)));
            }
        }

        #[test]
        fn any_bytes_are_a_task_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Task::read(&bytes, Role::Far, "a", 0.0);
        }
    }
}
