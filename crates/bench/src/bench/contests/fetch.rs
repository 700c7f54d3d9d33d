//! A file fetched from a web and an FTP server by goodput and curl, and from an NFS server by goodput and nfs-cat.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::net::{Net, address};
use crate::bench::quantity::Values;
use crate::bench::quantity::{CPU, Quantity, RATE};
use crate::bench::run::children_cpu_s;
use crate::bench::stage::Stage;
use crate::bench::watch::Watch;
use xtask::shell::{capture, run};

/// Length of the file, bytes: it has no blocks on the disk, and is in the server's page cache after the first fetch.
const FILE_BYTES: u64 = 1 << 30;
/// How often it is fetched afterwards.
const FETCHES: u32 = 4;

pub static HTTP: Contest = contest(
    "http-fetch",
    "A file of a web server (nginx)",
    ABOUT_CURL,
    &GOALS,
    &[
        Entry { name: "goodput", kind: Kind::Measured(|stage, _| goodput(stage, &NGINX, &COPY)) },
        Entry { name: DISCARD, kind: Kind::Measured(|stage, _| goodput(stage, &NGINX, &DROP)) },
        Entry { name: "curl", kind: Kind::Measured(|stage, _| curl(stage, &NGINX)) },
    ],
);

pub static FTP: Contest = contest(
    "ftp-fetch",
    "A file of an FTP server (vsftpd)",
    ABOUT_CURL,
    &GOALS,
    &[
        Entry { name: "goodput", kind: Kind::Measured(|stage, _| goodput(stage, &VSFTPD, &COPY)) },
        Entry { name: DISCARD, kind: Kind::Measured(|stage, _| goodput(stage, &VSFTPD, &DROP)) },
        Entry { name: "curl", kind: Kind::Measured(|stage, _| curl(stage, &VSFTPD)) },
    ],
);

pub static NFS: Contest = contest(
    "nfs-fetch",
    "A file of an NFS server (nfs-ganesha)",
    "A file of 1 GiB is read to nothing, once as a warm-up and then four times; the rate is that of the four. \
     goodput has 16 READs of 1 MiB in flight, or one. nfs-cat, of libnfs, asks for 1 MiB after the other and writes to \
     /dev/null; the milliseconds in which it starts and mounts are in its rate. The CPU time is that of the client \
     alone, over all five. For all of them, glibc keeps the server's memory (MALLOC_MMAP_THRESHOLD_=16M, \
     MALLOC_TRIM_THRESHOLD_=1G, MALLOC_TOP_PAD_=64M): otherwise ganesha maps and unmaps the buffer of each READ, and the \
     page faults of several at a time are what is measured.",
    &NFS_GOALS,
    &[
        Entry { name: "goodput", kind: Kind::Measured(|stage, _| goodput(stage, &GANESHA, &[])) },
        Entry {
            name: ONE_READ,
            kind: Kind::Measured(|stage, _| goodput(stage, &GANESHA, &["--slots", "1"])),
        },
        Entry { name: NFS_CAT, kind: Kind::Measured(|stage, _| nfs_cat(stage)) },
    ],
);

const ABOUT_CURL: &str = "A file of 1 GiB is fetched to nothing, once as a warm-up and then four times; the rate is that \
                          of the four. The CPU time is that of the client alone, over all five. curl writes to /dev/null.";

const COPY: [&str; 2] = ["--receive-mover", "copy"];
const DROP: [&str; 2] = ["--receive-mover", "discard"];

const NFS_CAT: &str = "nfs-cat";
const ONE_READ: &str = "goodput, one READ at a time";

const DISCARD: &str = "goodput, payload dropped";

static COLUMNS: [&Quantity; 2] = [&RATE, &CPU];

static GOALS: [Goal; 3] = [
    beside("curl", "throughput / curl", "goodput", &RATE, Bound::AtLeast(1.0)),
    beside("curl", "CPU per byte / curl", "goodput", &CPU, Bound::AtMost(1.0)),
    beside("curl", "CPU per byte / curl, payload dropped", DISCARD, &CPU, Bound::Below(1.0)),
];

static NFS_GOALS: [Goal; 4] = [
    beside(NFS_CAT, "throughput / nfs-cat", "goodput", &RATE, Bound::AtLeast(1.0)),
    beside(NFS_CAT, "CPU per byte / nfs-cat", "goodput", &CPU, Bound::AtMost(1.0)),
    beside(NFS_CAT, "throughput / nfs-cat, one READ each", ONE_READ, &RATE, Bound::AtLeast(1.0)),
    beside(NFS_CAT, "CPU per byte / nfs-cat, one READ each", ONE_READ, &CPU, Bound::AtMost(1.0)),
];

