//! What a process can and can't do once it has given up the rest. The process is this program, started
//! again: what it gives up is gone for good, and no other thread may run.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, ExitCode};

use goodput_sandbox::{Keep, User, check_open, enter};
use libtest_mimic::{Arguments, Failed, Trial};

/// The command of the restarted program, followed by the directories that it keeps.
const CHILD: &str = "give-up";

/// Directories that are kept to read, to write and to open files of, and one that is not kept.
const PLACES: [&str; 4] = ["read", "write", "named", "closed"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, child, names, user, places] = &words[..]
        && child == CHILD
    {
        report(names == "names", user, places.as_ref());
        return ExitCode::SUCCESS;
    }
    let tests = vec![
        Trial::test("facts_and_own_directories_stay", facts_and_own_directories_stay),
        Trial::test("everything_else_is_gone", everything_else_is_gone),
        Trial::test(
            "names_are_looked_up_where_that_is_kept",
            names_are_looked_up_where_that_is_kept,
        ),
        Trial::test("root_without_capabilities_is_held_too", root_is_held_too),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// Tries everything, a line each: `WHAT yes` or `WHAT no`.
fn report(names: bool, user: &str, places: &Path) {
    let [read, write, named, closed] = PLACES.map(|name| places.join(name));
    let user = User::choose((user != "usual").then_some(user)).expect("the user is there");
    let keep = Keep {
        user,
        read: vec![read.clone()],
        open: vec![named.clone()],
        write: vec![write.clone()],
        resolves_names: names,
        terminal: false,
    };
    for lack in enter(&keep).expect("this host can") {
        println!("lacks: {lack}");
    }
    let say = |what: &str, could: bool| println!("{what} {}", if could { "yes" } else { "no" });
    say("proc", fs::read_to_string("/proc/self/stat").is_ok());
    say("sys", fs::read_dir("/sys/class/net").is_ok());
    say("null", fs::write("/dev/null", "x").is_ok());
    say("read", fs::read_to_string(read.join("file")).is_ok());
    say("named", fs::read_to_string(named.join("file")).is_ok());
    say("named-list", fs::read_dir(&named).is_ok());
    say("write", fs::write(write.join("made"), "x").is_ok());
    say("thread", std::thread::Builder::new().spawn(|| ()).is_ok_and(|t| t.join().is_ok()));
    say("tcp", TcpListener::bind("127.0.0.1:0").is_ok());
    say("open", check_open(&read, false).is_ok() && check_open(&write, true).is_ok());
    say("remove", fs::remove_file(write.join("made")).is_ok());
    say("write-read", fs::write(read.join("made"), "x").is_ok());
    say("closed", fs::read_to_string(closed.join("file")).is_ok());
    say("sysctl", File::options().write(true).open("/proc/sys/net/ipv4/ip_default_ttl").is_ok());
    say("hosts", fs::read_to_string("/etc/hosts").is_ok());
    say("program", Command::new("/bin/true").status().is_ok());
    say("unix", UnixDatagram::unbound().is_ok());
    say("root", rustix::thread::set_thread_uid(rustix::process::Uid::ROOT).is_ok());
    say("affinity", rustix::thread::sched_getaffinity(None).is_ok());
    say("localhost", ("localhost", 1).to_socket_addrs().is_ok());
}

/// What the child said.
fn given_up(names: &str, user: &str) -> Result<String, Failed> {
    let place = tempfile::tempdir()?;
    open_to_all(place.path())?;
    for directory in PLACES.map(|name| place.path().join(name)) {
        fs::create_dir(&directory)?;
        fs::write(directory.join("file"), "x")?;
        open_to_all(&directory)?;
        open_to_all(&directory.join("file"))?;
    }
    let output = Command::new(std::env::current_exe()?)
        .args([CHILD, names, user])
        .arg(place.path())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{}: {said} {complained}", output.status).into());
    }
    Ok(said)
}

/// What holds the child is not what this directory denies.
fn open_to_all(path: &Path) -> std::io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777))
}

fn expect(said: &str, what: &[&str], answer: &str) -> Result<(), Failed> {
    let wrong: Vec<_> = what
        .iter()
        .filter(|what| !said.lines().any(|line| line == format!("{what} {answer}")))
        .collect();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("not {answer}: {wrong:?} in\n{said}").into())
    }
}

const STAYS: [&str; 10] =
    ["proc", "sys", "null", "read", "named", "write", "thread", "tcp", "open", "affinity"];

fn facts_and_own_directories_stay() -> Result<(), Failed> {
    expect(&given_up("none", "usual")?, &STAYS, "yes")
}

fn everything_else_is_gone() -> Result<(), Failed> {
    let gone = [
        "named-list",
        "remove",
        "write-read",
        "closed",
        "sysctl",
        "hosts",
        "program",
        "unix",
        "root",
        "localhost",
    ];
    expect(&given_up("none", "usual")?, &gone, "no")
}

fn names_are_looked_up_where_that_is_kept() -> Result<(), Failed> {
    let said = given_up("names", "usual")?;
    expect(&said, &STAYS, "yes")?;
    expect(&said, &["hosts", "localhost", "unix"], "yes")?;
    expect(&said, &["remove", "closed", "sysctl", "program", "root"], "no")
}

/// As root of a user namespace that has nobody else.
fn root_is_held_too() -> Result<(), Failed> {
    if !rustix::process::geteuid().is_root() {
        // Only root stays root.
        return Ok(());
    }
    let said = given_up("none", "root")?;
    expect(&said, &STAYS, "yes")?;
    expect(&said, &["remove", "closed", "sysctl", "hosts", "program", "unix"], "no")
}
