//! Hosts without goodput, reached through a real SSH server on loopback whose account is in a network namespace of its
//! own.

use std::process::{Child, Command, Output, Stdio};

use goodput_testing::{Sshd, skip, wait_for};
use serde_json::Value;

use crate::common::{HALF_A_SECOND, Home, Server, stderr, stdout};

const PARAMETER: &str = "net.ipv4.tcp_rmem";
const OURS: &str = "4096 65536 262144";

/// A host with the devices v0 and v1, and a way to log in to it.
pub struct Host {
    /// Keeps the network namespace.
    holder: Child,
    sshd: Sshd,
    pub home: Home,
    /// Its folders stand for /etc and /run of the host.
    folder: tempfile::TempDir,
}

impl Host {
    /// `None` if this machine can't host it.
    pub fn start() -> Option<Self> {
        let script = "ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up && echo ready \
                      && exec sleep 100000";
        let mut holder = Command::new("unshare");
        let holder = holder.args(["--net", "sh", "-c", script]).stdout(Stdio::piped());
        let mut holder = holder.spawn().ok()?;
        let mut said = String::new();
        let out = holder.stdout.take()?;
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut said).ok()?;
        if said.trim() != "ready" {
            let _ = (holder.kill(), holder.wait());
            skip("root for a network namespace");
            return None;
        }
        let folder = tempfile::tempdir().ok()?;
        for name in ["etc", "run"] {
            std::fs::create_dir(folder.path().join(name)).ok()?;
        }
        std::fs::write(folder.path().join("etc/machine-id"), "of this test\n").ok()?;
        // A view of /sys belongs to the namespace in which it was mounted.
        let forced = format!(
            "exec nsenter --net=/proc/{}/ns/net -- unshare --mount /bin/sh -c 'mount -t sysfs none /sys && cd {} && \
             mount --bind etc /etc && mount --bind run /run && cd / && exec /bin/sh'",
            holder.id(),
            folder.path().display()
        );
        let sshd = Sshd::start(&forced)?;
        Some(Self { holder, sshd, home: Home::new(), folder })
    }

    /// goodput with the configuration of the test's ssh.
    pub fn goodput(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.goodput(arguments);
        command.env("GOODPUT_SSH_CONFIG", self.sshd.config());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.goodput(arguments).output().expect("goodput starts")
    }

    /// What a shell in the namespace prints.
    pub fn sh(&self, script: &str) -> String {
        self.lines(script).join(" ")
    }

    /// The same, line by line, with one space between words.
    pub fn lines(&self, script: &str) -> Vec<String> {
        let net = format!("--net=/proc/{}/ns/net", self.holder.id());
        let output = Command::new("nsenter").args([&net, "sh", "-c", script]).output();
        let printed = output.expect("nsenter starts").stdout;
        let printed = String::from_utf8_lossy(&printed);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        printed.lines().map(words).filter(|line| !line.is_empty()).collect()
    }

    fn parameter(&self) -> String {
        self.sh(&format!("sysctl -n {PARAMETER}"))
    }

    /// A comparison under way that has changed the parameter.
    fn comparing(&self, server: &Server) -> Child {
        let setting = format!("far:sysctl.{PARAMETER}={},{OURS}", self.parameter());
        let compare = ["compare", &server.address, &setting, "--far", "ssh://b", "--no-store"];
        let mut command = self.goodput(&[&compare[..], &HALF_A_SECOND].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let compare = command.spawn().expect("goodput starts");
        wait_for("the change", || self.parameter() == OURS);
        compare
    }

    /// Kills a comparison and its dead-man such that neither puts the parameter back. Returns the journal.
    fn left_changed(&self, server: &Server) -> std::path::PathBuf {
        let mut compare = self.comparing(server);
        let run = compare.id();
        Command::new("kill").args(["-STOP", &run.to_string()]).status().expect("kill starts");
        kill(dead_man(self).expect("a dead-man"));
        kill(run);
        compare.wait().expect("goodput ends");
        let mut journals = walk(self.home.path(), ".remote.jsonl");
        assert_eq!(journals.len(), 1, "{journals:?}");
        journals.remove(0)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = (self.holder.kill(), self.holder.wait());
    }
}

pub fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.expect("kill starts").success());
}

/// The ssh that a run of goodput has started.
pub fn ssh_of(pid: u32) -> Option<u32> {
    let is_ssh = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "ssh")
    };
    children(pid).into_iter().find(is_ssh)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The process of the host that would put back.
