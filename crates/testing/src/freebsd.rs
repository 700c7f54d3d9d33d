//! A simulated FreeBSD userland: `sysctl`, `ifconfig` and others as shell scripts that behave as documented, failures
//! included, on a state kept in a directory of files. There is no real FreeBSD.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::write_script;

/// The scripts, by name.
const SCRIPTS: [(&str, &str); 9] = [
    ("counted", include_str!("../freebsd/counted")),
    ("ifconfig", include_str!("../freebsd/ifconfig")),
    ("netstat", include_str!("../freebsd/netstat")),
    ("ps", include_str!("../freebsd/ps")),
    ("route", include_str!("../freebsd/route")),
    ("stat", include_str!("../freebsd/stat")),
    ("sysctl", include_str!("../freebsd/sysctl")),
    ("uname", include_str!("../freebsd/uname")),
    ("vmstat", include_str!("../freebsd/vmstat")),
];

/// Type, flags, limits and description of each parameter.
const TABLE: &str = include_str!("../freebsd/table");

/// Programs that any POSIX system has: taken from this machine. Programs specific to Linux are missing.
const POSIX: [&str; 35] = [
    "awk", "basename", "cat", "cksum", "cmp", "cp", "cut", "date", "dirname", "echo", "env",
    "expr", "false", "grep", "head", "id", "kill", "ln", "ls", "mkdir", "mkfifo", "mv", "nohup",
    "printf", "rm", "rmdir", "sed", "sh", "sleep", "sort", "sync", "tail", "touch", "tr", "wc",
];

/// The initial values: FreeBSD's defaults, and for polling those of the how-to from which goodput takes its figures.
const VALUES: [(&str, &str); 31] = [
    ("hw.ncpu", "2"),
    ("kern.boot_id", "4c8609698ad1a11cdc00cf6eb7d954e1"),
    ("kern.clockrate", "{ hz = 1000, tick = 1000, profhz = 8126, stathz = 127 }"),
    ("kern.hostuuid", "564d1f4a-0000-0000-0000-000000000001"),
    ("kern.hz", "1000"),
    ("kern.ipc.maxsockbuf", "2097152"),
    ("kern.ipc.nmbclusters", "25600"),
    ("kern.ostype", "FreeBSD"),
    ("kern.polling.burst", "150"),
    ("kern.polling.burst_max", "150"),
    ("kern.polling.each_burst", "5"),
    ("kern.polling.idle_poll", "0"),
    ("kern.polling.user_frac", "50"),
    ("kern.polling.reg_frac", "20"),
    ("kern.polling.short_ticks", "0"),
    ("kern.polling.lost_polls", "0"),
    ("kern.polling.pending_polls", "0"),
    ("kern.polling.residual_burst", "0"),
    ("kern.polling.phase", "4"),
    ("kern.polling.suspect", "0"),
    ("kern.polling.stalled", "0"),
    ("kern.polling.idlepoll_sleeping", "1"),
    ("net.inet.tcp.cc.algorithm", "cubic"),
    (
        "net.inet.tcp.cc.available",
        "\nCCmod           D PCB count\ncubic           * 5\nnewreno           0",
    ),
    ("net.inet.tcp.delayed_ack", "1"),
    ("net.inet.tcp.recvbuf_auto", "1"),
    ("net.inet.tcp.recvbuf_max", "2097152"),
    ("net.inet.tcp.recvspace", "65536"),
    ("net.inet.tcp.sack.enable", "1"),
    ("net.inet.tcp.sendbuf_max", "2097152"),
    ("security.jail.jailed", "0"),
];

/// CPU in percent and interrupts per second with polling, and with interrupts: the figures of the how-to, with
/// estimated interrupts.
const LOADS: [(&str, &str); 2] = [("polling", "34 10"), ("interrupts", "73 8000")];

/// A simulated host with an interface `em0`, in a directory.
#[derive(Debug)]
pub struct FreeBsd {
    folder: PathBuf,
}

