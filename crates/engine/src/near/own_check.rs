//! What this end can't do of a plan: found before the far end is asked for anything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use goodput_model::{Direction, EndName, Family, Plan};
use goodput_mover::socket::check_permitted;
use goodput_wire::check::{sense, too_slow, within_any_server};

use crate::control::target::{FileTarget, Target};
use crate::error::EngineError;
use crate::run::movers::{self, Movers};
use crate::run::storage;
use crate::threads::blocking;

/// Refuses a plan that makes no sense, that this end has no mover for, whose socket options this process may not set, or
/// whose files can't be read or written here.
pub async fn check(target: &Target, plan: &Plan) -> Result<(), EngineError> {
    let (target, plan) = (target.clone(), plan.clone());
    blocking(move || {
        movers(&target, &plan)?;
        if target.mounted.is_none() {
            check_socket(&plan)?;
        }
        Ok(storage::check_own(&plan)?)
    })
    .await?
}

/// The plan as this end carries it out, and the movers of this end.
pub fn movers(target: &Target, plan: &Plan) -> Result<(Plan, Movers), EngineError> {
    if let Some(why) = too_slow(plan) {
        return Err(EngineError::Flow(why));
    }
    check_file_options(target, plan)?;
    // Another program's session judges what its protocol can carry.
    if target.protocol.far_end.takes_any_plan {
        sense(plan).and_then(|()| within_any_server(plan)).map_err(EngineError::Flow)?;
    }
    let mut plan = plan.clone();
    if target.file.as_ref().is_some_and(FileTarget::is_decoded) {
        movers::decoded(&mut plan, EndName::Near)?;
    }
    let movers = match target.mounted {
        Some(_) => Movers::of_file(&plan),
        None => Movers::of(&plan, EndName::Near),
    };
    let movers = movers.map_err(|why| EngineError::Flow(format!("near end: {why}")))?;
    Ok((plan, movers))
}

/// Tries the plan's socket options on a socket of its own, which goes nowhere.
fn check_socket(plan: &Plan) -> Result<(), EngineError> {
    let any: IpAddr = match plan.socket.family {
        Some(Family::V6) => Ipv6Addr::UNSPECIFIED.into(),
        Some(Family::V4) | None => Ipv4Addr::UNSPECIFIED.into(),
    };
    check_permitted(plan.transport, &plan.socket, (any, 0).into())
        .map_err(|failure| EngineError::Socket { to: "near end".into(), failure })
}

/// Checks that the file options fit the kind of target.
fn check_file_options(target: &Target, plan: &Plan) -> Result<(), EngineError> {
    let why = match (target.is_nfs(), target.mounted.is_some()) {
        (_, true) if plan.nfs.slots.is_some() => {
            "nfs.slots is for targets that begin with nfs://; the slots of a mount are the kernel's \
             (sunrpc.tcp_slot_table_entries, nfs.max_session_slots)"
        }
        (true, _) if plan.nfs.nconnect.is_some() => {
            "nfs.nconnect is for files on NFS mounts: name the file by its path"
        }
        (true, _) if plan.nfs.wsize_bytes.is_some() && plan.direction == Direction::Reverse => {
            "nfs.wsize is for writing: add --write, or take nfs.rsize"
        }
        (true, _) if plan.nfs.rsize_bytes.is_some() && plan.direction == Direction::Send => {
            "nfs.rsize is for reading: leave out --write, or take nfs.wsize"
        }
        (_, false) if !plan.mount.is_default() => {
            "mount.direct is for files on mounts: name the file by its path"
        }
        (false, false) if !plan.nfs.is_default() => {
            "settings of NFS are for targets that begin with nfs://, or that are files on NFS mounts"
        }
        _ if plan.fetches.is_some() && target.file.is_none() => {
            "--fetches is for files at servers; write a target like http://HOST/FILE"
        }
        _ => return Ok(()),
    };
    Err(EngineError::Flow(why.into()))
}
