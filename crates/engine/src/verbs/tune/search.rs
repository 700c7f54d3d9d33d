//! Which changes are tried, in which order, and against what. Without I/O: measurements go in, the next comparison
//! comes out.

use std::collections::{BTreeSet, VecDeque};

use goodput_diagnose::of_sockets;
use goodput_model::{Change, Finding, SettingRef};

use crate::verbs::compare::Arm;

/// Stands for the kernel's own choice.
const DEFAULT: &str = "default";

/// A change, and the rule that proposes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What to change.
    pub change: Change,
    /// Id of the rule.
    pub rule: String,
}

/// The changes that helped so far, and those still to be tried.
#[derive(Debug, Default)]
pub struct Search {
    /// In the order in which they were kept; each setting appears once.
    kept: Vec<Change>,
    /// Changes that are not tried again on top of what is kept now, and what does the same as they do.
    tried: BTreeSet<(SettingRef, String)>,
    candidates: VecDeque<Candidate>,
    /// Changes that no run has to propose, each tried once, after those above.
    later: VecDeque<Candidate>,
    /// Changes that are tried once more when nothing else is left.
    undecided: VecDeque<Candidate>,
    /// Changes that were undecided once, on top of what is kept now.
    tried_again: BTreeSet<(SettingRef, String)>,
}

impl Search {
    /// Takes the proposals of a measurement with all kept changes, the most limiting first.
    pub fn consider(&mut self, findings: &[Finding]) {
        self.candidates.clear();
        self.undecided.clear();
        self.also_consider(findings);
    }

    /// Takes the proposals of another measurement with all kept changes, before those that wait already.
    pub fn reconsider(&mut self, findings: &[Finding]) {
        let waiting = std::mem::take(&mut self.candidates);
        self.also_consider(findings);
        for candidate in waiting {
            self.wait(candidate);
        }
    }

    /// Takes proposals that hold whatever later runs find. Each is tried once, when no run proposes anything else.
    pub fn consider_later(&mut self, findings: &[Finding]) {
        self.later.extend(proposed(findings));
    }

    /// Adds further proposals after those.
    fn also_consider(&mut self, findings: &[Finding]) {
        for candidate in proposed(findings) {
            self.wait(candidate);
        }
    }

    /// Lets a change wait for its turn, unless it waits already.
    fn wait(&mut self, candidate: Candidate) {
        let is_same = |known: &Candidate| known.change.is_same_step(&candidate.change);
        if !self.candidates.iter().any(is_same) {
            self.candidates.push_back(candidate);
        }
    }

    /// The next change to try.
    pub fn next(&mut self) -> Option<Candidate> {
        while let Some(candidate) = self.candidates.pop_front().or_else(|| self.later.pop_front()) {
            if self.is_new(&candidate.change) {
                self.tried.extend(same_steps(&candidate.change));
                return Some(candidate);
            }
        }
        self.undecided.pop_front()
    }

    /// Number of changes still to be tried, as far as is known now.
    pub fn waiting(&self) -> usize {
        let (mut covered, mut new) = (BTreeSet::new(), 0);
        for Candidate { change, .. } in self.candidates.iter().chain(&self.later) {
            if self.is_new(change) && !covered.contains(&step(change)) {
                covered.extend(same_steps(change));
                new += 1;
            }
        }
        new + self.undecided.len()
    }

    /// Whether a change is not kept, does not take back what is kept, and was not tried on top of that; nor what does the
    /// same is kept. What is kept is proven better than the start, and left out again in the end.
    fn is_new(&self, change: &Change) -> bool {
        let Change { setting, to, .. } = change;
        let is_known = |kept: &Change| kept.to == *to || at_start(kept) == *to;
        let of_setting = self.kept.iter().find(|kept| kept.setting == *setting);
        let wanted = (setting.clone(), to.clone());
        !of_setting.is_some_and(is_known)
            && !self.kept.iter().any(|kept| does_same(kept, change) || does_same(change, kept))
            && !self.tried.contains(&wanted)
    }

    /// Takes back a change that was not tried after all.
    pub fn give_back(&mut self, candidate: Candidate) {
        for same in same_steps(&candidate.change) {
            self.tried.remove(&same);
        }
        self.candidates.push_front(candidate);
    }

    /// Notes that a change could not be made. What does the same without this privilege may still be tried.
    pub fn refuse(&mut self, change: &Change) {
        if let Some(other) = of_sockets(change) {
            self.tried.remove(&step(&other));
        }
    }

    /// Takes back a change of which its runs have shown nothing, to try it once more when nothing else is left.
    pub fn postpone(&mut self, candidate: Candidate) {
        if self.tried_again.insert(step(&candidate.change)) {
            self.undecided.push_back(candidate);
        }
    }

