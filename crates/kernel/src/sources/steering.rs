//! How software spreads packets of the path's device over CPUs: RPS and RFS of its receive queues, XPS of its transmit
//! queues (/sys/class/net/*/queues; Documentation/networking/scaling.rst).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::device::directory;
use crate::parse::cpu_mask;
use crate::{Context, Root};

const RFS: &str = "proc/sys/net/core/rps_sock_flow_entries";
/// Most queues that are read.
const MAX_QUEUES: u32 = 64;

pub(super) struct Steering;

impl Source for Steering {
    fn id(&self) -> &'static str {
        "steering"
    }

    fn summary(&self) -> &'static str {
        "CPUs over which software spreads the packets of the path's device (RPS, RFS, XPS)"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let queues = format!("{}/queues", directory(context)?);
        put_masks(snapshot, &context.root, &queues, "rps", ("rx", "rps_cpus"));
        put_masks(snapshot, &context.root, &queues, "xps", ("tx", "xps_cpus"));
        if let Ok(mask) = context.root.read(&format!("{queues}/rx-0/rps_cpus")) {
            snapshot.put("steering.rps_mask", mask.trim());
        }
        match context.root.read_if_there(RFS) {
            Ok(Some(text)) => match text.trim().parse::<u64>() {
                Ok(entries) => snapshot.put("steering.rfs_entries", entries),
                Err(_) => snapshot.lacks("steering.rfs_entries", "not a number"),
            },
            Ok(None) => {
                let why = "not in this kernel, or not visible in this network namespace";
                snapshot.lacks("steering.rfs_entries", why);
            }
            Err(why) => snapshot.lacks("steering.rfs_entries", why.to_string()),
        }
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

/// Records how many queues there are, how many of them are steered, and over how many CPUs at most.
fn put_masks(
    snapshot: &mut Snapshot,
    root: &Root,
    queues: &str,
    name: &str,
    (side, file): (&str, &str),
) {
    let (mut count, mut steered, mut most) = (0u64, 0u64, 0u64);
    for queue in 0..MAX_QUEUES {
        let text = match root.read_if_there(&format!("{queues}/{side}-{queue}/{file}")) {
            Ok(Some(text)) => text,
            Ok(None) => break,
            Err(why) => return snapshot.lacks(format!("steering.{name}_cpus"), why.to_string()),
        };
        match cpu_mask::count(file, &text) {
            Ok(cpus) => {
                count += 1;
                steered += u64::from(cpus > 0);
                most = most.max(cpus);
            }
            Err(why) => return snapshot.lacks(format!("steering.{name}_cpus"), why.to_string()),
        }
    }
    if count == 0 {
        return snapshot.lacks(format!("steering.{name}_cpus"), "no queue reports it");
    }
    snapshot.put(format!("steering.{name}_queues"), count);
    snapshot.put(format!("steering.{name}_steered_queues"), steered);
    snapshot.put(format!("steering.{name}_cpus"), most);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_the_queues_are_counted() {
        let host = tempfile::tempdir().unwrap();
        for (file, text) in [("rx-0/rps_cpus", "f\n"), ("rx-1/rps_cpus", "0\n")] {
            let path = host.path().join("queues").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut snapshot = Snapshot::default();
        let root = Root::at(host.path());
        put_masks(&mut snapshot, &root, "queues", "rps", ("rx", "rps_cpus"));
        put_masks(&mut snapshot, &root, "queues", "xps", ("tx", "xps_cpus"));
        assert_eq!(snapshot.count("steering.rps_queues"), Ok(2));
        assert_eq!(snapshot.count("steering.rps_steered_queues"), Ok(1));
        assert_eq!(snapshot.count("steering.rps_cpus"), Ok(4));
        assert!(snapshot.count("steering.xps_cpus").is_err());
    }
}
