//! NFS mounts: their transport and their sizes (nfs(5)).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::mountinfo::{self, Mount};

const FILE: &str = "proc/self/mountinfo";
/// Most mounts that are listed individually; hosts with hundreds mount them alike.
const MAX_MOUNTS: usize = 16;
/// Options of interest: their name in mountinfo, and the fact's.
const SIZES: [(&str, &str); 3] =
    [("rsize", "rsize_bytes"), ("wsize", "wsize_bytes"), ("nconnect", "connections")];

pub(super) struct Nfs;

impl Source for Nfs {
    fn id(&self) -> &'static str {
        "nfs"
    }

    fn summary(&self) -> &'static str {
        "NFS mounts with their transport and transfer sizes"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable(FILE)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let mounts = mountinfo::parse(&context.root.read(FILE)?)?;
        let nfs = mounts.iter().filter(|mount| mount.is_nfs());
        let mut count = 0u64;
        for mount in nfs.take(MAX_MOUNTS) {
            put(snapshot, count, mount);
            count += 1;
        }
        snapshot.put("nfs.mounts", count);
        Ok(())
    }
}

fn put(snapshot: &mut Snapshot, number: u64, mount: &Mount) {
    let fact = |name: &str| format!("nfs.{number}.{name}");
    snapshot.put(fact("mounted_on"), mount.point.as_str());
    for (name, as_fact) in [("proto", "proto"), ("vers", "version")] {
        match mount.option(name) {
            Some(value) => snapshot.put(fact(as_fact), value),
            None => snapshot.lacks(fact(as_fact), "the mount does not report it"),
        }
    }
    for (name, as_fact) in SIZES {
        match mount.option(name).and_then(|value| value.parse::<u64>().ok()) {
            Some(value) => snapshot.put(fact(as_fact), value),
            None => snapshot.lacks(fact(as_fact), "the mount does not report it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_reports_its_sizes() {
        let line = "90 30 0:50 / /home rw,relatime shared:1 - nfs4 server:/home \
                    rw,vers=4.2,rsize=1048576,wsize=524288,proto=tcp,timeo=600\n";
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, 0, &mountinfo::parse(line).unwrap()[0]);
        assert_eq!(snapshot.count("nfs.0.rsize_bytes"), Ok(1_048_576));
        assert_eq!(snapshot.text("nfs.0.proto"), Ok("tcp"));
        let why = snapshot.count("nfs.0.connections").unwrap_err();
        assert!(why.to_string().contains("does not report"), "{why}");
    }
}