    /// Keeps a change that helped. A change that did not help before may help on top of it.
    pub fn keep(&mut self, change: Change) {
        self.tried.clear();
        self.tried_again.clear();
        match self.kept.iter_mut().find(|kept| kept.setting == change.setting) {
            // The value to put back stays the one from the start.
            Some(kept) => (kept.to, kept.why) = (change.to, change.why),
            None => self.kept.push(change),
        }
    }

    /// Drops a change that was kept.
    pub fn drop(&mut self, change: &Change) {
        self.kept.retain(|kept| kept.setting != change.setting);
    }

    /// Keeps these changes alone, as they were kept before.
    pub fn keep_only(&mut self, changes: &[Change]) {
        self.kept = changes.to_vec();
    }

    /// All kept changes with one of them as it was at the start, and all kept changes.
    pub fn all_but(&self, change: &Change) -> Vec<Arm> {
        let value = |kept: &Change| match kept.setting == change.setting {
            true => at_start(kept),
            false => kept.to.clone(),
        };
        let without = self.kept.iter().map(|kept| (kept.setting.clone(), value(kept)));
        let with = self.kept.iter().map(|kept| (kept.setting.clone(), kept.to.clone()));
        vec![Arm(without.collect()), Arm(with.collect())]
    }

    /// All kept changes.
    pub fn kept(&self) -> &[Change] {
        &self.kept
    }

    /// All kept changes, without and with one more change.
    pub fn without_and_with(&self, change: &Change) -> Vec<Arm> {
        let others = self.kept.iter().filter(|kept| kept.setting != change.setting);
        let mut without: Vec<_> =
            others.map(|kept| (kept.setting.clone(), kept.to.clone())).collect();
        let mut with = without.clone();
        let now = self.kept.iter().find(|kept| kept.setting == change.setting);
        let now = now.map_or_else(|| at_start(change), |kept| kept.to.clone());
        without.push((change.setting.clone(), now));
        with.push((change.setting.clone(), change.to.clone()));
        vec![Arm(without), Arm(with)]
    }

    /// The start, and all kept changes.
    pub fn start_and_kept(&self) -> Vec<Arm> {
        let arm = |value: fn(&Change) -> String| {
            Arm(self.kept.iter().map(|kept| (kept.setting.clone(), value(kept))).collect())
        };
        vec![arm(at_start), arm(|kept| kept.to.clone())]
    }
}

/// The changes of findings, the first one's first.
fn proposed(findings: &[Finding]) -> impl Iterator<Item = Candidate> {
    findings.iter().flat_map(|Finding { rule, changes, .. }| {
        let of_rule = |change: &Change| Candidate { change: change.clone(), rule: rule.clone() };
        changes.iter().map(of_rule)
    })
}

fn step(change: &Change) -> (SettingRef, String) {
    (change.setting.clone(), change.to.clone())
}

/// A change, and what does the same for the sockets of the measurement.
fn same_steps(change: &Change) -> impl Iterator<Item = (SettingRef, String)> {
    [step(change)].into_iter().chain(of_sockets(change).map(|other| step(&other)))
}

/// Whether `change` does what `other` does, for the sockets of the measurement at least.
fn does_same(change: &Change, other: &Change) -> bool {
    same_steps(change).any(|same| same == step(other))
}

