//! What an agent says of itself, and what it takes part in.

use goodput_model::{BitRate, Bytes, EndName, Host};
use serde::{Deserialize, Serialize};

use super::language::{from_json, knows};
use super::single::Task;
use crate::mesh::SSH;

/// What an agent says of itself, for as long as it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Announcement {
    /// [`super::FORMAT`].
    pub format: u32,
    /// Its site.
    pub site: String,
    /// Tells two agents of one name apart.
    pub session: String,
    /// Its host, with the version of goodput.
    pub host: Host,
    /// When it began, RFC 3339, UTC, by its host's clock.
    pub since: String,
    /// The public key that must have signed its tasks; absent: it takes any.
    #[serde(default)]
    pub trusts: Option<String>,
    /// Token of the newest coordinator that it knows of: it is in no test of an earlier one, and begins none. Absent: it
    /// does not say, as older versions.
    #[serde(default)]
    pub heeds: Option<u64>,
    /// What it takes part in.
    pub limits: Limits,
}

/// What an agent takes part in, whatever the coordinator asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Longest test, seconds.
    pub max_duration_s: f64,
    /// Highest rate of a test, bits per second; absent: any.
    #[serde(default)]
    pub max_rate: Option<BitRate>,
    /// What was left of its budget when it said so; a test that runs counts with what it may cost at most. Only the agent
    /// itself judges by it, with [`super::Left`]. Absent: it has none.
    #[serde(default)]
    pub left: Option<Bytes>,
    /// The sites that it tests with; absent: all.
    #[serde(default)]
    pub accepts: Option<Vec<String>>,
    /// The hosts that it logs in to for a test, as `ssh://[USER@]HOST[:PORT]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs_in: Vec<String>,
}

impl Limits {
    /// Why `site`, which has these limits, does not take part in a test, if it does not. Its budget is not looked at.
    pub fn refuse(&self, site: &str, task: &Task) -> Option<String> {
        let peer = task.peer_of(site);
        if self.accepts.as_ref().is_some_and(|accepts| !accepts.iter().any(|one| one == peer)) {
            return Some(format!("{site} does not test with {peer} (--accept)"));
        }
        if task.target.starts_with(SSH) && !self.logs_in.contains(&task.target) {
            return Some(format!("{site} does not log in to {} (--ssh)", task.target));
        }
        // A length that is no number is refused, too.
        if task.length_s.is_nan() || task.length_s > self.max_duration_s {
            return Some(format!(
                "{site} takes part in tests of at most {} s (--max-duration), and this one takes {} s",
                self.max_duration_s, task.length_s
            ));
        }
        self.too_fast(site, task)
    }

    fn too_fast(&self, site: &str, task: &Task) -> Option<String> {
        let most = self.max_rate?;
        let asked = match task.rate {
            Some(rate) if rate.0 <= most.0 => return None,
            Some(rate) => rate.to_string(),
            None => "no rate to keep".into(),
        };
        Some(format!(
            "{site} takes part in tests of at most {most} (--max-rate), and this one has {asked}"
        ))
    }
}

/// The part that is read first: agents of all versions say it.
#[derive(Deserialize)]
struct Head {
    format: u32,
    #[serde(default)]
    site: String,
    #[serde(default)]
    host: Version,
}

#[derive(Default, Deserialize)]
struct Version {
    goodput: String,
}

impl Announcement {
    /// Reads an announcement.
    ///
    /// # Errors
    /// It is none, or one of another format.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let Head { format, site, host } = from_json(json)?;
        knows(format, &site)
            .map_err(|why| format!("{why} ({site} runs goodput {})", host.goodput))?;
        from_json(json)
    }

    /// Whether an agent of any version has said this. Anything else is no announcement: whoever may write to the bucket has
    /// written over one, which its agent puts there again.
    pub fn is_one(json: &[u8]) -> bool {
        from_json::<Head>(json).is_ok()
    }

    /// Whether its agent is in no test of a coordinator before the one with this token, and begins none. What is read may be
    /// old; it is then no less true, because the newest coordinator that an agent knows of is never an earlier one again.
    pub fn heeds(&self, token: u64) -> bool {
        self.heeds.is_none_or(|heeds| heeds >= token)
    }

    /// Why its agent can't take part in a task that the key `signer` signs, if it can't. Only the agent itself knows what
    /// is left of its budget by then.
    pub fn unfit(&self, task: &Task, signer: Option<&str>) -> Option<String> {
        let site = &self.site;
        match (&self.trusts, signer) {
            (Some(trusted), Some(signer)) if trusted != signer => {
                return Some(format!(
                    "{site} trusts the key {trusted}, and this coordinator signs with {signer} (--sign)"
                ));
            }
            (Some(trusted), None) => {
                return Some(format!(
                    "{site} takes only tasks that the key {trusted} has signed; name it with --sign"
                ));
            }
            _ => {}
        }
        self.limits.refuse(site, task)
    }
}