const fn contest(
    id: &'static str,
    title: &'static str,
    about: &'static str,
    goals: &'static [Goal],
    entries: &'static [Entry],
) -> Contest {
    Contest {
        id,
        title,
        about,
        places: LOOPBACK,
        load: Load::tcp(128 << 10),
        length: Length::Asked,
        watch: Watch::Nothing,
        entries,
        columns: &COLUMNS,
        goals,
    }
}

const fn beside(
    peer: &'static str,
    what: &'static str,
    of: &'static str,
    quantity: &'static Quantity,
    bound: Bound,
) -> Goal {
    Goal { what, of, quantity, against: Against::Entry(peer), bound }
}

/// A program that serves files.
struct FileServer {
    program: &'static str,
    url: fn(&Path, &str, u16) -> String,
    /// Number of ports on which it listens, starting with the first.
    ports: u16,
    arguments: fn(&Path) -> Vec<String>,
    configuration: fn(&Path, &str, u16) -> String,
}

static NGINX: FileServer = FileServer {
    program: "nginx",
    url: |_, address, port| format!("http://{address}:{port}/file"),
    ports: 1,
    arguments: |file| vec!["-c".into(), file.display().to_string()],
    configuration: |folder, address, port| {
        let folder = folder.display();
        format!(
            "daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
             events {{}}
             http {{ access_log off; sendfile on; tcp_nopush on; client_body_temp_path {folder}/a;
                     proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d;
                     scgi_temp_path {folder}/e;
                     server {{ listen {address}:{port}; root {folder}/files; }} }}"
        )
    },
};

static VSFTPD: FileServer = FileServer {
    program: "vsftpd",
    url: |_, address, port| format!("ftp://{address}:{port}/file"),
    ports: 1,
    arguments: |file| vec![file.display().to_string()],
    configuration: |folder, address, port| {
        let folder = folder.display();
        format!(
            "listen=YES\nlisten_address={address}\nlisten_port={port}\nbackground=NO\nanonymous_enable=YES\n\
             anon_root={folder}/files\nlocal_enable=NO\nsecure_chroot_dir={folder}/empty\nseccomp_sandbox=NO\n"
        )
    },
};

/// Keeps ganesha from returning memory to the kernel with each READ (mallopt(3); 32 MiB is the most for the first).
const GANESHA_MEMORY: &str =
    "MALLOC_MMAP_THRESHOLD_=16777216 MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_TOP_PAD_=67108864";

/// It requires a port mapper, and talks to it over a socket in `/run`, which is therefore private to them. They run in
/// their own process namespace, so that both end with the first.
static GANESHA: FileServer = FileServer {
    program: "unshare",
    url: |folder, address, port| {
        let mount_port = mount_port(port);
        format!("nfs://{address}:{port}{}/files/file?mountport={mount_port}", folder.display())
    },
    ports: 2,
    arguments: |file| {
        let file = file.display();
        let script = format!(
            "mount -t tmpfs tmpfs /run && rpcbind && exec env {GANESHA_MEMORY} ganesha.nfsd -F -f {file} -L {file}.log -p {file}.pid"
        );
        let namespaces = ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script];
        namespaces.map(str::to_owned).to_vec()
    },
    configuration: |folder, address, port| {
        let (folder, mount_port) = (folder.display(), mount_port(port));
        format!(
            "NFS_CORE_PARAM {{ Protocols = 3; Bind_addr = {address}; NFS_Port = {port}; MNT_Port = {mount_port}; \
             Enable_NLM = false; Enable_RQUOTA = false; }}
             EXPORT {{ Export_Id = 1; Path = {folder}/files; Pseudo = /1; Protocols = 3; Access_Type = RO; \
             Squash = None; SecType = sys; Transports = TCP; FSAL {{ Name = VFS; }} }}"
        )
    },
};

/// The MOUNT port, beside NFS.
fn mount_port(port: u16) -> u16 {
    port + 1
}

/// A running server, and the file that it serves.
struct Serving {
    child: Child,
    folder: TempDir,
    url: String,
}

