//! A fleet whose parts are killed, cut off and suspended: each task has one outcome, and nothing is measured twice.

use std::io::{BufRead, BufReader, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;

use goodput_testing::servers::{Nats, nats_cluster};
use goodput_testing::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Home, records, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).expect("it is ours");
}

#[test]
fn a_bus_that_is_killed_in_a_test_and_comes_back_loses_nothing() {
    let Some(mut fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let home = Home::new();
    let mut news = fleet.nats.hear("goodput.news.b.*");
    let run = fleet.run(&home, &fleet.mesh(&PAIR.replace("1s", "3s")));
    // There is none before a has answered that it listens: an answer would be lost with the bus.
    news.next_message();
    fleet.nats.kill();
    fleet.nats.start();
    let output = run.wait_with_output().expect("it ends");
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}{}", stderr(&output), b.log());
    assert_eq!((b.records().len(), records(home.path()).len()), (2, 2), "{said}");
}

/// A way to the bus that can be cut.
struct Way {
    address: SocketAddr,
    /// Both ends of what goes this way; none while it is cut.
    ends: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Way {
    fn to(bus: &str) -> Self {
        let bus: SocketAddr = bus.trim_start_matches("nats://").parse().expect(bus);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let ends = Arc::new(Mutex::new(Some(Vec::new())));
        let all = Arc::clone(&ends);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if let Some(ends) = &mut *all.lock().expect("no test thread has panicked")
                    && let Ok(far) = TcpStream::connect(bus)
                {
                    pass_on(&near, &far);
                    pass_on(&far, &near);
                    ends.extend([near, far]);
                }
            }
        });
        Self { address, ends }
    }

    fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    fn cut(&self) {
        for end in
            self.ends.lock().expect("no test thread has panicked").take().into_iter().flatten()
        {
            // The other side may have closed it.
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        *self.ends.lock().expect("no test thread has panicked") = Some(Vec::new());
    }
}

