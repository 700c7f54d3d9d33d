//! A simulated FreeBSD host, reached through a real SSH server on loopback. No real FreeBSD was run.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use goodput_testing::{FreeBsd, Sshd, wait_for};
use serde_json::Value;

use crate::common::{HALF_A_SECOND, Home, Server, stderr, stdout, unused_ports};
use crate::tuned_by_ssh::{Iperf3, planned, record};

/// The host, and a way to log in to it.
struct Host {
    userland: FreeBsd,
    sshd: Sshd,
    home: Home,
    folder: tempfile::TempDir,
}

impl Host {
    /// `None` if this machine has no SSH server.
    fn start(make: impl FnOnce(FreeBsd) -> FreeBsd) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let userland = make(FreeBsd::in_folder(folder.path()));
        let variables = userland.environment().map(|(name, value)| set(name, &value));
        let etc = folder.path().join("etc");
        std::fs::create_dir(&etc).expect("a folder");
        // Its files are its own: in a mount namespace, which the script makes by starting once more.
        let mount = format!(
            "[ -n \"$MOUNTED\" ] || {{ export MOUNTED=1; exec unshare --mount \"$0\"; }}\nunset MOUNTED\n\
             mount --bind '{}' /etc || exit",
            etc.display()
        );
        let sshd = Sshd::start(&format!("{mount}\nexport {}; exec /bin/sh", variables.join(" ")))?;
        Some(Self { userland, sshd, home: Home::new(), folder })
    }

    /// goodput with the configuration of the test's ssh.
    fn goodput(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.goodput(arguments);
        command.env("GOODPUT_SSH_CONFIG", self.sshd.config());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.goodput(arguments).output().expect("goodput runs")
    }

    fn settings(&self, arguments: &[&str]) -> Output {
        self.run(&[&["settings"], arguments, &["--on", "ssh://b"]].concat())
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("etc").join(name)
    }

    fn polls(&self) -> bool {
        self.userland.get("if/em0/options").contains("POLLING")
    }

    /// The record of a short comparison.
    fn compare(&self, server: &Server, setting: &str) -> Value {
        let compare = ["compare", &server.address, setting, "--far", "ssh://b", "--no-store"];
        let short = ["--max-time", "6", "--json"];
        let output = self.run(&[&compare[..], &HALF_A_SECOND, &short].concat());
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("a record")
    }

    /// A comparison that is under way.
    fn comparing(&self, server: &Server, setting: &str) -> Child {
        let compare = ["compare", &server.address, setting, "--far", "ssh://b", "--no-store"];
        let mut command = self.goodput(&[&compare[..], &HALF_A_SECOND].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("goodput runs")
    }
}

fn set(name: &str, value: &Path) -> String {
    format!("{name}='{}'", value.display())
}

/// What an arm read in the median.
fn median(record: &Value, arm: usize, response: &str) -> f64 {
    let responses = record["comparison"]["arms"][arm]["responses"].as_array().expect("responses");
    let found = responses.iter().find(|of| of["response"] == response);
    found
        .and_then(|of| of["median"].as_f64())
        .unwrap_or_else(|| panic!("{response}: {responses:?}"))
}

