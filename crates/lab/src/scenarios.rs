//! The built-in scenarios: the ground truth for judging the diagnosis.

/// A scenario that comes with goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub toml: &'static str,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        const BUILTIN: &[Builtin] = &[$(Builtin {
            name: $name,
            toml: include_str!(concat!("../scenarios/", $name, ".toml")),
        }),*];
    };
}

builtin!(
    "ack-path",
    "both-buffer-loss",
    "both-burst-quota",
    "both-window-loss",
    "both-window-quota",
    "burst-too-small",
    "congestion-control",
    "cpu-quota-far",
    "cpu-quota-near",
    "credit-bucket",
    "ecn-marking",
    "foreign-cpu-quota",
    "foreign-healthy",
    "foreign-path-loss",
    "foreign-receive-window",
    "foreign-sender",
    "fragmentation",
    "healthy-lan",
    "healthy-load",
    "healthy-one-cpu",
    "healthy-routed",
    "healthy-wan",
    "link-flap",
    "local-drop",
    "middlebox",
    "middlebox-mss",
    "mtu-mismatch",
    "offload-off",
    "pacing-cap",
    "path-loss",
    "path-loss-bursts",
    "path-rate",
    "pmtu-black-hole",
    "policer",
    "policer-paced",
    "queue-too-long",
    "queue-too-short",
    "queue-too-short-near",
    "receive-window",
    "reordering",
    "route-window",
    "sack-off",
    "send-buffer",
    "sender-application",
    "server-limit",
    "shaper-rate",
    "small-mss",
    "small-writes",
    "startup",
    "tso-oversize",
    "udp-receive-buffer",
    "window-scaling-off",
    "wrong-class",
);

/// All built-in scenarios, by name.
pub fn builtin() -> &'static [Builtin] {
    BUILTIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Expect, Scenario};

    #[test]
    fn every_scenario_loads_and_bears_the_name_of_its_file() {
        for builtin in builtin() {
            for scenario in Scenario::cases(builtin.name).unwrap() {
                assert_eq!(scenario.name, builtin.name);
                assert!(scenario.title.ends_with('.'), "{}: a title is a sentence", scenario.case);
                let Expect { limit, both, .. } = &scenario.expect;
                assert!(limit.len() + both.len() > 0, "{}: expects nothing", scenario.case);
            }
        }
    }

    #[test]
    fn the_list_is_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        let listed: Vec<_> = builtin().iter().map(|b| b.name).collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn the_demo_s_scenario_needs_no_more_than_namespaces() {
        assert!(Scenario::load("burst-too-small").unwrap().needs().is_empty());
    }
}