/// The task at a rate that each of these agents takes part in.
pub fn fitted(task: &Task, agents: &[Announcement]) -> Task {
    let end = |agent: &Announcement| match agent.site == task.near {
        true => EndName::Near,
        false => EndName::Far,
    };
    let limits = agents.iter().filter_map(|agent| Some((agent.limits.max_rate?, end(agent))));
    let lowest = limits.min_by(|(one, _), (other, _)| one.0.total_cmp(&other.0));
    match lowest {
        Some((most, end)) if task.rate.is_none_or(|rate| most.0 < rate.0) => {
            Task { rate: Some(most), rate_limit_of: Some(end), ..task.clone() }
        }
        _ => task.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::single::tests::task;
    use super::*;
    use crate::task::FORMAT;
    use proptest::prelude::*;

    fn agent() -> Announcement {
        let host = Host { name: "h".into(), kernel: "k".into(), goodput: "9.9".into(), cpus: 1 };
        let [site, session, since] = ["b", "s", "t"].map(String::from);
        let limits = Limits {
            max_duration_s: 10.0,
            max_rate: None,
            left: None,
            accepts: None,
            logs_in: Vec::new(),
        };
        let (format, trusts, heeds) = (FORMAT, None, Some(7));
        Announcement { format, site, session, host, since, trusts, heeds, limits }
    }

    fn limited(limits: impl FnOnce(&mut Limits)) -> Announcement {
        let mut agent = agent();
        limits(&mut agent.limits);
        agent
    }

    #[test]
    fn an_agent_of_another_version_or_trust_is_unfit_in_words() {
        assert_eq!(agent().unfit(&task(), None), None);
        assert_eq!(agent().unfit(&task(), Some("OX")), None);
        let other = serde_json::to_vec(&Announcement { format: 99, ..agent() }).unwrap();
        let why = Announcement::read(&other).unwrap_err();
        assert!(why.contains("b speaks version 99") && why.contains("goodput 9.9"), "{why}");
        let first = br#"{"format":1,"site":"b","session":"s","since":"t","max_duration_s":60.0,
            "host":{"name":"h","kernel":"k","goodput":"0.1","cpus":1}}"#;
        let why = Announcement::read(first).unwrap_err();
        assert!(why.contains("b speaks version 1 ") && why.contains("goodput 0.1"), "{why}");
        let careful = Announcement { trusts: Some("OX".into()), ..agent() };
        assert_eq!(careful.unfit(&task(), Some("OX")), None);
        for signer in [None, Some("OY")] {
            let why = careful.unfit(&task(), signer).unwrap();
            assert!(why.contains("OX") && why.contains("--sign"), "{why}");
        }
    }

    #[test]
    fn a_task_beyond_the_limits_of_an_agent_is_refused_with_the_option() {
        let rate = |rate| Task { rate: Some(BitRate(rate)), ..task() };
        for (agent, task, words) in [
            (agent(), Task { length_s: 11.0, ..task() }, "at most 10 s (--max-duration)"),
            (
                limited(|limits| limits.accepts = Some(vec!["c".into()])),
                task(),
                "with a (--accept)",
            ),
            (limited(|limits| limits.max_rate = Some(BitRate(1e8))), task(), "no rate to keep"),
            (limited(|limits| limits.max_rate = Some(BitRate(1e8))), rate(2e8), "200 Mbit/s"),
        ] {
            let why = agent.unfit(&task, None).unwrap();
            assert!(why.contains(words), "{why}");
        }
        let able = limited(|limits| {
            *limits = Limits {
                max_rate: Some(BitRate(1e8)),
                left: Some(Bytes(125_000_000)),
                ..limits.clone()
            };
            limits.accepts = Some(vec!["c".into(), "a".into()]);
        });
        assert_eq!(able.unfit(&rate(1e8), None), None);
    }

    #[test]
    fn an_agent_logs_in_to_the_hosts_that_its_own_options_name_and_to_no_others() {
        let by_ssh = |target: &str| Task { target: target.into(), ..task() };
        let able = limited(|limits| limits.logs_in = vec!["ssh://me@x:2222".into()]);
        assert_eq!(able.unfit(&by_ssh("ssh://me@x:2222"), None), None);
        for (agent, target) in [
            (&agent(), "ssh://me@x:2222"),
            (&able, "ssh://root@x:2222"),
            (&able, "ssh://me@x"),
            (&able, "ssh://me@x:22222"),
        ] {
            let why = agent.unfit(&by_ssh(target), None).unwrap();
            assert!(why.contains(&format!("b does not log in to {target} (--ssh)")), "{why}");
        }
    }

    #[test]
    fn an_agent_heeds_coordinators_up_to_the_newest_that_it_knows_of() {
        assert!(agent().heeds(6) && agent().heeds(7) && !agent().heeds(8));
        let older = serde_json::json!({
            "format": FORMAT, "site": "a", "session": "s", "host": agent().host, "since": "",
            "limits": { "max_duration_s": 60.0 },
        });
        let older = Announcement::read(older.to_string().as_bytes()).unwrap();
        assert!(older.heeds(8), "nobody waits for what it never says");
    }

    #[test]
    fn only_an_agent_itself_judges_by_its_budget() {
        let paced = Task { rate: Some(BitRate(1e8)), ..task() };
        for (left, task) in [(0, task()), (1000, paced)] {
            let agent = limited(|limits| limits.left = Some(Bytes(left)));
            assert_eq!(agent.unfit(&task, None), None, "what it said is old");
        }
    }

    #[test]
    fn what_no_agent_has_said_is_no_announcement() {
        let newer = serde_json::to_vec(&Announcement { format: 99, ..agent() }).unwrap();
        assert!(Announcement::is_one(&newer), "of another version");
        for garbage in [&b"poison"[..], b"", b"{}", b"7", b"{\"site\":\"b\"}"] {
            assert!(!Announcement::is_one(garbage));
        }
    }

    #[test]
    fn a_task_is_fitted_to_the_slowest_agent() {
        let slow = limited(|limits| limits.max_rate = Some(BitRate(1e8)));
        assert_eq!(fitted(&task(), &[agent(), agent()]).rate, None);
        let fit = fitted(&task(), &[agent(), slow.clone()]);
        assert_eq!((fit.rate, fit.rate_limit_of), (Some(BitRate(1e8)), Some(EndName::Far)));
        let near =
            Announcement { site: "a".into(), ..limited(|l| l.max_rate = Some(BitRate(1e7))) };
        let fit = fitted(&task(), &[near, slow.clone()]);
        assert_eq!((fit.rate, fit.rate_limit_of), (Some(BitRate(1e7)), Some(EndName::Near)));
        let slower = Task { rate: Some(BitRate(1e6)), ..task() };
        assert_eq!(fitted(&slower, &[slow]), slower, "no agent's limit holds it");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_announcement_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Announcement::read(&bytes);
        }

        #[test]
        fn any_announcement_is_read_as_it_was_written_and_a_fitted_task_is_not_too_fast(
            site in ".{1,20}", rate in prop::option::of(1.0..1e12_f64), left in prop::option::of(any::<u64>()),
            accepts in prop::option::of(prop::collection::vec(".{1,9}", 0..4)),
            logs_in in prop::collection::vec(".{1,9}", 0..4),
        ) {
            let (max_rate, left) = (rate.map(BitRate), left.map(Bytes));
            let limits = Limits { max_duration_s: 10.0, max_rate, left, accepts, logs_in };
            let said = Announcement { site, limits, ..agent() };
            let json = serde_json::to_vec(&said).unwrap();
            prop_assert_eq!(Announcement::read(&json), Ok(said.clone()));
            let fit = fitted(&task(), std::slice::from_ref(&said));
            let why = said.unfit(&fit, None).unwrap_or_default();
            prop_assert!(!why.contains("--max-rate"), "{}", why);
        }
    }
}