#[test]
fn settings_are_listed_read_and_changed() {
    let Some(host) = Host::start(|userland| userland) else { return };
    let list = host.settings(&["list"]);
    for name in [
        "polling@em0",
        "offload.tso4@em0",
        "sysctl.kern.polling.lost_polls",
        "sysctl.kern.ipc.maxsockbuf",
    ] {
        assert!(stdout(&list).contains(name), "{name}: {}{}", stdout(&list), stderr(&list));
    }
    assert_eq!(stdout(&host.settings(&["get", "polling@em0"])).trim(), "off");
    let changed = host.settings(&["set", "polling@em0=on"]);
    for part in [
        "off → on",
        "to keep it there: goodput settings set --save polling@em0=on --on ssh://b\n",
        "150000 packets/s from em0",
    ] {
        assert!(
            stdout(&changed).contains(part),
            "{part}: {}{}",
            stdout(&changed),
            stderr(&changed)
        );
    }
    assert!(host.polls());
    let refused = host.settings(&["set", "sysctl.kern.polling.user_frac=100"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("0 to 99"), "{}", stderr(&refused));
    let refused = host.settings(&["set", "link.mtu@em0=9217"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("em0 still has an MTU of 1500"), "{}", stderr(&refused));
}

#[test]
fn a_host_that_cannot_poll_says_what_is_missing() {
    let Some(kernel) = Host::start(FreeBsd::without_kernel_polling) else { return };
    let refused = kernel.settings(&["set", "polling@em0=on"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("options DEVICE_POLLING"), "{}", stderr(&refused));
    let Some(driver) = Host::start(FreeBsd::without_driver_polling) else { return };
    let refused = driver.settings(&["set", "polling@em0=on"]);
    assert!(
        stderr(&refused).contains("driver em of this FreeBSD can't poll"),
        "{}",
        stderr(&refused)
    );
    let Some(user) = Host::start(FreeBsd::as_user) else { return };
    let before = user.userland.settings();
    let refused = user.settings(&["set", "polling@em0=on"]);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert_eq!(user.userland.settings(), before);
}

/// The simulated host has the CPU of the how-to: 34 % while it polls, 73 % while it takes interrupts.
#[test]
fn comparing_polling_reports_cpu_interrupts_and_goodput_for_the_same_cpu() {
    let Some(host) = Host::start(|userland| userland.hz(100)) else { return };
    let server = Server::start(&host.home, &[]);
    let before = host.userland.settings();
    let record = host.compare(&server, "far:polling@em0=off,on");
    assert_eq!(host.userland.settings(), before);
    for (arm, cpu, interrupts) in [(0, 73.0, 8000.0), (1, 34.0, 10.0)] {
        assert!((median(&record, arm, "host-cpu") - cpu).abs() < 1.0, "{record:#}");
        let counted = median(&record, arm, "interrupts");
        assert!((interrupts / 4.0..interrupts * 2.0).contains(&counted), "{counted} in arm {arm}");
        let per_cpu = median(&record, arm, "per-cpu");
        assert!(per_cpu > median(&record, arm, "throughput"), "less than the whole CPU was needed");
    }
    let doubts = record["doubts"].to_string();
    for part in [
        "15000 packets/s from em0",
        "173.8 Mbit/s in segments of 1448 bytes",
        "clock has 100 ticks/s",
    ] {
        assert!(doubts.contains(part), "{part} is not in: {doubts}");
    }
}

#[test]
fn tuning_for_cpu_proposes_polling_where_the_card_can_be_polled() {
    for (make, can_poll) in
        [((|host| host) as fn(FreeBsd) -> FreeBsd, true), (FreeBsd::without_driver_polling, false)]
    {
        let Some(host) = Host::start(make) else { return };
        let port = unused_ports(1).to_string();
        let Some(_server) = Iperf3::start(&port) else { return };
        let before = host.userland.settings();
        let target = format!("iperf3://127.0.0.1:{port}");
        let plan = ["tune", &target, "--for", "cpu", "--far", "ssh://b", "--dry-run", "--json"];
        let record = record(&host.run(&[&plan[..], &HALF_A_SECOND].concat()));
        let steps = planned(&record);
        assert_eq!(steps.contains(&"far:polling@em0=on".to_owned()), can_poll, "{steps:?}");
        assert_eq!(host.userland.settings(), before);
    }
}

/// An iperf3 server reports no CPU time. That of its host is read by SSH: polling takes less than half of it.
#[test]
fn cpu_time_is_that_of_the_host_by_ssh_if_the_far_end_reports_none() {
    let Some(host) = Host::start(|userland| userland) else { return };
    let port = unused_ports(1).to_string();
    let Some(_server) = Iperf3::start(&port) else { return };
    let target = format!("iperf3://127.0.0.1:{port}");
    let before = host.userland.settings();
    let setting = "far:polling@em0=off,on";
    let compare = ["compare", &target, setting, "--response", "cpu", "--far", "ssh://b", "--json"];
    let short = ["--no-store", "--max-time", "30"];
    let compared = record(&host.run(&[&compare[..], &HALF_A_SECOND, &short].concat()));
    let cpu = |arm: usize| compared["comparison"]["arms"][arm]["cpu_s_per_gb"].as_f64();
    let [interrupts, polling] = [0, 1].map(|arm| cpu(arm).expect("it is read"));
    assert!(polling < interrupts, "{polling} {interrupts}");
    let doubts = compared["doubts"].to_string();
    assert!(doubts.contains("the CPU time of ssh://b is that of the whole host"), "{doubts}");
    assert_eq!(host.userland.settings(), before);
}

#[test]
fn tuning_for_cpu_is_refused_where_nobody_reports_it_and_not_by_ssh() {
    let Some(host) = Host::start(|userland| userland) else { return };
    let port = unused_ports(1).to_string();
    let Some(_server) = Iperf3::start(&port) else { return };
    let target = format!("iperf3://127.0.0.1:{port}");
    let tune = |more: &[&str]| {
        let tune = ["tune", &target, "--for", "cpu", "--json", "--no-store", "--max-time", "60"];
        host.run(&[&tune[..], &HALF_A_SECOND, more].concat())
    };
    let refused = tune(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let why = stderr(&refused);
    assert!(why.contains("reports no CPU time") && why.contains("--far ssh://HOST"), "{why}");
    // A plan changes no host.
    let planned = tune(&["--far", "ssh://b", "--dry-run"]);
    assert_ne!(planned.status.code(), Some(2), "{}", stderr(&planned));
}

#[test]
fn a_killed_run_leaves_nothing_changed() {
    let Some(host) = Host::start(|userland| userland) else { return };
    host.userland.set("sysctl/kern.polling.each_burst", "120");
    let server = Server::start(&host.home, &[]);
    let before = host.userland.settings();
    for setting in [
        "far:polling@em0=off,on",
        "far:offload.txcsum@em0=on,off",
        "far:sysctl.kern.polling.burst_max=150,50",
    ] {
        let mut compare = host.comparing(&server, setting);
        wait_for("the change", || host.userland.settings() != before);
        let pid = compare.id().to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        compare.wait().unwrap();
        wait_for("the host to put back", || host.userland.settings() == before);
        let undo = host.run(&["settings", "undo"]);
        assert!(undo.status.success(), "{setting}: {}{}", stdout(&undo), stderr(&undo));
        assert_eq!(host.userland.settings(), before, "{setting}");
    }
}

#[test]
fn what_is_kept_stands_in_marked_lines_and_can_be_removed() {
    let Some(host) = Host::start(|userland| userland) else { return };
    std::fs::write(host.file("rc.conf"), "hostname=\"b\"\n").unwrap();
    for assignment in ["polling@em0=on", "sysctl.kern.polling.burst_max=1000"] {
        let set = host.settings(&["set", assignment, "--save"]);
        assert!(stdout(&set).contains("kept by /etc/"), "{}{}", stdout(&set), stderr(&set));
    }
    assert!(host.polls());
    let text = std::fs::read_to_string(host.file("rc.conf")).unwrap();
    assert!(text.starts_with("hostname=\"b\"\n# BEGIN goodput\n"), "{text}");
    let listed = host.settings(&["saved"]);
    for part in [
        "ssh://b: /etc/rc.conf: polling@em0=on",
        "/etc/sysctl.conf: sysctl.kern.polling.burst_max=1000",
    ] {
        assert!(stdout(&listed).contains(part), "{}{}", stdout(&listed), stderr(&listed));
    }
    let removed = host.settings(&["undo", "--saved"]);
    assert!(removed.status.success(), "{}{}", stdout(&removed), stderr(&removed));
    assert!(stdout(&removed).contains("removed goodput's lines from /etc/rc.conf: polling"));
    assert_eq!(std::fs::read_to_string(host.file("rc.conf")).unwrap(), "hostname=\"b\"\n");
    assert!(!host.file("sysctl.conf").exists());
    // A file that can't be written leaves the value as it was.
    std::fs::remove_file(host.file("rc.conf")).unwrap();
    std::os::unix::fs::symlink("/nowhere", host.file("rc.conf")).unwrap();
    let refused = host.settings(&["set", "polling@em0=off", "--save"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("it is a link") && host.polls(), "{}", stderr(&refused));
}