impl Serving {
    fn start(stage: &Stage<'_>, server: &FileServer) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = folder.path();
        let files = at.join("files");
        fs::create_dir(&files)?;
        fs::create_dir(at.join("empty"))?;
        File::create(files.join("file"))?.set_len(FILE_BYTES)?;
        fs::set_permissions(at, fs::Permissions::from_mode(0o755))?;
        fs::set_permissions(&files, fs::Permissions::from_mode(0o555))?;
        let (address, configuration) = (address(stage.place), at.join("configuration"));
        let text = (server.configuration)(at, address, stage.port);
        File::create(&configuration)?.write_all(text.as_bytes())?;
        let child = stage
            .net
            .at_server(stage.place, server.program)
            .args((server.arguments)(&configuration))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("can't start {}", server.program))?;
        let url = (server.url)(at, address, stage.port);
        let mut serving = Self { child, folder, url };
        for port in stage.port..stage.port + server.ports {
            stage.net.wait_for_listener(stage.place, &mut serving.child, port)?;
        }
        Ok(serving)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // If this fails, it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn goodput(stage: &Stage<'_>, server: &FileServer, more: &[&str]) -> Result<Values> {
    let serving = Serving::start(stage, server)?;
    let bytes = (FILE_BYTES * u64::from(FETCHES)).to_string();
    let mut client = Net::at_client(stage.place, &stage.goodput.to_string_lossy());
    client.args(["test", &serving.url, "--json", "--no-store", "-n", &bytes]);
    client.args(more);
    let before = children_cpu_s()?;
    let record: Value = serde_json::from_str(&capture(&mut client)?)?;
    let rate = record["result"]["goodput_bits_per_s"].as_f64();
    values(rate.context("the record has no result.goodput_bits_per_s")?, before)
}

fn curl(stage: &Stage<'_>, server: &FileServer) -> Result<Values> {
    let serving = Serving::start(stage, server)?;
    let mut client = Net::at_client(stage.place, "curl");
    client.args(["--silent", "--write-out", "%{size_download} %{time_total}\\n"]);
    for _ in 0..=FETCHES {
        client.args(["--output", "/dev/null", &serving.url]);
    }
    let before = children_cpu_s()?;
    values(rate_of(&capture(&mut client)?)?, before)
}

fn nfs_cat(stage: &Stage<'_>) -> Result<Values> {
    let serving = Serving::start(stage, &GANESHA)?;
    let (address, folder) = (address(stage.place), serving.folder.path().display());
    let (port, mount_port) = (stage.port, mount_port(stage.port));
    let url = format!("nfs://{address}{folder}/files/file?nfsport={port}&mountport={mount_port}");
    let read = || {
        let mut client = Net::at_client(stage.place, NFS_CAT);
        run(client.arg(&url).stdout(Stdio::null()))
    };
    let before = children_cpu_s()?;
    read()?;
    let began = Instant::now();
    (0..FETCHES).try_for_each(|_| read())?;
    let bits = (FILE_BYTES * u64::from(FETCHES)) as f64 * 8.0;
    values(bits / began.elapsed().as_secs_f64(), before)
}

/// The rate from curl's output, one line per fetch, bit/s; the first line does not count.
fn rate_of(said: &str) -> Result<f64> {
    let fetches = said.lines().map(|line| {
        let (bytes, seconds) = line.split_once(' ').context("curl printed something else")?;
        Ok((bytes.parse()?, seconds.parse()?))
    });
    let fetches: Vec<(f64, f64)> = fetches.collect::<Result<_>>()?;
    ensure!(fetches.len() > 1, "curl fetched nothing");
    let sum = |of: fn(&(f64, f64)) -> f64| fetches[1..].iter().map(of).sum::<f64>();
    Ok(sum(|fetch| fetch.0) * 8.0 / sum(|fetch| fetch.1))
}

/// The values of a client that has ended; other children took `before` seconds of CPU time.
fn values(bits_per_s: f64, before: f64) -> Result<Values> {
    let all_bytes = (FILE_BYTES * u64::from(FETCHES + 1)) as f64;
    let cpu = (children_cpu_s()? - before) / (all_bytes / 1e9);
    Ok(Values::from([(RATE.id.into(), bits_per_s), (CPU.id.into(), cpu)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_curls_fetches_does_not_count() {
        assert_eq!(rate_of("1000 9.0\n1000 0.5\n1000 1.5\n").unwrap(), 8000.0);
        assert!(rate_of("").is_err() && rate_of("1000 9.0\n").is_err() && rate_of("x").is_err());
    }
}