pub fn dead_man(host: &Host) -> Option<u32> {
    let script = "for p in $(grep -ls '[g]oodput-dead-man' /proc/[0-9]*/cmdline); do p=${p%/cmdline}; \
                  [ \"$(readlink $p/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ] || echo ${p#/proc/}; done";
    let found = host.sh(script);
    found.split(' ').find_map(|pid| pid.parse().ok())
}

#[test]
fn settings_of_a_host_are_read_changed_and_listed() {
    let Some(host) = Host::start() else { return };
    let get = host.run(&["settings", "get", "link.mtu@v0", "--on", "ssh://b"]);
    assert_eq!(stdout(&get).trim(), "1500", "{}", stderr(&get));
    let set = host.run(&["settings", "set", "link.mtu@v0=1400", "--on", "ssh://b"]);
    assert!(stdout(&set).contains("1500 → 1400"), "{}{}", stdout(&set), stderr(&set));
    assert_eq!(host.sh("ip -j link show v0 | grep -o '\"mtu\":1400'"), "\"mtu\":1400");
    let list = stdout(&host.run(&["settings", "list", "--on", "ssh://b"]));
    assert!(list.contains("link.mtu@v0") && list.contains("offload.tso@v1"), "{list}");
    let show = stdout(&host.run(&["settings", "show", "link.mtu@v0", "--on", "ssh://b"]));
    assert!(show.contains("ssh://b has: 1400") && !show.contains("this host"), "{show}");
    let refused = host.run(&["settings", "set", "link.mtu@v0=7", "--on", "ssh://b"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    let Some(host) = Host::start() else { return };
    let before =
        host.sh("sysctl -n net.ipv4.tcp_reordering; ip -o link show v0; tc qdisc show dev v0");
    for (assignment, words) in [
        ("sysctl.net.ipv4.tcp_reordering=301", "takes 1 to 300"),
        ("sysctl.net.ipv4.tcp_rmem=1", "3 numbers"),
        ("sysctl.net.ipv4.tcp_rmem=9000 5 4", "must not fall"),
        ("sysctl.vm.swappiness=301", "more than 200"),
        ("link.mtu@v0=70000", "1280 to 65535"),
        ("link.mtu@v0=1000", "drops IPv6 addresses"),
        ("link.mtu=1400", "which device"),
        ("qdisc.kind@v0=nosuch", "fq_codel"),
        ("offload.tso@v0=maybe", "on or off"),
    ] {
        let refused = host.run(&["settings", "set", assignment, "--on", "ssh://b"]);
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(2) && said.contains(words), "{assignment}: {said}");
        assert!(!said.contains("''"), "{assignment}: {said}");
    }
    let after =
        host.sh("sysctl -n net.ipv4.tcp_reordering; ip -o link show v0; tc qdisc show dev v0");
    assert_eq!(after, before);
}

/// What /sys has in the namespace of the host, below v0.
pub const FILES: &str = "unshare --mount sh -c 'mount -t sysfs none /sys; cd /sys/class/net/v0; \
    grep . napi_defer_hard_irqs gro_flush_timeout threaded queues/rx-0/rps_cpus'";

#[test]
fn files_of_a_device_are_set_and_refused_with_the_reason() {
    let Some(host) = Host::start() else { return };
    let before = host.sh(FILES);
    for (assignment, words) in [
        ("polling@v0=fast", "interrupts, deferred, threaded, busy"),
        ("polling@v0=busy", "belongs to the whole host"),
        ("napi.defer_hard_irqs@v0=-1", "0 to 2147483647"),
        ("rps.cpus@v0=x", "hexadecimal mask"),
        ("irq.affinity@v0=0", "no interrupts of its own"),
        ("napi.irq_suspend_timeout@v0=9", "no common program"),
        ("qdisc.htb.rate@v0:1:1=1mbit", "run goodput on that host"),
        ("nonsense@v0=1", "there is no such setting"),
        ("napi.threaded@nosuch=on", "there is no device nosuch at ssh://b, only"),
    ] {
        let refused = host.run(&["settings", "set", assignment, "--on", "ssh://b"]);
        let said = stderr(&refused);
        assert!(refused.status.code() == Some(2) && said.contains(words), "{assignment}: {said}");
        assert!(!said.contains("set --"), "a message shows no script: {said}");
    }
    assert_eq!(host.sh(FILES), before);
    for assignment in ["polling@v0=deferred", "rps.cpus@v0=1"] {
        let set = host.run(&["settings", "set", assignment, "--on", "ssh://b"]);
        assert!(set.status.success(), "{assignment}: {}", stderr(&set));
    }
    let after = host.sh(FILES);
    for words in ["napi_defer_hard_irqs:2", "gro_flush_timeout:20000", "threaded:0"] {
        assert!(after.contains(words), "{words}: {after}");
    }
    assert_ne!(after.split(' ').next_back(), before.split(' ').next_back(), "rps_cpus");
    let list = stdout(&host.run(&["settings", "list", "--on", "ssh://b"]));
    assert!(list.contains("polling@v0") && list.contains("deferred"), "{list}");
}

#[test]
fn a_token_bucket_is_changed_by_one_number_at_a_time() {
    let Some(host) = Host::start() else { return };
    host.sh("tc qdisc add dev v0 root handle 7: tbf rate 100mbit burst 64k limit 300k mpu 64 overhead 10");
    let look = "tc -r -d qdisc show dev v0";
    let before = host.sh(look);
    for (assignment, words) in [
        ("qdisc.tbf.burst@v0=100", "have up to 1514 bytes"),
        ("qdisc.tbf.rate@v0=fast", "100mbit"),
        ("qdisc.tbf.rate@v1=1gbit", "no token bucket"),
        ("qdisc.fq.limit@v0=9", "is no fq"),
    ] {
        let said = stderr(&host.run(&["settings", "set", assignment, "--on", "ssh://b"]));
        assert!(said.contains(words), "{assignment}: {said}");
    }
    assert_eq!(host.sh(look), before);
    let set = |assignment: &str| {
        let output = host.run(&["settings", "set", assignment, "--on", "ssh://b"]);
        assert!(output.status.success(), "{assignment}: {}", stderr(&output));
    };
    set("qdisc.tbf.rate@v0=50mbit");
    let now = host.sh(look);
    for part in ["rate 50Mbit", "burst 64Kb", "limit 300Kb", "mpu 64b", "overhead 10"] {
        assert!(now.contains(part), "{part}: {now}");
    }
    set("qdisc.tbf.rate@v0=100mbit");
    assert_eq!(host.sh(look), before);
    let list = stdout(&host.run(&["settings", "list", "--on", "ssh://b"]));
    assert!(list.contains("qdisc.tbf.burst@v0") && !list.contains("qdisc.tbf.burst@v1"), "{list}");
}

/// A comparison that changes the kind of a discipline and a parameter of it is put back whole, and at once.
#[test]
fn a_kind_and_its_parameter_are_put_back_together() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let look = "tc qdisc show dev v0";
    let before = host.sh(look);
    let compare = ["compare", &server.address, "qdisc.kind@v0=pfifo,bfifo"];
    let limit = ["qdisc.fifo.limit@v0=64000,65000", "--near", "ssh://b", "--no-store"];
    let times = ["-n", "1M", "--max-time", "4"];
    let output = host.run(&[&compare[..], &limit, &times].concat());
    let said = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{said}");
    assert!(!said.contains("not put back"), "{said}");
    assert_eq!(host.sh(look), before);
    let undo = host.run(&["settings", "undo"]);
    assert!(stdout(&undo).contains("nothing to undo"), "{}", stdout(&undo));
}

