//! Tests with a shell of this machine, whose /sys and /proc/irq are folders of the test.

use std::fs;
use std::path::PathBuf;

use goodput_testing::in_namespace;

use super::*;
use crate::shell::Shell;
use crate::ssh::Session;

struct Scene {
    root: tempfile::TempDir,
    session: Session,
}

impl Scene {
    /// A host with eth0, one0 and these files, below `sys` and `irq`.
    fn new(files: &[(&str, &str)]) -> Self {
        let links = "ip link add eth0 index 70 address 02:00:00:00:00:07 type veth peer name v0 && \
                     ip link add one0 index 80 address 02:00:00:00:00:08 type veth peer name v1";
        assert!(std::process::Command::new("sh").args(["-c", links]).status().unwrap().success());
        let root = tempfile::tempdir().unwrap();
        for folder in ["sys", "irq"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let at = root.path().display();
        let script =
            format!("mount --bind '{at}/irq' /proc/irq && mount --bind '{at}/sys' /sys && exec sh");
        let session = Session::with_shell(["unshare", "--mount", "sh", "-c", &script]).unwrap();
        Self { root, session }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn at<T>(&mut self, setting: &str, act: impl FnOnce(&Files, &mut At<'_>) -> T) -> T {
        let setting: SettingRef = setting.parse().unwrap();
        let row = ROWS.iter().find(|row| row.id == setting.name).unwrap();
        act(row, &mut At { shell: &mut self.session, setting: &setting })
    }

    fn read(&mut self, setting: &str) -> Result<String, RemoteError> {
        self.at(setting, |row, at| row.read(at))
    }

    fn said(&mut self, setting: &str, value: &str) -> String {
        self.at(setting, |row, at| row.normalise(at, value)).unwrap_err().to_string()
    }

    fn holds(&mut self, setting: &str, value: &str) -> bool {
        let condition = self.at(setting, |row, at| row.holds(at, value)).unwrap();
        self.session.run(&condition.command()).unwrap().status == 0
    }

    /// Writes a value as a person writes it, and returns what is read back.
    fn set(&mut self, setting: &str, typed: &str) -> String {
        let value = self.at(setting, |row, at| row.normalise(at, typed)).unwrap();
        let commands = self.at(setting, |row, at| row.write(at, &value)).unwrap();
        for command in &commands {
            self.session.output(command).unwrap();
        }
        let read = self.read(setting).unwrap();
        assert_eq!(read, value);
        read
    }
}

/// eth0 with three queues of each kind and two interrupts, on a host with 40 CPUs.
fn host() -> Scene {
    let mut files = vec![
        ("sys/devices/system/cpu/possible", "0-39\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/class/net/eth0/ifindex", "70\n"),
        ("sys/class/net/eth0/address", "02:00:00:00:00:07\n"),
        ("sys/class/net/one0/ifindex", "80\n"),
        ("sys/class/net/one0/address", "02:00:00:00:00:08\n"),
        ("sys/class/net/eth0/napi_defer_hard_irqs", "0\n"),
        ("sys/class/net/eth0/gro_flush_timeout", "0\n"),
        ("sys/class/net/eth0/threaded", "0\n"),
        ("sys/class/net/eth0/device/msi_irqs/9", "msix\n"),
        ("sys/class/net/eth0/device/msi_irqs/40", "msix\n"),
        ("irq/9/smp_affinity_list", "0-3\n"),
        ("irq/40/smp_affinity_list", "0-3\n"),
        ("sys/class/net/one0/threaded", "0\n"),
        ("sys/class/net/one0/queues/tx-0/tx_timeout", "0\n"),
    ];
    for (name, text) in [
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "00,00000000\n"),
        ("sys/class/net/eth0/queues/rx-1/rps_cpus", "00,00000000\n"),
        ("sys/class/net/eth0/queues/rx-2/rps_cpus", "00,00000000\n"),
        ("sys/class/net/eth0/queues/tx-0/xps_rxqs", "0\n"),
    ] {
        files.push((name, text));
    }
    Scene::new(&files)
}

#[test]
fn each_kind_of_file_is_read_written_and_recognised() {
    in_namespace(|| {
        let mut host = host();
        for (setting, before, typed, after) in [
            ("napi.defer_hard_irqs@eth0", "0", "2", "2"),
            ("napi.gro_flush_timeout@eth0", "0", "20000", "20000"),
            ("napi.threaded@eth0", "off", "on", "on"),
            ("rps.cpus@eth0", "0", "ff00000001", "ff00000001"),
            ("xps.rxqs@eth0", "0", "5", "5"),
            ("irq.affinity@eth0", "0-3", "spread", "0 1"),
            ("irq.affinity@eth0", "0 1", "2,3", "2-3"),
        ] {
            assert_eq!(host.read(setting).unwrap(), before, "{setting}");
            assert!(host.holds(setting, before) && !host.holds(setting, after), "{setting}");
            assert_eq!(host.set(setting, typed), after, "{setting}");
            assert!(host.holds(setting, after) && !host.holds(setting, before), "{setting}");
        }
        let file = |name: &str| fs::read_to_string(host.path(name)).unwrap();
        assert_eq!(file("sys/class/net/eth0/queues/rx-2/rps_cpus"), "ff,00000001\n");
        assert_eq!(file("sys/class/net/eth0/threaded"), "1\n");
        assert_eq!(file("irq/9/smp_affinity_list"), "2-3\n");
    });
}

#[test]
fn a_change_that_was_cut_short_is_recognised_and_another_ones_is_not() {
    in_namespace(|| {
        let mut host = host();
        let setting = "rps.cpus@eth0";
        let [between] = &ROWS[3].half_way("0", "3")[..] else { panic!("one value") };
        let [further] = &ROWS[3].half_way(between, "c")[..] else { panic!("one value") };
        let masks = |host: &Scene, masks: [&str; 3]| {
            for (queue, mask) in masks.iter().enumerate() {
                let path = format!("sys/class/net/eth0/queues/rx-{queue}/rps_cpus");
                fs::write(host.path(&path), format!("00,0000000{mask}\n")).unwrap();
            }
        };
        for (now, is_between, is_further) in [
            (["0", "0", "0"], true, true),
            (["3", "0", "0"], true, true),
            (["3", "3", "3"], true, true),
            (["3", "c", "0"], false, true),
            (["3", "1", "0"], false, false),
        ] {
            masks(&host, now);
            assert_eq!(host.holds(setting, between), is_between, "{now:?}");
            assert_eq!(host.holds(setting, further), is_further, "{now:?}");
        }
    });
}

#[test]
fn values_and_devices_that_do_not_fit_are_refused_with_the_reason() {
    in_namespace(|| {
        let mut host = host();
        for (setting, value, words) in [
            ("napi.defer_hard_irqs@eth0", "2147483648", "0 to 2147483647"),
            ("napi.gro_flush_timeout@eth0", "-1", "0 to 3600000000000"),
            ("napi.threaded@eth0", "2", "on or off"),
            ("rps.cpus@eth0", "10000000000", "the last CPU here is 39"),
            ("rps.cpus@eth0", "x", "hexadecimal mask"),
            ("xps.rxqs@eth0", "8", "the last receive queue here is 2"),
            ("irq.affinity@eth0", "4", "only the CPUs 0-3"),
            ("irq.affinity@eth0", "0 1 2", "2 interrupts"),
            ("irq.affinity@one0", "0", "no interrupts of its own"),
            ("xps.cpus@one0", "1", "nothing to choose"),
            ("napi.defer_hard_irqs@one0", "1", "no napi_defer_hard_irqs"),
            ("rps.cpus@nosuch", "1", "does not exist"),
        ] {
            let said = host.said(setting, value);
            assert!(said.contains(words), "{setting}={value}: {said}");
            assert!(!said.contains("set --"), "a message shows no script: {said}");
        }
        fs::write(host.path("sys/class/net/eth0/queues/rx-1/rps_cpus"), "odd text\n").unwrap();
        assert!(matches!(host.read("rps.cpus@eth0"), Err(RemoteError::NotUnderstood { .. })));
        // A device of another network namespace with the same name.
        fs::write(host.path("sys/class/net/eth0/address"), "02:00:00:00:00:09\n").unwrap();
        let said = host.read("napi.threaded@eth0").unwrap_err().to_string();
        assert!(said.contains("shows another network namespace"), "{said}");
    });
}

#[test]
fn a_refusal_of_the_kernel_is_explained() {
    let setting: SettingRef = "irq.affinity@eth0".parse().unwrap();
    let failed = |said: &str| RemoteError::CouldNot {
        host: "b".into(),
        purpose: "change it".into(),
        status: 1,
        said: said.into(),
    };
    let said = explained(&setting, "1", failed("printf: write error: Input/output error"));
    assert!(said.to_string().contains("b: the kernel places these"), "{said}");
    let said = explained(&setting, "1", failed("No space left on device"));
    assert!(said.to_string().contains("make room"), "{said}");
    let setting: SettingRef = "polling@eth0".parse().unwrap();
    let said =
        explained(&setting, "threaded", failed("printf: write error: Operation not supported"));
    assert!(said.to_string().contains("no queue that is polled now"), "{said}");
}
