//! A fleet with one history in PostgreSQL, which is away for a while.

use goodput_model::Record;
use goodput_store::{Place, Store, Wanted};
use goodput_testing::servers::own_postgres;
use goodput_testing::wait_for;

use crate::common::{Home, records, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};

/// The records in a database, the oldest first.
fn kept(url: &str) -> Vec<Record> {
    let place = Place::named(url.as_ref()).expect("it names a database");
    let store = Store::open(place).expect("it runs");
    let mut found = store.search(&Wanted::default()).expect("it can be read");
    found.sort_by(|one, two| one.started.cmp(&two.started));
    found.iter().map(|entry| store.get(entry.id).expect("it is a record")).collect()
}

/// How many records of the agent b wait on its disk.
fn waiting(home: &Home) -> usize {
    waiting_of(home, "b")
}

/// How many records of an agent or a coordinator wait on its disk. `whose` is how the names of its directories begin.
fn waiting_of(home: &Home, whose: &str) -> usize {
    let within = |folder| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let folders = within(home.path().join("state/fleet"));
    let own = folders.filter(|folder| name(folder).starts_with(whose));
    let files = own.flat_map(|folder| within(folder.path().join("unsaved")));
    files.filter(|file| name(file).ends_with(".json")).count()
}

/// The coordinator alone uses the database: nobody else saves what it does not.
#[test]
fn a_coordinator_waits_for_its_database_says_so_once_and_loses_nothing() {
    let Some(mut fleet) = Fleet::new() else { return };
    let Some(database) = own_postgres() else { return };
    let url = database.url(&database.new_database());
    fleet.coordinator = ["--store", &url].map(String::from).to_vec();
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("[test]", "[test]\nevery = \"4s\""));
    let waits = |home: &Home| waiting_of(home, "=coordinator");
    database.stop();
    let home = Home::new();
    let mut run = fleet.coordinate(&home, &["run", &mesh]);
    wait_for("two records to wait", || waits(&home) >= 2);
    database.start();
    wait_for("the records to be saved", || waits(&home) == 0);
    database.stop();
    // When the second one waits, what the first one found was said.
    wait_for("two records to wait again", || waits(&home) >= 2);
    // Its disk has them over a restart.
    run.kill().expect("it runs");
    let said = stderr(&run.wait_with_output().expect("it ends"));
    assert_eq!(said.matches("records wait on this disk").count(), 2, "once each time: {said}");
    assert_eq!(said.matches("the history takes records again").count(), 1, "{said}");
    assert!(!said.contains("was not kept"), "{said}");
    let output = fleet.run_to_the_end(&home, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains("the next `goodput fleet run` here"), "{}", stderr(&output));
    database.start();
    let output = fleet.run_to_the_end(&home, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(waits(&home), 0, "{}", stderr(&output));
    let mut measured = b.records();
    measured.sort_by(|one, two| one.started.cmp(&two.started));
    let kept = kept(&url);
    assert!(kept.len() >= 5, "{}", kept.len());
    // The last test may have ended without the coordinator that was killed, and before the next one asked.
    assert_eq!(kept, measured, "each once, and whole");
}

#[test]
fn records_wait_on_the_agent_s_disk_while_the_database_is_away_and_are_there_once_afterwards() {
    let Some(mut fleet) = Fleet::new() else { return };
    let Some(database) = own_postgres() else { return };
    let url = database.url(&database.new_database());
    let shared = ["--store", &url];
    let _a = Agent::start(&fleet, "a");
    let b = Agent::start_with(&fleet, "b", Home::new(), &shared);
    let mesh = fleet.mesh(PAIR);
    database.stop();
    let own = Home::new();
    let output = fleet.run_to_the_end(&own, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), b.log());
    assert_eq!(waiting(&b.home), 2, "{}", b.log());
    assert!(b.log().contains("records wait on this disk"), "{}", b.log());
    // Its disk has them over a restart, which does not wait for the database.
    let b = Agent::start_with(&fleet, "b", b.kill(), &shared);
    assert_eq!(waiting(&b.home), 2);
    database.start();
    wait_for("the records to be saved", || waiting(&b.home) == 0);
    let mut measured = records(own.path());
    measured.sort_by(|one, two| one.started.cmp(&two.started));
    assert_eq!(kept(&url), measured, "each once, and whole");
    // Agent and coordinator save the same records, in the same database.
    fleet.coordinator = shared.map(String::from).to_vec();
    let output = fleet.run_to_the_end(&Home::new(), &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let all = kept(&url);
    assert_eq!(all.len(), 4, "{}", b.log());
    assert_eq!(all[..2], measured);
}