/// Payload leaves this host: the host of `--near`, such as a router, saves nothing about connections that it could forget.
#[test]
fn the_kernel_that_sends_is_this_one_whatever_host_stands_for_this_end() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    host.sh("sysctl -w net.ipv4.tcp_no_metrics_save=0");
    let compare = ["compare", &server.address, "sysctl.net.ipv4.tcp_sack=1,0", "--near", "ssh://b"];
    let times = ["-n", "1M", "--max-time", "4", "--no-store"];
    let output = host.run(&[&compare[..], &times].concat());
    let said = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{said}");
    let [log] = &walk(host.home.path(), "changes.log")[..] else { panic!("no log of changes") };
    let log = std::fs::read_to_string(log).unwrap();
    let changes = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let there = changes.filter(|change| change["host"] == "ssh://b");
    let changed: std::collections::BTreeSet<_> =
        there.map(|change| change["setting"].as_str().unwrap().to_owned()).collect();
    assert_eq!(Vec::from_iter(changed), ["sysctl.net.ipv4.tcp_sack"], "{log}");
    assert_eq!(host.sh("sysctl -n net.ipv4.tcp_no_metrics_save"), "0");
}

#[test]
fn what_is_kept_on_linux_is_listed_and_removed() {
    let Some(host) = Host::start() else { return };
    let settings = |words: &[&str]| {
        let output = host.run(&[&["settings"][..], words, &["--on", "ssh://b"]].concat());
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let save = ["set", "link.txqueuelen@v0=300", "--save"];
    let (code, said) = settings(&save);
    assert!(code == Some(2) && said.contains("systemd does not run there"), "{said}");
    assert!(host.sh("ip link show v0").contains("qlen 1000"), "nothing was changed");
    std::fs::create_dir_all(host.folder.path().join("run/systemd/system")).unwrap();
    let unit = "/etc/systemd/system/goodput-settings.service";
    let sysctl = ["set", "sysctl.net.ipv4.tcp_rmem=4096 65536 262144", "--save"];
    for words in [&save, &sysctl] {
        let (code, said) = settings(words);
        assert!(code == Some(0) && said.contains("kept by /etc/"), "{said}");
    }
    let (_, listed) = settings(&["saved"]);
    let of_unit = format!("{unit}: link.txqueuelen@v0=300");
    for part in [&*of_unit, "/etc/sysctl.d/90-goodput.conf: "] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let (code, removed) = settings(&["undo", "--saved"]);
    assert!(code == Some(0) && removed.contains(unit), "{removed}");
    assert!(!host.folder.path().join(&unit[1..]).exists());
    let (_, listed) = settings(&["saved"]);
    assert!(listed.contains("keeps no setting"), "{listed}");
}

#[test]
fn each_way_not_to_get_in_has_its_own_words() {
    let Some(host) = Host::start() else { return };
    for (at, code, words) in [
        ("ssh://unknown", 2, "host key is unknown"),
        ("ssh://changed", 2, "host key is another one than before"),
        ("ssh://locked", 3, "without a password"),
        ("ssh://gone", 2, "refused"),
        ("ssh://-oProxyCommand=x", 2, "plain name"),
        ("ssh://root@", 2, "names no host"),
    ] {
        let output = host.run(&["settings", "get", "link.mtu@v0", &format!("--on={at}")]);
        let said = stderr(&output);
        assert!(output.status.code() == Some(code) && said.contains(words), "{at}: {said}");
    }
}

#[test]
fn a_comparison_changes_the_far_host_and_puts_it_back() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let before = host.parameter();
    let setting = format!("far:sysctl.{PARAMETER}={before},{OURS}");
    let compare = ["compare", &server.address, &setting, "--far", "ssh://b", "--no-store"];
    let output = host.run(&[&compare[..], &["-n", "1M", "--max-time", "8"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
    assert_eq!(host.parameter(), before);
    let undo = host.run(&["settings", "undo"]);
    assert!(stdout(&undo).contains("nothing to undo"), "{}", stdout(&undo));
}

#[test]
fn whoever_is_killed_the_host_is_as_before() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let before = host.parameter();
    let run_dies = |run: u32| kill(run);
    let ssh_dies = |run: u32| kill(ssh_of(run).expect("an ssh"));
    for who in [&run_dies as &dyn Fn(u32), &ssh_dies] {
        let mut compare = host.comparing(&server);
        who(compare.id());
        wait_for("the host to put back", || host.parameter() == before);
        let _ = (compare.kill(), compare.wait());
        wait_for("the host to be as before", || host.parameter() == before);
        let undo = host.run(&["settings", "undo"]);
        assert!(undo.status.success(), "{}{}", stdout(&undo), stderr(&undo));
    }
}

#[test]
fn undo_puts_back_what_the_host_could_not() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let before = host.parameter();
    let mut compare = host.comparing(&server);
    let second = host.run(&["settings", "set", "link.mtu@v0=1400", "--on", "ssh://b"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("another goodput"), "{}", stderr(&second));
    // Not one moment in which it could do anything else.
    let run = compare.id();
    Command::new("kill").args(["-STOP", &run.to_string()]).status().unwrap();
    let stopped_at = host.parameter();
    kill(dead_man(&host).expect("a dead-man"));
    kill(run);
    compare.wait().unwrap();
    let undo = host.run(&["settings", "undo"]);
    assert!(undo.status.success(), "{}{}", stdout(&undo), stderr(&undo));
    assert!(stopped_at == before || stdout(&undo).contains("put back"), "{}", stdout(&undo));
    assert_eq!(host.parameter(), before);
}

/// What an arm read in the median.
fn median(record: &Value, arm: usize, response: &str) -> Option<f64> {
    let responses = record["comparison"]["arms"][arm]["responses"].as_array()?;
    responses.iter().find(|of| of["response"] == response)?["median"].as_f64()
}

#[test]
fn one_host_is_not_changed_for_both_ends() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let before = host.sh("ip -o link show v0");
    let near = format!("sysctl.{PARAMETER}={},{OURS}", host.parameter());
    let compare = ["compare", &server.address, &near, "far:link.txqueuelen@v0=1000,500"];
    for far in ["ssh://root@b", "ssh://b"] {
        let output = host.run(&[&compare[..], &["--near", "ssh://b", "--far", far]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let words = "can't change one host for both ends: ";
        assert!(said.contains(words) && said.contains("leave out --near"), "{far}: {said}");
    }
    assert_eq!(host.sh("ip -o link show v0"), before);
    let undo = host.run(&["settings", "undo"]);
    assert!(stdout(&undo).contains("nothing to undo"), "{}", stdout(&undo));
}

#[test]
fn a_comparison_reports_what_the_far_host_counted() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let setting = "far:link.txqueuelen@v0=1000,500";
    let compare = ["compare", &server.address, setting, "--far", "ssh://b", "--no-store", "--json"];
    let counted = ["--response", "throughput,cpu,host-cpu,drops", "-n", "1M", "--max-time", "6"];
    let output = host.run(&[&compare[..], &counted].concat());
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    for arm in [0, 1] {
        let cpu = median(&record, arm, "host-cpu");
        // A short run may fall between two ticks of the host's clock.
        assert!(cpu.is_some_and(|percent| (0.0..=100.0).contains(&percent)), "{record:#}");
        assert!(median(&record, arm, "drops").is_some(), "{record:#}");
    }
    assert_eq!(host.sh("cat /sys/class/net/v0/tx_queue_len 2>/dev/null; ip -o link show v0 | grep -o 'qlen 1000'"), "qlen 1000");
}

#[test]
fn a_host_that_is_lost_ends_the_comparison_with_what_is_known() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let before = host.parameter();
    let setting = format!("far:sysctl.{PARAMETER}={before},{OURS}");
    let compare =
        ["compare", &server.address, &setting, "--far", "ssh://b", "--no-store", "--json"];
    let mut command = host.goodput(&[&compare[..], &HALF_A_SECOND].concat());
    let compare =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("goodput starts");
    // Both arms are tried before the first run; then each has one.
    for value in [OURS, &before, OURS, &before, OURS, &before] {
        wait_for("the next run", || host.parameter() == *value);
    }
    kill(ssh_of(compare.id()).expect("an ssh"));
    let output = compare.wait_with_output().expect("goodput ends");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let cause = "lost the connection to ssh://b during";
    let comes_back =
        "put back by a process of that host, and `goodput settings undo` shows whether";
    let said = stderr(&output);
    for once in [cause, comes_back] {
        assert_eq!(said.matches(once).count(), 1, "{once}: {said}");
    }
    assert!(stdout(&output).contains(OURS), "what is known is printed: {}", stdout(&output));
    let record: Value = serde_json::from_slice(&output.stdout).expect("a record");
    let why = record["incomplete"].as_str().expect("why it ended");
    assert!(why.contains(cause) && why.contains(comes_back), "{why}");
    assert_eq!(record["comparison"]["stopped"], "a run failed", "the cause is said once");
    let trials = record["comparison"]["trials"].as_array().expect("trials");
    let why =
        |trial: &Value| trial["discarded"].as_str().is_some_and(|why| why.starts_with("failed"));
    let failed = trials.iter().filter(|trial| why(trial)).count();
    assert!(failed <= 1, "nothing more can be compared: {failed} runs failed");
    assert_eq!(host.parameter(), before);
}

#[test]
fn tuning_leaves_the_far_host_as_it_was() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let look =
        "sysctl -a -r '^net.(core|ipv4)' | grep -v -e _mem -e inuse; ip -o link; ethtool -k v0";
    let before = host.sh(look);
    let tune =
        ["tune", &server.address, "--far", "ssh://b", "--no-store", "-n", "1M", "--max-time", "15"];
    let output = host.run(&tune);
    assert!(matches!(output.status.code(), Some(0 | 2 | 4)), "{}", stderr(&output));
    assert_eq!(host.sh(look), before);
    let undo = host.run(&["settings", "undo"]);
    assert!(stdout(&undo).contains("nothing to undo"), "{}", stdout(&undo));
}

