//! A file fetched from a web and an FTP server by goodput and curl, and from an NFS server by goodput and libnfs.

mod servers;

use std::fs;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::*;
use crate::bench::contest::{Against, Length};
use crate::bench::load::Load;
use crate::bench::measure::Values;
use crate::bench::measure::{CPU, Measure, RATE};
use crate::bench::net::{Net, address};
use crate::bench::run::children_cpu_s;
use crate::bench::stage::Stage;
use crate::bench::watch::Watch;
use goodput_tools::shell::{capture, command, run};
use servers::{FileServer, GANESHA, NGINX, NGINX_TLS, Serving, VSFTPD, mount_port};

/// Length of the file, bytes: it has no blocks on the disk, and is in the server's page cache after the first fetch.
const FILE_BYTES: u64 = 1 << 30;
/// How often it is fetched afterwards.
const LATER_FETCHES: u32 = 4;
/// The same with the warm-up.
const ALL_FETCHES: u64 = LATER_FETCHES as u64 + 1;

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

pub static HTTPS: Contest = contest(
    "https-fetch",
    "A file of a web server, encrypted (nginx, TLS 1.3)",
    ABOUT_CURL,
    &TLS_GOALS,
    &[
        Entry {
            name: "goodput",
            kind: Kind::Measured(|stage, _| goodput(stage, &NGINX_TLS, &COPY)),
        },
        Entry { name: "curl", kind: Kind::Measured(|stage, _| curl(stage, &NGINX_TLS)) },
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
    "A file of 1 GiB is read and thrown away, once as a warm-up and then four times; the rate is that of the four. \
     goodput has 16 READs of 1 MiB in flight, or one. So has a small program that calls libnfs (nfs_pread_async) and \
     ignores what arrives. nfs-cat, also of libnfs, requests one MiB after the other and writes to /dev/null. Its rate \
     includes the milliseconds in which it starts and mounts. The CPU time is that of the client alone, over all \
     five. For all of them, glibc keeps the server's memory (MALLOC_MMAP_THRESHOLD_=16M, \
     MALLOC_TRIM_THRESHOLD_=1G, MALLOC_TOP_PAD_=64M). Otherwise ganesha maps and unmaps the buffer of each READ, and \
     the contest would measure the page faults of several READs at a time.",
    &NFS_GOALS,
    &[
        Entry { name: "goodput", kind: Kind::Measured(|stage, _| goodput(stage, &GANESHA, &[])) },
        Entry {
            name: ONE_READ,
            kind: Kind::Measured(|stage, _| goodput(stage, &GANESHA, &["--slots", "1"])),
        },
        Entry { name: LIBNFS, kind: Kind::Measured(|stage, _| libnfs(stage, 16)) },
        Entry { name: LIBNFS_ONE, kind: Kind::Measured(|stage, _| libnfs(stage, 1)) },
        Entry { name: NFS_CAT, kind: Kind::Measured(|stage, _| nfs_cat(stage)) },
    ],
);

const ABOUT_CURL: &str = "A file of 1 GiB is fetched to nothing, once as a warm-up and then four times; the rate is that \
                          of the four. The CPU time is that of the client alone, over all five. curl writes to /dev/null.";

const COPY: [&str; 2] = ["--receive-mover", "copy"];
const DROP: [&str; 2] = ["--receive-mover", "discard"];

const NFS_CAT: &str = "nfs-cat";
const ONE_READ: &str = "goodput, one READ at a time";
const LIBNFS: &str = "libnfs";
const LIBNFS_ONE: &str = "libnfs, one READ at a time";

const DISCARD: &str = "goodput, payload dropped";

static COLUMNS: [&Measure; 2] = [&RATE, &CPU];

static GOALS: [Goal; 3] = [
    beside("curl", "throughput / curl", "goodput", &RATE, Bound::AtLeast(1.0)),
    beside("curl", "CPU per byte / curl", "goodput", &CPU, Bound::AtMost(1.0)),
    beside("curl", "CPU per byte / curl, payload dropped", DISCARD, &CPU, Bound::Below(1.0)),
];

static TLS_GOALS: [Goal; 2] = [
    beside("curl", "throughput / curl", "goodput", &RATE, Bound::AtLeast(1.0)),
    beside("curl", "CPU per byte / curl", "goodput", &CPU, Bound::AtMost(1.0)),
];

static NFS_GOALS: [Goal; 6] = [
    beside(LIBNFS, "throughput / libnfs, 16 READs each", "goodput", &RATE, Bound::AtLeast(1.0)),
    beside(LIBNFS, "CPU per byte / libnfs, 16 READs each", "goodput", &CPU, Bound::AtMost(1.0)),
    beside(LIBNFS_ONE, "throughput / libnfs, one READ each", ONE_READ, &RATE, Bound::AtLeast(1.0)),
    beside(LIBNFS_ONE, "CPU per byte / libnfs, one READ each", ONE_READ, &CPU, Bound::AtMost(1.0)),
    beside(NFS_CAT, "throughput / nfs-cat, one READ each", ONE_READ, &RATE, Bound::AtLeast(1.0)),
    beside(NFS_CAT, "throughput / nfs-cat, 16 READs and one", "goodput", &RATE, Bound::None),
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
    measure: &'static Measure,
    bound: Bound,
) -> Goal {
    Goal { what, of, measure, against: Against::Entry(peer), bound }
}

fn goodput(stage: &Stage<'_>, server: &FileServer, more: &[&str]) -> Result<Values> {
    let serving = Serving::start(stage, server)?;
    let bytes = (FILE_BYTES * u64::from(LATER_FETCHES)).to_string();
    let mut client = Net::at_client(stage.place, &stage.goodput.to_string_lossy());
    client.args(["test", &serving.url, "--json", "--no-store", "-n", &bytes]);
    client.args(serving.trust()).args(more);
    let before = children_cpu_s()?;
    let record: Value = serde_json::from_str(&capture(&mut client)?)?;
    let rate = record["result"]["goodput_bits_per_s"].as_f64();
    let further = record["fetches"]["alone_times"]["n"].as_u64().unwrap_or(0);
    let rate = rate.context("the record has no result.goodput_bits_per_s")?;
    values(rate, ALL_FETCHES + further, before)
}

fn curl(stage: &Stage<'_>, server: &FileServer) -> Result<Values> {
    let serving = Serving::start(stage, server)?;
    let mut client = Net::at_client(stage.place, "curl");
    client.args(["--silent", "--write-out", "%{size_download} %{time_total}\\n"]);
    client.args(serving.trust());
    for _ in 0..=LATER_FETCHES {
        client.args(["--output", "/dev/null", &serving.url]);
    }
    let before = children_cpu_s()?;
    values(rate_of(&capture(&mut client)?)?, ALL_FETCHES, before)
}

/// The URL of ganesha's file as libnfs writes it.
fn libnfs_url(stage: &Stage<'_>, serving: &Serving) -> String {
    let (address, folder) = (address(stage.place), serving.folder.path().display());
    let (port, mount_port) = (stage.port, mount_port(stage.port));
    format!("nfs://{address}{folder}/files/file?nfsport={port}&mountport={mount_port}")
}

fn libnfs(stage: &Stage<'_>, slots: u32) -> Result<Values> {
    let serving = Serving::start(stage, &GANESHA)?;
    let (source, program) = ("libnfs_reads.c", serving.folder.path().join("libnfs_reads"));
    fs::write(serving.folder.path().join(source), include_str!("libnfs_reads.c"))?;
    let mut compiler = command("cc");
    compiler.args(["-O2", "-o"]).arg(&program).args([source, "-lnfs"]);
    run(compiler.current_dir(serving.folder.path()))?;
    let mut client = Net::at_client(stage.place, &program.to_string_lossy());
    let url = libnfs_url(stage, &serving);
    client.args([url, slots.to_string(), (LATER_FETCHES + 1).to_string()]);
    let before = children_cpu_s()?;
    values(rate_of(&capture(&mut client)?)?, ALL_FETCHES, before)
}

fn nfs_cat(stage: &Stage<'_>) -> Result<Values> {
    let serving = Serving::start(stage, &GANESHA)?;
    let url = libnfs_url(stage, &serving);
    let read = || {
        let mut client = Net::at_client(stage.place, NFS_CAT);
        run(client.arg(&url).stdout(Stdio::null()))
    };
    let before = children_cpu_s()?;
    read()?;
    let began = Instant::now();
    (0..LATER_FETCHES).try_for_each(|_| read())?;
    let bits = (FILE_BYTES * u64::from(LATER_FETCHES)) as f64 * 8.0;
    values(bits / began.elapsed().as_secs_f64(), ALL_FETCHES, before)
}

/// The rate from a program's lines of bytes and seconds, one per fetch, bit/s; the first line does not count.
fn rate_of(said: &str) -> Result<f64> {
    let fetches = said.lines().map(|line| {
        let (bytes, seconds) = line.split_once(' ').context("the client printed something else")?;
        Ok((bytes.parse()?, seconds.parse()?))
    });
    let fetches: Vec<(f64, f64)> = fetches.collect::<Result<_>>()?;
    ensure!(fetches.len() > 1, "the client fetched nothing");
    let sum = |of: fn(&(f64, f64)) -> f64| fetches[1..].iter().map(of).sum::<f64>();
    Ok(sum(|fetch| fetch.0) * 8.0 / sum(|fetch| fetch.1))
}

/// The values of a client that has ended after this many fetches; other children took `before` seconds of CPU time.
fn values(bits_per_s: f64, fetches: u64, before: f64) -> Result<Values> {
    let all_bytes = (FILE_BYTES * fetches) as f64;
    let cpu = (children_cpu_s()? - before) / (all_bytes / 1e9);
    Ok(Values::from([(RATE.id.into(), bits_per_s), (CPU.id.into(), cpu)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fetch_does_not_count() {
        assert_eq!(rate_of("1000 9.0\n1000 0.5\n1000 1.5\n").unwrap(), 8000.0);
        assert!(rate_of("").is_err() && rate_of("1000 9.0\n").is_err() && rate_of("x").is_err());
    }
}
