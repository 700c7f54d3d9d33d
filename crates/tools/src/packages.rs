//! The Debian packages that tests and benchmarks call, and why.

use anyhow::Result;

use crate::shell::{command, has_program, run};

/// A Debian package, which of its programs we call, and why.
pub struct Package {
    name: &'static str,
    /// The name of a program, or the path of a file.
    program: &'static str,
    reason: &'static str,
}

/// Packages for the tests.
pub const FOR_TESTS: &[Package] = &[
    Package { name: "procps", program: "kill", reason: "ends the program under test by signals" },
    Package { name: "mount", program: "mount", reason: "makes a small disk, to fill it" },
    Package { name: "util-linux", program: "unshare", reason: "keeps that disk to one test" },
    Package { name: "nftables", program: "nft", reason: "drops packets at random in the lab" },
    Package { name: "iperf3", program: "iperf3", reason: "is a peer, at either side" },
    Package { name: "iperf", program: "iperf", reason: "is a peer, at either side (iperf2)" },
    Package { name: "nuttcp", program: "nuttcp", reason: "is a peer, at either side" },
    Package { name: "nginx-light", program: "nginx", reason: "is a web server to fetch from" },
    Package { name: "vsftpd", program: "vsftpd", reason: "is an FTP server to fetch from" },
    Package { name: "openssl", program: "openssl", reason: "makes the certificates of these" },
    Package {
        name: "nfs-ganesha-vfs",
        program: "ganesha.nfsd",
        reason: "is an NFS server to read from",
    },
    Package { name: "rpcbind", program: "rpcbind", reason: "names the NFS server's port" },
    Package { name: "curl", program: "curl", reason: "fetches the same, to compare" },
    Package { name: "chromium", program: "chromium", reason: "shows the pages of `goodput web`" },
    Package { name: "tcpdump", program: "tcpdump", reason: "reads the captures" },
    Package { name: "iproute2", program: "ip", reason: "gives a namespace another address" },
    Package {
        name: "openssh-server",
        program: "sshd",
        reason: "is how hosts without goodput are reached",
    },
    Package { name: "openssh-client", program: "ssh", reason: "reaches them" },
    Package { name: "ethtool", program: "ethtool", reason: "reads and changes their devices" },
    Package {
        name: "qemu-system-x86",
        program: "qemu-system-x86_64",
        reason: "runs a second kernel",
    },
    Package { name: "busybox-static", program: "busybox", reason: "is its first file system" },
    Package { name: "cpio", program: "cpio", reason: "packs that" },
    Package { name: "kmod", program: "modprobe", reason: "finds and loads its modules" },
    Package {
        name: "systemd",
        program: "systemd-analyze",
        reason: "judges the units in packaging",
    },
    Package {
        name: "docker-compose",
        program: "docker-compose",
        reason: "judges the compose file in packaging",
    },
    Package {
        name: "kubernetes-client",
        program: "kubectl",
        reason: "judges the manifest for Kubernetes in packaging",
    },
    Package {
        name: "python3-yaml",
        program: "/usr/lib/python3/dist-packages/yaml/__init__.py",
        reason: "reads the manifests in packaging",
    },
    Package { name: "binutils", program: "strip", reason: "takes the symbols off the program" },
    Package { name: "dpkg-dev", program: "dpkg-shlibdeps", reason: "knows what it depends on" },
    Package { name: "lintian", program: "lintian", reason: "judges the Debian package" },
    Package { name: "buildah", program: "buildah", reason: "makes the image for containers" },
    Package {
        name: "prometheus",
        program: "promtool",
        reason: "reads the metrics, and judges them and the alert rules",
    },
    Package { name: "nats-server", program: "nats-server", reason: "carries a fleet's messages" },
    Package { name: "postgresql", program: "pg_ctlcluster", reason: "is a place for the history" },
];

/// Packages for the benchmark.
pub const FOR_BENCH: &[Package] = &[
    Package { name: "iproute2", program: "ip", reason: "links the two network namespaces" },
    Package { name: "util-linux", program: "nsenter", reason: "runs programs in a namespace" },
    Package { name: "util-linux", program: "setpriv", reason: "ends them with the bench" },
    Package {
        name: "iperf3",
        program: "iperf3",
        reason: "is a peer that goodput is compared with",
    },
    Package { name: "iperf", program: "iperf", reason: "is a peer (iperf2)" },
    Package { name: "nuttcp", program: "nuttcp", reason: "is a peer" },
    Package { name: "qperf", program: "qperf", reason: "is a peer" },
    Package { name: "sockperf", program: "sockperf", reason: "is a peer" },
    Package { name: "nginx-light", program: "nginx", reason: "is a web server to fetch from" },
    Package { name: "vsftpd", program: "vsftpd", reason: "is an FTP server to fetch from" },
    Package { name: "curl", program: "curl", reason: "is a peer that fetches files" },
    Package { name: "nfs-ganesha-vfs", program: "ganesha.nfsd", reason: "is an NFS server" },
    Package { name: "rpcbind", program: "rpcbind", reason: "is a port mapper, which that wants" },
    Package { name: "libnfs-utils", program: "nfs-cat", reason: "is a peer that reads from it" },
    Package { name: "gcc", program: "cc", reason: "compiles a reader that calls libnfs" },
    Package {
        name: "libnfs-dev",
        program: "/usr/include/nfsc/libnfs.h",
        reason: "is the library of that reader",
    },
    Package { name: "tcpdump", program: "tcpdump", reason: "has the kernel's time of each packet" },
    Package { name: "binutils", program: "strip", reason: "takes the symbols off the program" },
];

/// Installs missing packages if run as root; otherwise returns how to install them, if any are missing.
pub fn provide(packages: &[Package]) -> Result<Option<String>> {
    let missing: Vec<_> = packages.iter().filter(|p| !has_program(p.program)).collect();
    for package in &missing {
        println!("  missing: {} ({}: {})", package.name, package.program, package.reason);
    }
    if missing.is_empty() {
        return Ok(None);
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    if !rustix::process::geteuid().is_root() {
        let needs = format!("packages: needs root to run `apt-get install {}`", names.join(" "));
        return Ok(Some(needs));
    }
    println!("  as root, so installing: {}", names.join(" "));
    install(&names)?;
    Ok(None)
}

fn install(names: &[&str]) -> Result<()> {
    let apt_get = || {
        let mut command = command("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet=2");
        command
    };
    run(apt_get().arg("update"))?;
    run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(names))
}