#[test]
fn a_host_that_is_tuned_is_held_before_the_first_change() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &["--max-duration", "1000"]);
    let before = host.sh("ip -o link show v0");
    // Instead of this host, of which other tests may take the turn.
    let tune = ["tune", &server.address, "--near", "ssh://b", "--no-store", "-t", "1000"];
    let mut command = host.goodput(&[&tune[..], &["--max-time", "1000"]].concat());
    let mut tune = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // As long as the first measurement runs, nothing is changed.
    wait_for("the host to be held", || {
        assert_eq!(tune.try_wait().unwrap(), None, "it ended");
        dead_man(&host).is_some()
    });
    let set = ["settings", "set", "link.mtu@v0=1400", "--on", "ssh://b"];
    let second = host.run(&set);
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("another goodput"), "{}", stderr(&second));
    assert_eq!(host.sh("ip -o link show v0"), before);
    kill(tune.id());
    tune.wait().unwrap();
    wait_for("the host to be free", || dead_man(&host).is_none());
    let third = host.run(&set);
    assert!(third.status.success(), "{}", stderr(&third));
}

#[test]
fn a_damaged_journal_is_shown_and_nothing_is_changed() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let before = host.parameter();
    let journal = &host.left_changed(&server);
    let whole = std::fs::read_to_string(journal).unwrap();
    let damaged = whole.replacen("\"line\":\"intent\"", "\"line\":\"inte", 1);
    std::fs::write(journal, &damaged).unwrap();
    let left = host.parameter();
    let set = host.run(&["settings", "set", "link.mtu@v0=1400", "--on", "ssh://b"]);
    assert_eq!(set.status.code(), Some(2));
    assert!(stderr(&set).contains(journal.to_str().unwrap()), "{}", stderr(&set));
    let undo = host.run(&["settings", "undo"]);
    assert!(stdout(&undo).contains("is not valid"), "{}", stdout(&undo));
    assert!(stdout(&undo).contains("nothing was changed"), "{}", stdout(&undo));
    assert_eq!(undo.status.code(), Some(2));
    assert_eq!(host.parameter(), left);
    assert_eq!(std::fs::read_to_string(journal).unwrap(), damaged);
    std::fs::write(journal, whole).unwrap();
    // Under another name it is the same host.
    let set = host.run(&["settings", "set", "link.txqueuelen@v0=1000", "--on", "ssh://root@b"]);
    assert!(stderr(&set).contains("left by an interrupted run"), "{}", stderr(&set));
    assert_eq!(host.parameter(), before);
}