fn pass_on(from: &TcpStream, to: &TcpStream) {
    let [mut from, mut to] = [from, to].map(|end| end.try_clone().expect("there is room"));
    thread::spawn(move || {
        let _ = copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// A partition: the agent that measures is cut off from the bus, not from the agent that it measures with.
#[test]
fn an_agent_that_is_cut_off_in_a_test_hands_its_record_over_when_it_is_back() {
    let Some(fleet) = Fleet::new() else { return };
    let way = Way::to(&fleet.nats.url());
    let a = Agent::start(&fleet, "a");
    let b = Agent::start_with(&fleet, "b", Home::new(), &["--nats", &way.url()]);
    let mesh = PAIR.replace("1s", "3s").replace("pause", "directions = \"one\"\npause");
    let mut news = fleet.nats.hear("goodput.news.b.*");
    let home = Home::new();
    let run = fleet.run(&home, &fleet.mesh(&mesh));
    // There is none before a has answered that it listens.
    news.next_message();
    way.cut();
    wait_for("the end of the test", || b.records().len() == 1 && a.servers() == 0);
    way.mend();
    let output = run.wait_with_output().expect("it ends");
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}{}", stderr(&output), b.log());
    assert_eq!((b.records().len(), records(home.path()).len()), (1, 1), "{said}");
}

#[test]
fn a_coordinator_that_waits_takes_over_from_one_that_was_killed() {
    let Some(fleet) = Fleet::new() else { return };
    let (a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("1s", "3s"));
    let (first, second) = (Home::new(), Home::new());
    let mut run = fleet.run(&first, &mesh);
    wait_for("a server at a", || a.servers() == 1);
    let successor = fleet.run(&second, &mesh);
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
    let output = successor.wait_with_output().expect("it ends");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{}{said}", stdout(&output));
    assert_eq!((b.records().len(), records(second.path()).len()), (2, 2), "{}", stdout(&output));
    let took_over = said.lines().find(|line| line.contains("is now the coordinator; "));
    assert!(took_over.is_some_and(|line| line.contains("Z coordinator: ")), "{said}");
    assert!(said.contains("going on with the turn"), "{said}");
}

/// The history was away when this one coordinated, and it stands by since.
#[test]
fn a_coordinator_that_stands_by_saves_what_waits_for_its_history() {
    let Some(fleet) = Fleet::new() else { return };
    let mesh = fleet.mesh(&PAIR.replace("[test]", "[test]\nevery = \"1h\""));
    let (first, second) = (Home::new(), Home::new());
    let mut works = fleet.coordinate(&first, &["run", &mesh]);
    let mut said = BufReader::new(works.stderr.take().expect("stderr is piped")).lines();
    until("this process is now the coordinator", &mut said);
    let mut waits = fleet.coordinate(&second, &["run", &mesh]);
    let mut said = BufReader::new(waits.stderr.take().expect("stderr is piped")).lines();
    until("waiting: a coordinator runs", &mut said);
    let folders = std::fs::read_dir(second.path().join("state/fleet")).expect("it is there");
    let folder = folders.flatten().next().expect("it has one").path().join("unsaved");
    let record = include_str!("../../src/report/example/record.json");
    // In one step: it looks every few seconds.
    std::fs::write(second.path().join("new"), record).expect("it is ours");
    std::fs::rename(second.path().join("new"), folder.join("0-t.json")).expect("it is ours");
    wait_for("the record to be in the history", || {
        !folder.join("0-t.json").exists() && records(second.path()).len() == 1
    });
    for mut child in [works, waits] {
        child.kill().expect("it runs");
        child.wait().expect("it is ours");
    }
}

/// As a service manager ends what it has started: nothing has failed.
#[test]
fn a_coordinator_that_waits_or_goes_on_ends_well_when_it_is_asked_to() {
    let Some(fleet) = Fleet::new() else { return };
    let (a, _b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = PAIR.replace("1s", "50s").replace("[test]", "[test]\nevery = \"1h\"");
    let mesh = fleet.mesh(&mesh);
    let (first, second) = (Home::new(), Home::new());
    let in_a_turn = fleet.coordinate(&first, &["run", &mesh]);
    wait_for("a server at a", || a.servers() == 1);
    let mut waits = fleet.coordinate(&second, &["run", &mesh]);
    let mut said = BufReader::new(waits.stderr.take().expect("stderr is piped")).lines();
    let is_said = |line: std::io::Result<String>| line.is_ok_and(|line| line.contains("waiting: "));
    assert!(said.any(is_said), "a coordinator runs");
    for child in [&waits, &in_a_turn] {
        signal(child, Signal::TERM);
    }
    for child in [waits, in_a_turn] {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    }
}

/// As service managers do that start again whatever ends.
#[test]
fn a_coordinator_that_stays_tests_a_mesh_once_however_often_it_is_started() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("1s", "0.3s"));
    let home = Home::new();
    for tests in [3, 4] {
        let mut stays = fleet.coordinate(&home, &["run", &mesh, "--stay"]);
        if tests == 3 {
            let mut lines = BufReader::new(stays.stdout.take().expect("stdout is piped")).lines();
            let is_over =
                |line: std::io::Result<String>| line.is_ok_and(|line| line.contains("2/2"));
            assert!(lines.any(is_over), "it tests both directions");
        }
        let output = fleet.test(&Home::new(), &["b", "a"]);
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        signal(&stays, Signal::TERM);
        let output = stays.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(b.records().len(), tests, "{}", b.log());
    }
}

/// As a host that was suspended: it wakes up as a coordinator that is none any more.
#[test]
fn a_coordinator_that_was_stopped_gives_out_nothing_beside_its_successor() {
    let Some(fleet) = Fleet::new() else { return };
    let (a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("1s", "3s"));
    let (first, second) = (Home::new(), Home::new());
    let stopped = fleet.run(&first, &mesh);
    wait_for("a server at a", || a.servers() == 1);
    signal(&stopped, Signal::STOP);
    wait_for("the first test to end", || a.servers() == 0);
    let successor = fleet.run(&second, &mesh);
    wait_for("the test of the successor", || a.servers() == 1);
    signal(&stopped, Signal::CONT);
    let woken = stopped.wait_with_output().expect("it ends");
    let said = stdout(&woken) + &stderr(&woken);
    assert_eq!(woken.status.code(), Some(2), "{said}");
    assert!(said.contains("meanwhile"), "{said}");
    let output = successor.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!((b.records().len(), records(second.path()).len()), (2, 2), "{said}");
}

#[test]
fn agent_and_coordinator_say_that_nats_is_back_if_they_said_that_it_was_away() {
    let Some(mut fleet) = Fleet::new() else { return };
    let (a, _b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("[test]", "[test]\nevery = \"1h\""));
    let home = Home::new();
    let mut run = fleet.coordinate(&home, &["run", &mesh]);
    let mut said = BufReader::new(run.stderr.take().expect("stderr is piped")).lines();
    until("this process is now the coordinator", &mut said);
    fleet.nats.kill();
    until("; trying again", &mut said);
    wait_for("the agent to say that NATS is away", || a.log().contains("; trying again"));
    fleet.nats.start();
    until("NATS answers again, ", &mut said);
    wait_for("the agent to say that NATS is back", || a.log().contains("NATS answers again, "));
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
}

/// Reads lines until one has these words.
fn until(words: &str, lines: &mut impl Iterator<Item = std::io::Result<String>>) {
    let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(words)));
    assert!(found.is_some(), "it has ended without {words:?}");
}