impl FreeBsd {
    /// A host with a fresh FreeBSD 14 on a machine with an em(4), with a kernel that supports polling. `folder` must
    /// exist.
    ///
    /// # Panics
    /// When a file can't be written.
    pub fn in_folder(folder: &Path) -> Self {
        let host = Self { folder: folder.to_owned() };
        host.install();
        host.set("release", "14.1-RELEASE");
        host.set("uid", "0");
        host.set("dmesg", "1700000000 4242 9000");
        host.set("root", "94 34");
        host.set("table", TABLE.trim_end());
        for (name, value) in VALUES {
            host.set(&format!("sysctl/{name}"), value);
        }
        for (kind, load) in LOADS {
            host.set(&format!("load_{kind}"), load);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
        host.set("counted", &format!("{now} 0 0 5000000"));
        for (file, value) in [
            ("options", "RXCSUM TXCSUM VLAN_MTU TSO4 LRO"),
            ("capabilities", "RXCSUM TXCSUM VLAN_MTU VLAN_HWTAGGING JUMBO_MTU POLLING TSO4 LRO"),
            ("mtu", "1500"),
            ("mtu_max", "9216"),
            ("packets", "1000 0 0 900 0 0"),
        ] {
            host.set(&format!("if/em0/{file}"), value);
        }
        host
    }

    fn install(&self) {
        let bin = self.folder.join("bin");
        fs::create_dir_all(&bin).expect("the simulated host can be written");
        for (name, text) in SCRIPTS {
            write_script(&bin.join(name), text);
        }
        for name in POSIX {
            let real = ["/usr/bin", "/bin"].map(|place| Path::new(place).join(name));
            if let Some(real) = real.iter().find(|real| real.exists()) {
                // Avoids links through /etc, which may differ on the simulated host.
                let real = real.canonicalize().expect("it exists");
                symlink(real, bin.join(name)).expect("the simulated host can be written");
            }
        }
    }

    /// The kernel has no `options DEVICE_POLLING`: no polling parameter, and no driver that supports polling.
    pub fn without_kernel_polling(self) -> Self {
        let rest = TABLE.lines().filter(|line| !line.starts_with("kern.polling."));
        self.set("table", &rest.collect::<Vec<_>>().join("\n"));
        self.without_driver_polling()
    }

    /// The driver of `em0` can't poll.
    pub fn without_driver_polling(self) -> Self {
        let capabilities = self.get("if/em0/capabilities").replace(" POLLING", "");
        self.set("if/em0/capabilities", &capabilities);
        self
    }

    /// A clock with this number of ticks per second.
    pub fn hz(self, hz: u32) -> Self {
        self.set("sysctl/kern.hz", &hz.to_string());
        let tick = 1_000_000 / hz.max(1);
        let rate = format!("{{ hz = {hz}, tick = {tick}, profhz = 8126, stathz = 127 }}");
        self.set("sysctl/kern.clockrate", &rate);
        self
    }

    /// FreeBSD 7.2, whose sysctl has fewer options, and exits successfully when the kernel refuses a value.
    pub fn release_7(self) -> Self {
        self.set("release", "7.2-RELEASE");
        self
    }

    /// A jail whose root directory has this inode, without an id of its own (jail(8), `host.hostuuid`).
    pub fn jail(self, root: u32) -> Self {
        self.set("sysctl/kern.hostuuid", "00000000-0000-0000-0000-000000000000");
        self.set("sysctl/security.jail.jailed", "1");
        self.set("root", &format!("94 {root}"));
        self
    }

    /// The login is not root.
    pub fn as_user(self) -> Self {
        self.set("uid", "1001");
        self
    }

    /// A file of the state, such as `sysctl/kern.hz` or `if/em0/options`, without the line break at its end.
    ///
    /// # Panics
    /// When it doesn't exist.
    pub fn get(&self, file: &str) -> String {
        fs::read_to_string(self.state().join(file))
            .expect("the simulated host has the file")
            .trim_end_matches('\n')
            .into()
    }

    /// Writes a file of the state.
    ///
    /// # Panics
    /// When it can't be written.
    pub fn set(&self, file: &str, value: &str) {
        let path = self.state().join(file);
        fs::create_dir_all(path.parent().expect("a file is in a folder"))
            .expect("the simulated host can be written");
        fs::write(path, format!("{value}\n")).expect("the simulated host can be written");
    }

    /// Everything that a setting can change, as one text. `kern.polling.burst` is not included: the kernel changes it
    /// all the time.
    ///
    /// # Panics
    /// When the state can't be read.
    pub fn settings(&self) -> String {
        let mut all = format!(
            "options {}\nmtu {}\n",
            sorted(&self.get("if/em0/options")),
            self.get("if/em0/mtu")
        );
        for (name, _) in VALUES.iter().filter(|(name, _)| *name != "kern.polling.burst") {
            all += &format!("{name} {}\n", self.get(&format!("sysctl/{name}")));
        }
        all
    }

    /// The environment of a login there: `PATH` contains only FreeBSD's programs.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("PATH", self.folder.join("bin")), ("FREEBSD_STATE", self.state())]
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }
}

fn sorted(words: &str) -> String {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.sort_unstable();
    words.join(" ")
}
