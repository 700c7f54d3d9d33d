//! The mount of the measured file: its properties, and an NFS mount's requests to its server.

use goodput_model::{Fact, Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::mounts::FileMount;
use crate::parse::mountinfo::Mount;
use crate::parse::mountstats::{NfsStatistics, Operation, Transport};

/// Mount options that rules use: the name in mountinfo, and the fact's.
const NUMBERS: [(&str, &str); 3] =
    [("rsize", "rsize_bytes"), ("wsize", "wsize_bytes"), ("nconnect", "nconnect")];
/// The same for words.
const WORDS: [(&str, &str); 2] = [("vers", "version"), ("proto", "protocol")];
/// Calls that move payload, and the call that brings payload to the server's disk. All others are added up.
const CALLS: [(&str, &str); 3] = [("READ", "read"), ("WRITE", "write"), ("COMMIT", "commit")];

pub(super) struct MountSource;

impl Source for MountSource {
    fn id(&self) -> &'static str {
        "mount"
    }

    fn summary(&self) -> &'static str {
        "the mount of the measured file: its options, and the calls, times and connections of NFS"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context
            .mount
            .as_ref()
            .map(drop)
            .ok_or_else(|| Missing::because("no file on a mount is measured"))
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let Some(mount) = &context.mount else { return self.can_run(context) };
        describe(&mount.mount, snapshot);
        match read_ahead(context, mount) {
            Ok(bytes) => snapshot.put("mount.read_ahead_bytes", bytes),
            Err(why) => snapshot.lacks("mount.read_ahead_bytes", why.to_string()),
        }
        match mount.statistics() {
            Ok(nfs) => count(&nfs, snapshot),
            Err(why) => {
                for (_, name) in CALLS {
                    snapshot.lacks(format!("mount.{name}.calls"), why.to_string());
                }
                snapshot.lacks("mount.connections", why.to_string());
            }
        }
        Ok(())
    }
}

fn describe(mount: &Mount, snapshot: &mut Snapshot) {
    snapshot.put("mount.point", mount.point.as_str());
    snapshot.put("mount.type", mount.kind.as_str());
    snapshot.put("mount.source", mount.source.as_str());
    snapshot.put("mount.options", mount.options.join(","));
    for (option, name) in WORDS {
        put(snapshot, name, mount.option(option));
    }
    for (option, name) in NUMBERS {
        put(snapshot, name, mount.option(option).and_then(|value| value.parse::<u64>().ok()));
    }
}

fn put(snapshot: &mut Snapshot, name: &str, value: Option<impl Into<Fact>>) {
    let name = format!("mount.{name}");
    match value {
        Some(value) => snapshot.put(name, value),
        None => snapshot.lacks(name, "the mount does not report it"),
    }
}

/// How far the kernel reads ahead of a program that reads in order (sysfs-class-bdi, Documentation/ABI).
fn read_ahead(context: &Context, mount: &FileMount) -> Result<u64, Missing> {
    let file = format!("sys/class/bdi/{}/read_ahead_kb", mount.mount.device);
    let text = context.root.read(&file)?;
    let kib: u64 =
        text.trim().parse().map_err(|_| Missing::because(format!("/{file}: {text:?}")))?;
    Ok(kib.saturating_mul(1024))
}

fn count(nfs: &NfsStatistics, snapshot: &mut Snapshot) {
    for (wanted, name) in CALLS {
        let found = nfs.operations.iter().find(|operation| operation.name == wanted);
        match found {
            Some(operation) => calls(snapshot, name, operation),
            None => snapshot.lacks(format!("mount.{name}.calls"), "this version has no such call"),
        }
    }
    let is_other = |operation: &&Operation| CALLS.iter().all(|(name, _)| *name != operation.name);
    let others: u64 = nfs.operations.iter().filter(is_other).map(|other| other.calls).sum();
    snapshot.put("mount.others.calls", others);
    connections(snapshot, &nfs.transports);
    match nfs.bytes {
        Some(bytes) => {
            snapshot.put("mount.server_read_bytes", bytes.server_read);
            snapshot.put("mount.server_write_bytes", bytes.server_write);
        }
        None => snapshot.lacks("mount.server_read_bytes", "the kernel does not count it"),
    }
}

fn calls(snapshot: &mut Snapshot, name: &str, operation: &Operation) {
    let mut put = |what: &str, value: u64| snapshot.put(format!("mount.{name}.{what}"), value);
    put("calls", operation.calls);
    put("transmissions", operation.transmissions);
    put("timeouts", operation.timeouts);
    put("sent_bytes", operation.sent_bytes);
    put("received_bytes", operation.received_bytes);
    put("queue_ms", operation.queue_ms);
    put("round_trip_ms", operation.round_trip_ms);
    put("execute_ms", operation.execute_ms);
    let name = format!("mount.{name}.errors");
    match operation.errors {
        Some(errors) => snapshot.put(name, errors),
        None => snapshot.lacks(name, "this kernel does not count it"),
    }
}

fn connections(snapshot: &mut Snapshot, all: &[Transport]) {
    let sum = |of: fn(&Transport) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    snapshot.put("mount.connections", all.len() as u64);
    snapshot.put("mount.connects", sum(|transport| transport.connects.unwrap_or(0)));
    snapshot.put("mount.sends", sum(|transport| transport.sends));
    snapshot.put("mount.receives", sum(|transport| transport.receives));
    snapshot.put("mount.bad_answers", sum(|transport| transport.bad_answers));
    snapshot.put("mount.in_flight_sum", sum(|transport| transport.in_flight_sum));
    snapshot.put("mount.backlog_sum", sum(|transport| transport.backlog_sum));
    match all.iter().map(|transport| transport.most_slots).max().flatten() {
        Some(slots) => snapshot.put("mount.most_slots", slots),
        None => snapshot.lacks("mount.most_slots", "this kernel does not count it"),
    }
}
