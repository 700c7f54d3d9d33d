//! Where the far end of a task is.

use anyhow::{Result, bail};
use goodput_engine::Target;
use goodput_fleet::{FOREIGN_PROTOCOLS, SSH, SshServer, Task};
use goodput_remote::Address;
use goodput_wire::protocols::goodput::PROTOCOL;

/// Who is called.
pub(super) enum Far {
    /// An agent, which opens a server for this test, on the port that the mesh file names. Without one, it takes any that
    /// is free.
    Agent(Target, Option<u16>),
    /// A server that stands open and is no goodput.
    Server(Target),
    /// A host on which a server is started by SSH.
    BySsh(Address, SshServer),
}

/// The far end of a task.
pub(super) fn of(task: &Task) -> Result<Far> {
    if task.target.starts_with(SSH) {
        return Ok(Far::BySsh(task.target.parse()?, task.by_ssh.clone().unwrap_or_default()));
    }
    let target: Target = task.target.parse()?;
    let protocol = target.protocol.id;
    if protocol == PROTOCOL.id {
        let port = names_port(&target).then_some(target.port);
        return Ok(Far::Agent(target, port));
    }
    if FOREIGN_PROTOCOLS.contains(&protocol) {
        return Ok(Far::Server(target));
    }
    let known = FOREIGN_PROTOCOLS.join(", ");
    bail!(
        "{target} is no server that agents test with; beside each other, they test with servers of {known}"
    )
}

fn names_port(target: &Target) -> bool {
    let text = target.text.split_once("://").map_or(&*target.text, |(_, rest)| rest);
    let text = text.trim_end_matches('/');
    text != target.host && text != format!("[{}]", target.host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_wire::protocols::ALL;
    use proptest::prelude::*;

    #[test]
    fn servers_of_a_mesh_speak_protocols_that_ask_before_payload_moves() {
        for id in FOREIGN_PROTOCOLS {
            let protocol = ALL.iter().find(|protocol| protocol.id == id).unwrap();
            assert!(protocol.has_control && id != PROTOCOL.id, "{id}");
        }
    }

    proptest! {
        /// The crate that reads mesh files and the one that logs in don't know each other.
        #[test]
        fn what_a_mesh_file_takes_as_a_host_by_ssh_is_one_and_is_written_alike(
            text in "([a-z-]{1,4}@)?([a-z.-]{1,8}|\\[[0-9a-f:]{2,9}\\])(:[0-9]{1,5})?",
        ) {
            let mesh = format!("[site.a]\n[site.x]\nssh = \"{text}\"\n");
            if let Ok(mesh) = goodput_fleet::Mesh::parse("x", &mesh) {
                let target = mesh.sites[1].target.clone().unwrap();
                prop_assert_eq!(target.parse::<Address>().unwrap().to_string(), target);
            }
        }
    }

    #[test]
    fn a_port_is_named_or_not() {
        for (text, named) in [
            ("b.example", false),
            ("b.example:7487", true),
            ("goodput://b:9/", true),
            ("[fe80::1]:7487", true),
            ("[fe80::1]", false),
            ("goodput://fe80::7487", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(names_port(&text.parse().unwrap()), named, "{text}");
        }
    }
}
