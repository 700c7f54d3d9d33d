//! Agents whose clocks are wrong by more than a day: all that several hosts must agree on goes by the clock of NATS. The clock
//! of a host is that of all its processes, so each agent has one of its own by libfaketime.

use std::path::PathBuf;

use goodput_testing::servers::has;
use jiff::{SignedDuration, Timestamp};

use crate::common::{Home, records, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};

/// More than a task may be begun after it was given out.
const WRONG: SignedDuration = SignedDuration::from_hours(30);

/// The library of Debian's faketime, for programs with threads.
fn library() -> Option<PathBuf> {
    if !has("faketime") {
        return None;
    }
    let machines = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let file = |folder: std::fs::DirEntry| folder.path().join("faketime/libfaketimeMT.so.1");
    machines.map(file).find(|file| file.exists())
}

/// An agent whose clock is wrong by so much, such as `+30h`.
fn agent(fleet: &Fleet, name: &str, wrong: &str, library: &str) -> Agent {
    let environment = [
        ("LD_PRELOAD", library),
        ("FAKETIME", wrong),
        // A clock that is wrong runs as fast as any other.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    let url = fleet.nats.url();
    let mut agent = Agent::begin_within(name, Home::new(), &["--nats", &url], &environment);
    agent.wait_for_name(name);
    agent
}

#[test]
fn agents_whose_clocks_are_wrong_by_more_than_a_day_test_as_others_do() {
    let Some(library) = library() else { return };
    let library = library.to_str().expect("it has a plain name");
    let Some(fleet) = Fleet::new() else { return };
    let _a = agent(&fleet, "a", "-30h", library);
    let b = agent(&fleet, "b", "+30h", library);
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &fleet.mesh(PAIR));
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}{}", stderr(&output), b.log());
    assert!(said.contains("2 sites, 2 of 2 pairs tested"), "{said}");
    let now = Timestamp::now();
    let kept = records(home.path());
    assert_eq!(kept.len(), 2);
    for record in kept {
        let started: Timestamp = record.started.parse().expect("it is a time");
        let ahead = started.duration_since(now);
        assert!(ahead > WRONG / 2 && ahead < WRONG * 2, "b has measured: {ahead}");
    }
    // An hour of the day that is closed by the clocks of both agents, and open by that of NATS.
    let clock = now.to_zoned(jiff::tz::TimeZone::UTC);
    let [from, until] = [-1, 2].map(|hours| {
        let time = clock.checked_add(SignedDuration::from_hours(hours)).expect("it is a time");
        time.strftime("%H:%M").to_string()
    });
    let windows = format!("[test]\nwindows = [\"{from}-{until}\"]");
    let mesh = fleet.mesh(&PAIR.replace("[test]", &windows));
    let output = fleet.run_to_the_end(&home, &mesh);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}{}", stderr(&output), b.log());
    assert!(!said.contains("waiting until"), "{said}");
}