fn at_start(change: &Change) -> String {
    change.from.clone().unwrap_or_else(|| DEFAULT.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Confidence, Place};

    fn change(setting: &str, from: Option<&str>, to: &str) -> Change {
        let (setting, from) = (setting.parse().unwrap(), from.map(Into::into));
        Change { setting, from, to: to.into(), why: "because".into() }
    }

    fn finding(rule: &str, changes: &[Change]) -> Finding {
        let changes = changes.to_vec();
        Finding { changes, ..Finding::new(rule, Place::Near, Confidence::Certain, rule) }
    }

    fn values(arms: &[Arm]) -> Vec<String> {
        arms.iter().map(|arm| arm.values().join(" ")).collect()
    }

    #[test]
    fn each_change_is_tried_once_on_top_of_the_same_others() {
        let mut search = Search::default();
        let (rcvbuf, tso) =
            (change("socket.rcvbuf", None, "4M"), change("offload.tso@e", Some("on"), "off"));
        let findings = [
            finding("a", &[rcvbuf.clone(), tso.clone()]),
            finding("b", std::slice::from_ref(&tso)),
        ];
        search.consider(&findings);
        let first = search.next().unwrap();
        assert_eq!((first.rule.as_str(), &first.change), ("a", &rcvbuf));
        assert_eq!(search.waiting(), 1);
        assert_eq!(values(&search.without_and_with(&rcvbuf)), ["default", "4M"]);
        assert_eq!(search.next().unwrap().change, tso);
        assert!(search.next().is_none());
        search.consider(&findings);
        assert!(search.next().is_none(), "nothing has changed since");
        search.keep(tso.clone());
        search.consider(&findings);
        assert_eq!(search.next().unwrap().change, rcvbuf, "it may help on top of the other");
        assert_eq!(values(&search.without_and_with(&rcvbuf)), ["off default", "off 4M"]);
        assert!(search.next().is_none(), "what is kept is not tried again");
        search.consider(&[finding("c", &[change("offload.tso@e", Some("off"), "on")])]);
        assert!(search.next().is_none(), "nor is it taken back");
    }

    #[test]
    fn what_a_later_run_proposes_comes_before_what_waits() {
        let mut search = Search::default();
        let (rcvbuf, tso) =
            (change("socket.rcvbuf", None, "4M"), change("offload.tso@e", Some("on"), "off"));
        search.consider(&[finding("a", std::slice::from_ref(&rcvbuf))]);
        search.reconsider(&[finding("b", &[tso.clone(), rcvbuf.clone()])]);
        assert_eq!(search.next().unwrap().change, tso);
        assert_eq!(search.next().unwrap().change, rcvbuf);
        assert!(search.next().is_none(), "each waits once");
    }

    #[test]
    fn what_no_run_proposes_is_tried_once_after_all_others() {
        let mut search = Search::default();
        let [rcvbuf, tso, chunk] = [
            change("socket.rcvbuf", None, "4M"),
            change("offload.tso@e", Some("off"), "on"),
            change("chunk", None, "1M"),
        ];
        search.consider_later(&[finding("a", &[tso.clone(), rcvbuf.clone()])]);
        search.consider(&[finding("b", std::slice::from_ref(&rcvbuf))]);
        assert_eq!(search.waiting(), 2, "each waits once");
        assert_eq!(search.next().unwrap().change, rcvbuf);
        search.keep(rcvbuf);
        search.consider(&[finding("c", std::slice::from_ref(&chunk))]);
        assert_eq!(search.next().unwrap().change, chunk);
        assert_eq!(search.next().unwrap().change, tso, "a kept change leaves it waiting");
        search.keep(chunk);
        assert!(search.next().is_none());
    }

    #[test]
    fn what_the_host_does_for_all_sockets_is_not_tried_for_those_of_the_measurement() {
        let host = change("sysctl.net.ipv4.tcp_congestion_control", Some("reno"), "bbr");
        let socket = change("socket.congestion", Some("reno"), "bbr");
        let both = [finding("a", &[host.clone(), socket.clone()])];
        let begun = || {
            let mut search = Search::default();
            search.consider(&both);
            assert_eq!(search.waiting(), 1, "the other comes only if it is refused");
            assert_eq!(search.next().unwrap().change, host);
            assert_eq!(search.waiting(), 0);
            search
        };
        assert!(begun().next().is_none(), "its runs show what the other would show");
        let mut refused = begun();
        refused.refuse(&host);
        assert_eq!(refused.waiting(), 1);
        assert_eq!(refused.next().unwrap().change, socket);
        refused.keep(socket.clone());
        refused.consider(&both);
        assert!(refused.next().is_none(), "what the host would do is in effect");
        let mut kept = begun();
        kept.keep(host.clone());
        kept.consider(&both);
        assert!(kept.next().is_none(), "it is in effect");
    }

    #[test]
    fn what_is_undecided_is_tried_once_more_after_all_others() {
        let mut search = Search::default();
        let (rcvbuf, tso) =
            (change("socket.rcvbuf", None, "4M"), change("offload.tso@e", Some("on"), "off"));
        search.consider(&[finding("a", &[rcvbuf.clone(), tso.clone()])]);
        let first = search.next().unwrap();
        search.postpone(first.clone());
        assert_eq!(search.waiting(), 2);
        assert_eq!(search.next().unwrap().change, tso);
        assert_eq!(search.next().unwrap(), first);
        search.postpone(first.clone());
        assert!(search.next().is_none(), "twice is enough");
        search.keep(tso);
        search.postpone(first);
        assert!(search.next().is_some(), "it may help on top of the other");
    }

    #[test]
    fn each_kept_change_can_be_left_out_again() {
        let mut search = Search::default();
        let tso = change("offload.tso@e", Some("on"), "off");
        search.keep(change("socket.rcvbuf", None, "4M"));
        search.keep(tso.clone());
        assert_eq!(values(&search.all_but(&tso)), ["4M on", "4M off"]);
        search.drop(&tso);
        assert_eq!(values(&search.start_and_kept()), ["default", "4M"]);
    }

    #[test]
    fn a_setting_that_is_raised_twice_is_compared_with_its_first_value_in_the_end() {
        let mut search = Search::default();
        search.keep(change("socket.rcvbuf", Some("64K"), "1M"));
        let more = change("socket.rcvbuf", Some("1M"), "8M");
        assert_eq!(values(&search.without_and_with(&more)), ["1M", "8M"]);
        search.keep(more);
        assert_eq!(values(&search.start_and_kept()), ["64K", "8M"]);
        assert_eq!(search.kept().len(), 1);
    }
}
