//! Which mover each side of a plan gets: the one named in the plan, or the choice of `auto`.

use goodput_model::{Plan, Role, Transport};

use crate::auto::{self, AUTO};
use crate::error::Unsupported;
use crate::limits::Needs;
use crate::movers::{Mover, check_here, check_storage, find, names};

/// A mover for one side of a plan.
#[derive(Clone)]
pub struct Choice {
    /// The mover.
    pub mover: &'static dyn Mover,
    /// Why it was taken, if the plan leaves the choice to this end ([`AUTO`]), and which form it uses, if it has
    /// several.
    pub why: Option<String>,
}

/// The mover for one side of a plan, if it can run here within the limits of this process.
pub fn for_role(plan: &Plan, role: Role) -> Result<Choice, Unsupported> {
    let id = asked(plan, role)?;
    if id == AUTO {
        let (mover, why) = auto::choose(plan, role)?;
        return Ok(Choice { mover, why: Some(why) });
    }
    let mover = named(id, plan.transport)?;
    check_storage(mover, plan, role)?;
    check_here(mover, plan, role)?;
    Ok(Choice { mover, why: mover.form(role) })
}

/// The most that each flow of `plan` takes in this role beside its socket and its thread, whichever mover it gets.
/// Nothing is created or tried. Fails if the plan names no mover with this role.
pub fn most_needs(plan: &Plan, role: Role) -> Result<Needs, Unsupported> {
    match asked(plan, role)? {
        AUTO => Ok(auto::most_needs(plan, role)),
        id => Ok(named(id, plan.transport)?.needs(plan, role)),
    }
}

/// What a plan asks for on one side: the id of a mover, or [`AUTO`]. A mover that only sends, or only
/// receives, leaves the other side to `copy`.
pub fn asked(plan: &Plan, role: Role) -> Result<&str, Unsupported> {
    let own = match (role, &plan.receive_mover) {
        (Role::Receiver, Some(own)) => Some(own),
        (Role::Sender, Some(_)) => Some(&plan.mover),
        (_, None) => None,
    };
    let id = own.unwrap_or(&plan.mover).as_str();
    if id == AUTO || named(id, plan.transport)?.roles().contains(&role) {
        return Ok(id);
    }
    if own.is_some() { Err(lacks_role(id, plan.transport, role)) } else { Ok(PLAIN) }
}

/// The mover of every plan that names no other. Over UDP it means [`PLAIN_DATAGRAMS`].
const PLAIN: &str = "copy";

/// The plain mover of datagrams.
const PLAIN_DATAGRAMS: &str = "datagram";

/// The mover with this id for a transport.
fn named(id: &str, transport: Transport) -> Result<&'static dyn Mover, Unsupported> {
    let id = if (id, transport) == (PLAIN, Transport::Udp) { PLAIN_DATAGRAMS } else { id };
    find(id).ok_or_else(|| unknown(id))
}

fn lacks_role(id: &str, transport: Transport, role: Role) -> Unsupported {
    let (only, option) = match role {
        Role::Sender => ("receives", "--mover"),
        Role::Receiver => ("sends", "--receive-mover"),
    };
    let fits = |m: &dyn Mover| m.roles().contains(&role) && m.transports().contains(&transport);
    Unsupported {
        mover: id.into(),
        why: format!("it only {only}"),
        needs: format!("choose a {option} of {}", names(fits)),
    }
}

fn unknown(id: &str) -> Unsupported {
    Unsupported {
        mover: id.into(),
        why: "no mover has this name".into(),
        needs: format!("write {AUTO}, {}", names(|_| true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Bytes;

    fn check_plan(plan: &Plan) -> Result<(), Unsupported> {
        for_role(plan, Role::Sender)?;
        for_role(plan, Role::Receiver).map(drop)
    }

    fn plan(mover: &str, transport: Transport, chunk: u64) -> Plan {
        Plan { mover: mover.into(), transport, chunk_bytes: Bytes(chunk), ..Plan::standard() }
    }

    #[test]
    fn the_standard_mover_fits_both_transports() {
        let id =
            |plan: &Plan| for_role(plan, Role::Sender).map(|choice| choice.mover.id()).unwrap();
        assert_eq!(id(&Plan::standard()), "copy");
        assert_eq!(id(&plan("copy", Transport::Udp, 1400)), "datagram");
        assert_eq!(id(&plan("sendfile", Transport::Tcp, 1 << 16)), "sendfile");
    }

    #[test]
    fn each_side_may_have_a_mover_of_its_own() {
        let both =
            Plan { receive_mover: Some("discard".into()), ..plan("splice", Transport::Tcp, 65536) };
        let id = |role| for_role(&both, role).map(|choice| choice.mover.id()).unwrap();
        assert_eq!((id(Role::Sender), id(Role::Receiver)), ("splice", "discard"));
        let typo = Plan { receive_mover: Some("discrad".into()), ..both };
        assert!(check_plan(&typo).unwrap_err().to_string().starts_with("mover discrad can't"));
    }

    #[test]
    fn a_mover_of_one_side_leaves_the_other_to_copy() {
        let ids = |mover| {
            let plan = plan(mover, Transport::Tcp, 65536);
            [Role::Sender, Role::Receiver].map(|role| for_role(&plan, role).unwrap().mover.id())
        };
        assert_eq!(ids("splice"), ["splice", "copy"]);
        assert_eq!(ids("discard"), ["copy", "discard"]);
    }

    #[test]
    fn a_mover_is_not_used_for_the_side_that_it_lacks() {
        let refused = |mover, receive: &str, role| {
            let receive_mover = Some(receive.into());
            let plan = Plan { receive_mover, ..plan(mover, Transport::Tcp, 65536) };
            for_role(&plan, role).map(|choice| choice.mover.id()).unwrap_err().to_string()
        };
        let why = refused("copy", "splice", Role::Receiver);
        assert!(why.contains("it only sends; choose a --receive-mover of copy, "), "{why}");
        let why = refused("discard", "copy", Role::Sender);
        assert!(why.contains("it only receives; choose a --mover of copy, "), "{why}");
    }

    #[test]
    fn what_cannot_run_says_what_would() {
        let why = |plan: &Plan| check_plan(plan).unwrap_err().to_string();
        let typo = why(&plan("sendfil", Transport::Tcp, 1400));
        let start = "mover sendfil can't be used: no mover has this name; write auto, copy, ";
        assert!(typo.starts_with(start), "{typo}");
        let udp = why(&plan("sendfile", Transport::Udp, 1400));
        assert!(udp.contains("choose one of datagram"), "{udp}");
        assert!(why(&plan("copy", Transport::Udp, 1 << 17)).contains("5 to 65507"));
        assert!(why(&plan("copy", Transport::Tcp, 0)).contains("1 to 268435456"));
    }
}
