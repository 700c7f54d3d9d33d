//! Tests with the simulated userland of `goodput-testing`, whose programs this shell runs.

use std::process;

use goodput_testing::FreeBsd as Userland;

use super::*;
use crate::shell::Output;

/// A login at the simulated host, without the network between.
struct Host {
    userland: Userland,
    _folder: tempfile::TempDir,
}

impl Host {
    fn new(make: impl FnOnce(Userland) -> Userland) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { userland: make(Userland::in_folder(folder.path())), _folder: folder }
    }

    fn plain() -> Self {
        Self::new(|userland| userland)
    }

    fn read(&mut self, setting: &str) -> Result<String, RemoteError> {
        FreeBsd.read(self, &setting.parse().unwrap())
    }

    fn normalise(&mut self, setting: &str, value: &str) -> Result<String, RemoteError> {
        FreeBsd.normalise(self, &setting.parse().unwrap(), value)
    }

    fn write(&mut self, setting: &str, value: &str) -> Result<(), RemoteError> {
        for command in FreeBsd.write(self, &setting.parse().unwrap(), value)? {
            self.output(&command)?;
        }
        Ok(())
    }

    fn holds(&mut self, setting: &str, value: &str) -> bool {
        let condition = FreeBsd.holds(self, &setting.parse().unwrap(), value).unwrap();
        self.sh(&condition.to_string()).status == 0
    }

    fn sh(&self, line: &str) -> Output {
        let mut sh = process::Command::new("/bin/sh");
        sh.args(["-c", line]).env_clear().envs(self.userland.environment());
        let output = sh.output().unwrap();
        Output {
            status: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Shell for Host {
    fn host(&self) -> &str {
        "simulated"
    }

    fn run(&mut self, command: &Command) -> Result<Output, RemoteError> {
        Ok(self.sh(&command.to_string()))
    }
}

fn said<T: std::fmt::Debug>(result: Result<T, RemoteError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn each_setting_is_read_written_and_put_back() {
    for make in [|u: Userland| u, Userland::release_7] {
        let mut host = Host::new(make);
        let before = host.userland.settings();
        for (setting, was, wanted) in [
            ("polling@em0", "off", "on"),
            ("offload.tso4@em0", "on", "off"),
            ("offload.lro@em0", "on", "off"),
            ("link.mtu@em0", "1500", "9000"),
            ("sysctl.kern.polling.burst_max", "150", "1000"),
            ("sysctl.kern.ipc.maxsockbuf", "2097152", "4194304"),
            ("sysctl.net.inet.tcp.cc.algorithm", "cubic", "newreno"),
        ] {
            assert_eq!(host.read(setting).unwrap(), was, "{setting}");
            assert_eq!(host.normalise(setting, wanted).unwrap(), wanted, "{setting}");
            assert!(host.holds(setting, was) && !host.holds(setting, wanted), "{setting}");
            host.write(setting, wanted).unwrap();
            assert_eq!(host.read(setting).unwrap(), wanted, "{setting}");
            assert!(host.holds(setting, wanted) && !host.holds(setting, was), "{setting}");
            host.write(setting, was).unwrap();
        }
        assert_eq!(host.userland.settings(), before);
    }
}

/// The card drops TSO with the checksums, and the kernel lowers `each_burst` below `burst_max`.
#[test]
fn what_changes_along_is_named() {
    let mut host = Host::plain();
    let coupled = |host: &mut Host, setting: &str| -> Vec<String> {
        let coupled = FreeBsd.coupled(host, &setting.parse().unwrap()).unwrap();
        coupled.iter().map(ToString::to_string).collect()
    };
    assert_eq!(coupled(&mut host, "offload.txcsum@em0"), ["offload.tso4@em0"]);
    assert_eq!(coupled(&mut host, "offload.txcsum6@em0"), [""; 0], "the card has no TSO6");
    let burst = coupled(&mut host, "sysctl.kern.polling.burst_max");
    assert_eq!(burst, ["sysctl.kern.polling.each_burst"]);
    host.write("offload.txcsum@em0", "off").unwrap();
    assert_eq!(host.read("offload.tso4@em0").unwrap(), "off");
}

#[test]
fn a_kernel_without_polling_says_what_to_build() {
    let mut host = Host::new(Userland::without_kernel_polling);
    for result in [host.read("polling@em0"), host.normalise("polling@em0", "on")] {
        let said = said(result);
        for part in
            ["options DEVICE_POLLING", "kern.hz=\"1000\"", "/boot/loader.conf", "ifconfig_em0"]
        {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
    }
    let said = said(host.read("sysctl.kern.polling.burst_max"));
    assert!(said.contains("options DEVICE_POLLING"), "{said}");
    assert!(!host.holds("polling@em0", "on"));
}

/// ifconfig ignores a capability that the driver does not have, and succeeds.
#[test]
fn a_driver_that_cannot_poll_is_named_before_anything_is_tried() {
    let mut host = Host::new(Userland::without_driver_polling);
    let before = host.userland.settings();
    let said = said(host.normalise("polling@em0", "on"));
    assert!(said.contains("the driver em of this FreeBSD can't poll"), "{said}");
    host.write("polling@em0", "on").unwrap();
    assert_eq!(host.userland.settings(), before);
    assert!(!host.holds("polling@em0", "on"));
}

#[test]
fn values_out_of_range_and_read_only_ones_change_nothing() {
    for make in [|u: Userland| u, Userland::release_7] {
        let mut host = Host::new(make);
        let before = host.userland.settings();
        for (setting, value) in [
            ("sysctl.kern.polling.burst", "10"),
            ("sysctl.kern.polling.lost_polls", "0"),
            ("sysctl.kern.polling.enable", "1"),
            ("sysctl.kern.ipc.nmbclusters", "1"),
            ("sysctl.kern.polling.user_frac", "half"),
            ("sysctl.net.inet.tcp.nothing", "1"),
            ("sysctl.net.inet.tcp", "1"),
            ("sysctl.debug.kdb.panic", "1"),
            ("sysctl.kern.hz", "1000"),
            ("link.mtu@em0", "71"),
            ("link.mtu@em0", "1500x"),
            ("link.mtu@em9", "1500"),
            ("polling@em0", "yes"),
            ("polling@em0;reboot", "on"),
            ("ring.rx@em0", "512"),
        ] {
            let refused = host.normalise(setting, value);
            assert!(refused.is_err(), "{setting}={value}: {refused:?}");
        }
        // The kernel refuses this: with an error, or before release 10 silently.
        let _ = host.write("sysctl.kern.polling.burst_max", "9");
        assert_eq!(host.read("sysctl.kern.polling.burst_max").unwrap(), "150");
        assert!(host.write("link.mtu@em0", "60000").is_err());
        assert_eq!(host.userland.settings(), before);
    }
}

#[test]
fn an_interface_that_is_missing_is_reported_as_on_this_host() {
    let mut host = Host::plain();
    for name in ["link.mtu@em9", "polling@em9"] {
        let words =
            format!("{name}: there is no device em9 at simulated, only em0; name one of these");
        assert_eq!(said(host.read(name)), words);
        assert_eq!(said(host.normalise(name, "on")), words);
    }
}

#[test]
fn a_range_is_reported_before_the_kernel_refuses() {
    let mut host = Host::new(|userland| userland.hz(100));
    for (name, value, range) in [
        ("user_frac", "100", "0 to 99"),
        ("reg_frac", "101", "1 to 100"),
        ("each_burst", "151", "1 to 150"),
        ("burst_max", "9", "10 to 20000"),
    ] {
        let said = said(host.normalise(&format!("sysctl.kern.polling.{name}"), value));
        assert!(said.contains(range), "{said}");
    }
}

#[test]
fn without_root_the_privilege_is_named() {
    let mut host = Host::new(Userland::as_user);
    assert_eq!(host.read("polling@em0").unwrap(), "off");
    assert!(host.write("polling@em0", "on").unwrap_err().not_permitted());
    assert!(host.write("sysctl.kern.polling.user_frac", "60").unwrap_err().not_permitted());
}

#[test]
fn every_parameter_of_polling_is_listed_with_its_meaning() {
    let mut host = Host::plain();
    let listed = FreeBsd.list(&mut host).unwrap();
    let find = |name: &str| listed.iter().find(|row| row.setting == name).unwrap();
    for mib in mibs::MIBS.iter().filter(|mib| mib.name != "enable") {
        let row = find(&format!("sysctl.kern.polling.{}", mib.name));
        assert!(row.meaning.starts_with(mib.meaning), "{row:?}");
        assert_eq!(row.meaning.ends_with("(read only)"), mib.settable.is_none(), "{row:?}");
    }
    assert_eq!(find("polling@em0").value, "off");
    assert_eq!(find("link.mtu@em0").value, "1500");
    assert_eq!(
        find("sysctl.net.inet.tcp.recvbuf_max").meaning,
        "Max size of automatic receive buffer"
    );
    let cannot = |name: &str| listed.iter().all(|row| row.setting != name);
    assert!(cannot("offload.tso6@em0") && cannot("sysctl.net.inet.tcp.cc.available"));
    for row in &listed {
        FreeBsd.read(&mut host, &row.setting.parse().unwrap()).unwrap();
    }

    let old = FreeBsd.list(&mut Host::new(Userland::release_7)).unwrap();
    assert!(old.iter().any(|row| row.setting == "sysctl.kern.polling.burst_max"));
}

#[test]
fn a_boot_is_known_again_when_the_clock_jumped() {
    let mut host = Host::plain();
    let mut identity = || -> Vec<String> {
        FreeBsd.identity().iter().map(|command| host.output(command).unwrap()).collect()
    };
    let before = identity();
    assert_eq!(identity(), before);
    host.userland.set("sysctl/kern.boot_id", "0000000000000000000000000000beef");
    let after: Vec<String> =
        FreeBsd.identity().iter().map(|command| host.output(command).unwrap()).collect();
    assert_ne!(after, before);

    let old = Host::new(Userland::release_7);
    let table = old.userland.get("table").replace("kern.boot_id|", "kern.none|");
    old.userland.set("table", &table);
    let mut old = old;
    let first = old.output(&FreeBsd.identity()[0]).unwrap();
    assert_eq!(first, "1700000000 4242 9000\n");
}

#[test]
fn two_jails_without_an_id_are_told_apart() {
    let mut identity = [34, 35].map(|root| {
        let mut jail = Host::new(|userland| userland.jail(root));
        FreeBsd.identity().iter().map(|command| jail.output(command).unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(identity[0][..2], identity[1][..2]);
    assert_ne!(identity[0], identity[1]);
    assert_eq!(identity[0].remove(2), "94 34\n");
}

#[test]
fn a_mark_that_no_process_has_is_not_found() {
    assert!(FreeBsd.processes(&mut Host::plain(), "no process has this").unwrap().is_empty());
}

#[test]
fn a_clock_that_is_too_slow_and_the_most_that_polling_carries_are_reported() {
    let mut host = Host::new(|userland| userland.hz(100));
    assert_eq!(polling::rates(&mut host, "em0").unwrap(), None, "it is not polled");
    host.write("polling@em0", "on").unwrap();
    let rates = polling::rates(&mut host, "em0").unwrap().unwrap();
    assert_eq!(rates.packets_per_s(), 15_000);
    let slow = rates.too_slow().unwrap();
    assert!(slow.contains("100 ticks/s") && slow.contains("kern.hz=\"1000\""), "{slow}");

    let mut fast = Host::plain();
    fast.write("polling@em0", "on").unwrap();
    let rates = polling::rates(&mut fast, "em0").unwrap().unwrap();
    assert_eq!((rates.packets_per_s(), rates.too_slow()), (150_000, None));
}

#[test]
fn what_the_host_counts_follows_polling() {
    let mut host = Host::plain();
    let mut now_us: u64 = host.userland.get("counted").split(' ').next().unwrap().parse().unwrap();
    let mut over_ten_seconds = |switch: &str| {
        host.userland.set("clock", &now_us.to_string());
        host.write("polling@em0", switch).unwrap();
        let before = FreeBsd.counters(&mut host, Some("em0")).unwrap();
        now_us += 10_000_000;
        host.userland.set("clock", &now_us.to_string());
        FreeBsd.counters(&mut host, Some("em0")).unwrap().since(&before, 10.0)
    };
    let (interrupts, polling) = (over_ten_seconds("off"), over_ten_seconds("on"));
    let cpu = |counted: &crate::Counted| counted.cpu_percent.value().copied().unwrap();
    assert!((cpu(&interrupts) - 73.0).abs() < 0.1 && (cpu(&polling) - 34.0).abs() < 0.1);
    assert_eq!(interrupts.interrupts_per_s.value(), Some(&8000.0));
    assert_eq!(polling.interrupts_per_s.value(), Some(&10.0));
    assert_eq!(polling.dropped.value(), Some(&0));
}

#[test]
fn what_the_host_does_not_report_is_missing_with_its_reason() {
    let mut host = Host::plain();
    let none = FreeBsd.counters(&mut host, None).unwrap();
    assert!(none.cpu.value().is_some() && none.interrupts.value().is_none());
    host.userland.set("fail/sysctl", "sysctl: broken");
    let broken = FreeBsd.counters(&mut host, Some("em9")).unwrap();
    let why = |known: &str| assert!(known.contains("broken"), "{known}");
    why(&format!("{:?}", broken.cpu));
    assert!(broken.interrupts.value().is_none() && broken.packets.value().is_none());
}

#[test]
fn each_setting_has_a_line_that_keeps_it() {
    let kept = |setting: &str, value: &str| {
        let files = FreeBsd.permanent(&setting.parse().unwrap(), value);
        files.into_iter().map(|file| (file.file, file.lines)).collect::<Vec<_>>()
    };
    let line = |file: &str, line: &str| vec![(format!("FreeBSD {file}"), line.to_owned())];
    let polling = "ifconfig_em0=\"${ifconfig_em0-${ifconfig_DEFAULT}} polling\"";
    assert_eq!(kept("polling@em0", "on"), line("/etc/rc.conf", polling));
    let mtu = "ifconfig_em0_7=\"${ifconfig_em0_7-${ifconfig_DEFAULT}} mtu 9000\"";
    assert_eq!(kept("link.mtu@em0.7", "9000"), line("/etc/rc.conf", mtu));
    let burst = "kern.polling.burst_max=1000";
    assert_eq!(kept("sysctl.kern.polling.burst_max", "1000"), line("/etc/sysctl.conf", burst));
}

#[test]
fn an_mtu_that_the_driver_refuses_is_explained() {
    let mut host = Host::plain();
    let setting = "link.mtu@em0".parse().unwrap();
    let refusal = host.write("link.mtu@em0", "9217").unwrap_err();
    let said = FreeBsd.explained(&mut host, &setting, "9217", refusal).to_string();
    for words in ["the driver of em0 does not take", "man 4 em", "em0 still has an MTU of 1500"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let other: SettingRef = "polling@em0".parse().unwrap();
    let refusal = host.write("link.mtu@em0", "9217").unwrap_err();
    let said = FreeBsd.explained(&mut host, &other, "on", refusal).to_string();
    assert!(said.contains("SIOCSIFMTU") && !said.contains("driver"), "{said}");
}
