//! Who chooses the mover, and what is said if one can't run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use goodput_model::{EndName, MoverChoice, Record, Role};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::common::{Home, Server, exe, record, stderr, stdout};

fn test(home: &Home, server: &Server, options: &[&str]) -> Output {
    home.run(&[&["test", &server.address, "--no-store", "--json", "-n", "1M"], options].concat())
}

fn chosen(record: &Record, end: EndName) -> &[MoverChoice] {
    let end = if end == EndName::Near { &record.ends.near } else { &record.ends.far };
    &end.value().expect("both ends report it").movers
}

#[test]
fn each_end_reports_what_it_chose_and_why() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let record = record(&test(&home, &server, &["--mover", "auto"]));
    assert_eq!(record.plan.mover, "auto");
    let (near, far) = (chosen(&record, EndName::Near), chosen(&record, EndName::Far));
    assert_eq!((near.len(), near[0].role), (1, Role::Sender));
    assert_eq!((far.len(), far[0].role, far[0].mover.as_str()), (1, Role::Receiver, "discard"));
    assert!(near.iter().chain(far).all(|choice| !choice.why.is_empty()));
    let shown = stdout(&home.run(&[
        "test",
        &server.address,
        "--no-store",
        "-n",
        "1M",
        "--both",
        "--mover",
        "auto",
    ]));
    for line in ["near sent by ", "near received by ", "far sent by ", "far received by "] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
}

#[test]
fn one_side_alone_can_be_left_to_its_end() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let record = record(&test(&home, &server, &["--receive-mover", "auto"]));
    assert!(chosen(&record, EndName::Near).is_empty());
    assert_eq!(chosen(&record, EndName::Far).len(), 1);
}

#[test]
fn datagrams_go_the_fastest_way_unless_they_have_a_rate_or_a_mover() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let run = |options: &[&str]| {
        let record = record(&test(&home, &server, &[&["--udp"], options].concat()));
        let of = |end| chosen(&record, end).iter().map(|choice| choice.mover.clone()).collect();
        let both: [Vec<_>; 2] = [EndName::Near, EndName::Far].map(of);
        (record.plan.mover.clone(), both.concat())
    };
    assert_eq!(run(&[]), ("auto".into(), vec!["gso".into(), "gro".into()]));
    assert_eq!(run(&["--rate", "100mbit"]), ("copy".into(), vec![]), "each one spaced");
    assert_eq!(run(&["--mover", "datagram"]), ("datagram".into(), vec![]), "as the user said");
    let command = ["test", &server.address, "--no-store", "-n", "1M", "--udp"];
    let shown = stdout(&home.run(&command));
    assert!(shown.contains("near sent by gso: many datagrams pass"), "{shown}");
}

fn refused(output: &Output, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} in {text}");
    }
}

#[test]
fn a_limit_on_descriptors_that_is_too_low_here_is_named_before_the_test() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    // Enough for `copy` and some more, as the program may be given descriptors of other tests; not for the pipes of `splice`.
    let limited = |mover: &str| {
        let output = Command::new("sh")
            .args(["-c", "ulimit -n 90; exec \"$@\"", "sh"])
            .arg(exe())
            .args(["test", &server.address, "--no-store", "-n", "3M", "-P", "30"])
            .args(["--mover", mover])
            .env("GOODPUT_STATE_DIR", home.path().join("state"))
            .output();
        output.expect("a shell can be started")
    };
    let words = ["near end: mover splice", "for 30 flows", "90 (RLIMIT_NOFILE)", "ulimit -n "];
    refused(&limited("splice"), &words);
    let shown = limited("auto");
    assert!(shown.status.success(), "{}", stderr(&shown));
    assert!(!stdout(&shown).contains("sent by splice"), "{}", stdout(&shown));
}

/// A server whose limits this process may change: it stays the same user.
const LIMITED: [&str; 1] = ["--no-sandbox"];

#[test]
fn a_limit_on_descriptors_that_is_too_low_there_is_named_before_the_test() {
    let home = Home::new();
    let server = Server::start(&home, &LIMITED);
    let limit = Rlimit { current: Some(50), maximum: Some(50) };
    let pid = Pid::from_raw(server.pid() as i32);
    prlimit(pid, Resource::Nofile, limit).expect("the limit of a child can be lowered");
    let output = test(&home, &server, &["-P", "30"]);
    refused(&output, &["refused", "for 30 flows", "50 (RLIMIT_NOFILE)", "ulimit -n "]);
}

/// Lets a server have `current` descriptors; how many it could have before.
fn limit_descriptors(server: &Server, current: Option<u64>) -> Rlimit {
    let pid = Pid::from_raw(server.pid() as i32);
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    prlimit(pid, Resource::Nofile, Rlimit { current, maximum }).expect("it is a child")
}

#[test]
fn a_server_without_a_descriptor_left_says_so_and_goes_on() {
    let home = Home::new();
    let server = Server::start(&home, &LIMITED);
    let open = |number: &u64| Path::new(&format!("/proc/{}/fd/{number}", server.pid())).exists();
    let free = (0..).find(|number| !open(number)).expect("numbers never end");
    let before = limit_descriptors(&server, Some(free));
    let words = ["refused", "can't accept connections", &format!("more than {free} (ulimit -n)")];
    refused(&test(&home, &server, &[]), &words);
    refused(&test(&home, &server, &["-R"]), &words);
    limit_descriptors(&server, before.current);
    record(&test(&home, &server, &[]));
    let log = std::fs::read_to_string(home.path().join("server.log")).expect("it writes one");
    assert_eq!(log.matches("can't accept connections for now").count(), 1, "{log}");
}

/// Runs the program as a user without other processes and with this limit of threads; root has no limit.
fn with_threads(home: &Home, server: &Server, threads: &str) -> Output {
    let program = home.path().join("goodput");
    // By another process: while this one writes, one that another test starts would have the file open for writing, too,
    // and nobody could run it.
    let copied = Command::new("cp").arg(exe()).arg(&program).status();
    assert!(copied.is_ok_and(|status| status.success()), "the temporary directory has room");
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let user: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"],
        false => &["env"],
    };
    let mut command = Command::new(user[0]);
    command.args(&user[1..]).args(["prlimit", &format!("--nproc={threads}:{threads}")]);
    command.arg(program).args(["test", &server.address, "--no-store", "-n", "1M"]);
    command.output().expect("util-linux is there")
}

#[test]
fn a_limit_on_threads_that_is_too_low_is_named() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    for threads in ["1", "2"] {
        let output = with_threads(&home, &server, threads);
        refused(&output, &["can't start a thread", "ulimit -u"]);
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
}

#[test]
fn chunks_beyond_the_memory_of_this_host_are_refused() {
    let home = Home::new();
    let server = Server::start(&home, &["--max-chunk", "256M", "--max-flows", "900"]);
    // Only what is written to a sink takes a buffer of a whole chunk for each flow.
    let sink = ["--sink", "/dev/null"];
    let output =
        test(&home, &server, &[&["-R", "--chunk", "256M", "-P", "900"], &sink[..]].concat());
    refused(&output, &["near end: mover copy", "in memory", "smaller --chunk or fewer flows"]);
}

#[test]
fn a_mover_that_lacks_a_side_is_refused_with_those_that_have_it() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let output = test(&home, &server, &["--receive-mover", "sendfile"]);
    refused(&output, &["mover sendfile", "it only sends", "--receive-mover of copy, discard"]);
    let output = test(&home, &server, &["--mover", "discard", "--receive-mover", "copy"]);
    refused(&output, &["near end: mover discard", "it only receives"]);
}
