//! Comparisons that change a host by SSH die at random moments, and the whole network namespace of that host is compared with
//! what it was.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use goodput_testing::wait_for;

use crate::by_ssh::{FILES, Host, dead_man, ssh_of};
use crate::common::{Server, stderr, stdout};
use crate::namespace::{difference, look};

/// Kills in an ordinary test run; `cargo xtask kills --ssh N` has more.
const FEW: u32 = 7;

/// Longest time before a kill, milliseconds: a login, the trial of both arms, and some runs.
const LONGEST_MS: u64 = 4000;

/// What is changed, and between which values.
const CHANGES: [&str; 7] = [
    "far:sysctl.net.ipv4.tcp_rmem=4096 65536 262144,4096 65536 524288",
    "far:offload.tx-checksum@v0=on,off",
    "far:link.mtu@v0=1500,1400",
    "far:link.txqueuelen@v0=1000,300",
    "far:qdisc.kind@v0=default,pfifo",
    "far:polling@v0=interrupts,deferred",
    "far:rps.cpus@v0=0,1",
];

/// Who dies, in words.
const VICTIMS: [&str; 5] =
    ["goodput", "ssh", "the host's shells", "goodput and the dead-man", "goodput and ssh"];

#[test]
fn killed_at_any_moment_the_whole_host_comes_back() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let kills = std::env::var("GOODPUT_KILLS").ok().and_then(|kills| kills.parse().ok());
    host.sh("sysctl -w net.ipv4.tcp_rmem='4096 131072 1048576' net.ipv6.conf.v0.mtu=1400");
    let look = format!("{}; {FILES}", look(&["v0", "v1"]));
    wait_for("the addresses to settle", || has_settled(&host.lines(&look)));
    let before = host.lines(&look);
    let mut undone = 0;
    for number in 0..kills.unwrap_or(FEW) {
        let change = CHANGES[number as usize % CHANGES.len()];
        let victim = rand::random_range(0..VICTIMS.len());
        let delay = Duration::from_millis(rand::random_range(0..LONGEST_MS));
        let what = format!("kill {number}: {} after {delay:?} of {change}", VICTIMS[victim]);
        let compare =
            ["compare", &server.address, change, "--far", "ssh://b", "--no-store", "-n", "1M"];
        let mut command = host.goodput(&compare);
        let mut run =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        // The moment is what is random: there is no condition to wait for.
        sleep(delay);
        end(&host, &mut run, victim);
        undone += u32::from(is_undone(&host, &look, &before, &what));
    }
    println!(
        "{} kills, all as before; {undone} only after `goodput settings undo`",
        kills.unwrap_or(FEW)
    );
}

/// Whether both devices have their link-local address for good. The kernel adds it a while after they are up, finds out
/// whether another host has it, and only then adds its route (net/ipv6/addrconf.c).
fn has_settled(lines: &[String]) -> bool {
    let has_route = |device: &str| {
        let device = format!(" dev {device} ");
        lines.iter().any(|line| line.starts_with("local fe80:") && line.contains(&device))
    };
    let is_tentative = lines.iter().any(|line| line.contains(" tentative "));
    !is_tentative && ["v0", "v1"].into_iter().all(has_route)
}

/// Ends the victims, and then what is left of the run.
fn end(host: &Host, run: &mut Child, victim: usize) {
    let ssh = ssh_of(run.id());
    match VICTIMS[victim] {
        "ssh" => ssh.into_iter().for_each(kill_if_there),
        "the host's shells" => shells(host).into_iter().for_each(kill_if_there),
        "goodput and the dead-man" => {
            dead_man(host).into_iter().for_each(kill_if_there);
            kill_if_there(run.id());
        }
        "goodput and ssh" => {
            kill_if_there(run.id());
            ssh.into_iter().for_each(kill_if_there);
        }
        _ => kill_if_there(run.id()),
    }
    if VICTIMS[victim].starts_with("goodput") {
        run.wait().expect("it has ended");
        return;
    }
    // It ends on its own, or is interrupted as by a user.
    let pid = run.id().to_string();
    wait_for("the run to end", || {
        let _ =
            std::process::Command::new("kill").args(["-INT", &pid]).stderr(Stdio::null()).status();
        run.try_wait().expect("it is ours").is_some()
    });
}

/// What the login of the host runs.
fn shells(host: &Host) -> Vec<u32> {
    let Some(dead_man) = dead_man(host) else { return Vec::new() };
    let status = std::fs::read_to_string(format!("/proc/{dead_man}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    parent.into_iter().filter(|pid| *pid > 1).collect()
}

/// It may have ended meanwhile.
fn kill_if_there(pid: u32) {
    let kill = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .stderr(Stdio::null())
        .status();
    kill.expect("kill starts");
}

/// Waits until the dead-man is gone, and has goodput undo what is left. Whether anything was.
fn is_undone(host: &Host, look: &str, before: &[String], what: &str) -> bool {
    wait_for("the dead-man to end", || dead_man(host).is_none());
    let is_back = host.lines(look) == before;
    let undo = host.run(&["settings", "undo"]);
    assert!(undo.status.success(), "{what}: {}{}", stdout(&undo), stderr(&undo));
    let after = host.lines(look);
    let differs = difference(before, &after);
    assert!(after == before, "{what}: {differs:#?}\n{}", stdout(&undo));
    !is_back
}