/// Its host was suspended while someone asked for one test, which took the lease for that.
#[test]
fn a_coordinator_whose_lease_a_short_test_took_stands_by_and_goes_on() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("[test]", "[test]\nevery = \"1h\""));
    let home = Home::new();
    let mut run = fleet.coordinate(&home, &["run", &mesh]);
    let mut lines = BufReader::new(run.stdout.take().expect("stdout is piped")).lines();
    let mut said = BufReader::new(run.stderr.take().expect("stderr is piped")).lines();
    until("2/2  b → a", &mut lines);
    let test = || {
        let output = fleet.test(&Home::new(), &["a", "b"]);
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    };
    signal(&run, Signal::STOP);
    test();
    signal(&run, Signal::CONT);
    test();
    until("standing by", &mut said);
    until("is now the coordinator; ", &mut said);
    assert_eq!(b.records().len(), 4, "{}", b.log());
    assert!(run.try_wait().expect("it is ours").is_none(), "it goes on");
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
}

/// A coordinator is ended in the middle of a test. The next one has another mesh, whose test needs a host that is still in
/// the first one.
#[test]
fn a_successor_with_another_mesh_waits_for_a_test_that_goes_on() {
    let Some(fleet) = Fleet::new() else { return };
    let (a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let c = Agent::start(&fleet, "c");
    let one_way = PAIR.replace("pause", "directions = \"one\"\npause");
    let home = Home::new();
    let run = fleet.run(&home, &fleet.mesh(&one_way.replace("1s", "8s")));
    wait_for("a server at a", || a.servers() == 1);
    signal(&run, Signal::INT);
    run.wait_with_output().expect("it ends");
    let mesh = fleet.mesh(&one_way.replace("[site.b]", "[site.c]"));
    let output = fleet.run_to_the_end(&home, &mesh);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}{}", stderr(&output), a.log());
    wait_for("both records", || (b.records().len(), c.records().len()) == (1, 1));
}

#[test]
fn an_agent_that_is_started_while_the_servers_have_no_leader_waits_for_one() {
    let (storage, home) = (Home::new(), Home::new());
    let Some(mut cluster) = nats_cluster(storage.path()) else { return };
    let url = cluster[0].url();
    // One of three is no majority.
    cluster[1..].iter_mut().for_each(Nats::kill);
    let mut agent = Agent::begin("a", home, &["--nats", &url]);
    wait_for("the agent to say that it waits", || agent.log().contains("waiting for NATS"));
    cluster[1..].iter_mut().for_each(Nats::start);
    agent.wait_for_name("a");
}