#[test]
fn whole_lines_of_a_damaged_journal_are_put_back_if_asked() {
    let Some(host) = Host::start() else { return };
    let server = Server::start(&host.home, &[]);
    let before = host.parameter();
    let journal = host.left_changed(&server);
    let damaged = std::fs::read_to_string(&journal).unwrap() + "\0\0\0";
    std::fs::write(&journal, &damaged).unwrap();
    let shown = host.run(&["settings", "undo"]);
    assert_eq!(shown.status.code(), Some(2));
    for words in ["before the run it was", "settings undo --damaged"] {
        assert!(stdout(&shown).contains(words), "{words}: {}", stdout(&shown));
    }
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), damaged);
    let undo = host.run(&["settings", "undo", "--damaged"]);
    assert!(undo.status.success(), "{}{}", stdout(&undo), stderr(&undo));
    assert_eq!(host.parameter(), before);
    let aside = journal.with_extension("jsonl.damaged");
    assert!(stdout(&undo).contains(aside.to_str().unwrap()), "{}", stdout(&undo));
    assert!(std::fs::read_to_string(&aside).unwrap().starts_with(&damaged));
    assert!(stdout(&host.run(&["settings", "undo"])).contains("nothing to undo"));
}

fn walk(folder: &std::path::Path, suffix: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => walk(&path, suffix),
        path => vec![path],
    });
    found.filter(|path| path.to_string_lossy().ends_with(suffix)).collect()
}
