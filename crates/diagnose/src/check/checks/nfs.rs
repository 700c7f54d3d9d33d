//! NFS mounts whose transfer size does not fit their transport.

use goodput_model::Confidence;

use super::super::{Answer, Check, HostView, Scope};
use crate::finding::bytes;

/// Transfer size below which TCP spends needless time in round trips, bytes. Linux requests
/// 1 MiB by default (nfs(5), `rsize`).
const MIN_TCP_TRANSFER_BYTES: f64 = 65_536.0;
/// Payload of one datagram of MTU 1500, bytes: a larger UDP transfer is cut into fragments, and is
/// lost entirely if one of them is.
const UNFRAGMENTED_DATAGRAM_BYTES: f64 = 1472.0;

/// NFS transfer sizes.
pub(super) const TRANSFER_SIZE: Check = Check {
    id: "nfs-transfer-size",
    title: "NFS transfers too small for TCP, or too large for UDP",
    scope: Scope::Host,
    ask: &transfer_size,
};

fn transfer_size(check: &Check, host: &HostView) -> Answer {
    let mounts = host.count("nfs.mounts")? as u64;
    for mount in 0..mounts {
        let fact = |name: &str| format!("nfs.{mount}.{name}");
        let (at, proto) = (host.text(&fact("mounted_on"))?, host.text(&fact("proto"))?);
        let size = host.count(&fact("rsize_bytes"))?;
        let udp = proto.starts_with("udp");
        let (wrong, advice) = match udp {
            true if size > UNFRAGMENTED_DATAGRAM_BYTES => (
                "over UDP each read comes in fragments, and is lost if one of them is",
                "mount over TCP (proto=tcp), or with rsize=1024,wsize=1024",
            ),
            false if size < MIN_TCP_TRANSFER_BYTES => (
                "each read waits one round trip",
                "mount with rsize=1048576,wsize=1048576 (and nconnect=8 for a fast link)",
            ),
            _ => continue,
        };
        let text = format!("{at}: rsize of {} over {proto}: {wrong}", bytes(size));
        return check
            .draft(Confidence::Possible, "rsize_bytes", size, &text)
            .advice(advice)
            .permanent("/etc/fstab", "the same mount options")
            .found();
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Finding, Snapshot};

    fn of(proto: &str, size: u64) -> Option<Finding> {
        let mut facts = Snapshot::default();
        facts.put("nfs.mounts", 1u64);
        facts.put("nfs.0.mounted_on", "/home");
        facts.put("nfs.0.proto", proto);
        facts.put("nfs.0.rsize_bytes", size);
        TRANSFER_SIZE.check(&HostView { device: None, now: &facts, before: None }).unwrap()
    }

    #[test]
    fn udp_wants_small_and_tcp_large() {
        assert!(of("udp", 8192).unwrap().summary.contains("fragments"));
        assert!(of("tcp", 8192).unwrap().summary.contains("round trip"));
        assert_eq!(of("udp", 1024), None);
        assert_eq!(of("tcp6", 1_048_576), None);
    }
}
