//! How the flows of one end move their payload: by the plan's mover, or by one that this end chooses.

use goodput_model::{EndName, MoverChoice, Plan, Role};
use goodput_mover::{AUTO, Choice, FileMover, Mover, asked, for_role, movers};

use crate::error::EngineError;

/// The mover to name to a peer that chooses none.
const PLAIN_MOVER: &str = "copy";

/// The movers of one end.
#[derive(Clone, Default)]
pub struct Movers(Vec<RoleMover>);

/// The mover of one role.
#[derive(Clone)]
struct RoleMover {
    role: Role,
    choice: Choice,
}

impl Movers {
    /// The movers that `end`, which is this end, uses for `plan`. Fails if one can't run here with the limits of this
    /// process.
    pub fn of(plan: &Plan, end: EndName) -> Result<Self, String> {
        let senders = plan.direction.senders().iter();
        let roles = senders.map(|from| if *from == end { Role::Sender } else { Role::Receiver });
        let own = |role| for_role(plan, role).map(|choice| RoleMover { role, choice });
        roles.map(own).collect::<Result<_, _>>().map(Self).map_err(|why| why.to_string())
    }

    /// The mover of a file on a mount, which no other mover can read or write.
    pub fn of_file(plan: &Plan) -> Result<Self, String> {
        for role in [Role::Sender, Role::Receiver] {
            match asked(plan, role).map_err(|why| why.to_string())? {
                AUTO | PLAIN_MOVER => {}
                other => {
                    return Err(format!(
                        "the mover {other} works on sockets, and a file on a mount has none: leave out --mover and \
                         --receive-mover"
                    ));
                }
            }
        }
        let choice = || Choice { mover: &FileMover, why: None };
        let both = [Role::Sender, Role::Receiver].map(|role| RoleMover { role, choice: choice() });
        Ok(Self(both.into()))
    }

    /// The mover of flows in this role. Fails if the plan has none for this end.
    pub fn of_role(&self, role: Role) -> Result<&'static dyn Mover, String> {
        let own = self.0.iter().find(|own| own.role == role);
        own.map(|own| own.choice.mover).ok_or_else(|| format!("no flow of this end is a {role:?}"))
    }

    /// What this end chose on its own.
    pub fn chosen(&self) -> Vec<MoverChoice> {
        let chosen = |RoleMover { role, choice }: &RoleMover| {
            let (mover, why) = (choice.mover.id().into(), choice.why.clone()?);
            Some(MoverChoice { role: *role, mover, why })
        };
        self.0.iter().filter_map(chosen).collect()
    }
}

/// Leaves `end` no choice if more than payload moves, because not every mover can do that. Fails if the plan names one
/// that can't receive it.
pub fn decoded(plan: &mut Plan, end: EndName) -> Result<(), EngineError> {
    if plan.direction.senders().contains(&end) {
        if asked(plan, Role::Sender) == Ok(AUTO) {
            plan.mover = PLAIN_MOVER.into();
        }
        return Ok(());
    }
    let named = match asked(plan, Role::Receiver) {
        Ok(AUTO) => {
            plan.receive_mover = Some(PLAIN_MOVER.into());
            return Ok(());
        }
        Ok(named) => named,
        // The user of the mover reports this.
        Err(_) => return Ok(()),
    };
    let blind = movers::ALL.iter().find(|mover| mover.id() == named && !mover.decodes());
    blind.map_or(Ok(()), |mover| {
        Err(EngineError::Flow(format!(
            "mover {} can't receive this file: it comes encrypted, or in answers that have more than payload; only \
             copy can: leave out --receive-mover",
            mover.id()
        )))
    })
}

/// The plan as the far end needs to know it. A far end that is not goodput chooses nothing, and knows no movers that do
/// one side only.
pub fn for_peer(plan: &Plan, chooses_movers: bool) -> Result<Plan, EngineError> {
    if chooses_movers {
        return Ok(plan.clone());
    }
    let named = |role| match asked(plan, role) {
        Ok(AUTO) => Ok(PLAIN_MOVER.to_string()),
        Ok(id) => Ok(id.to_string()),
        Err(why) => Err(EngineError::Flow(why.to_string())),
    };
    let (mover, receive) = (named(Role::Sender)?, named(Role::Receiver)?);
    let receive_mover = (receive != PLAIN_MOVER).then_some(receive);
    Ok(Plan { mover, receive_mover, ..plan.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Direction;

    fn plan(mover: &str, receive: Option<&str>, direction: Direction) -> Plan {
        let receive_mover = receive.map(Into::into);
        Plan { mover: mover.into(), receive_mover, direction, ..Plan::standard() }
    }

    fn chosen(movers: &Movers) -> Vec<(Role, String)> {
        movers.chosen().into_iter().map(|choice| (choice.role, choice.mover)).collect()
    }

    #[test]
    fn an_end_chooses_for_what_it_does_itself() {
        let auto = plan("auto", None, Direction::Send);
        assert_eq!(
            chosen(&Movers::of(&auto, EndName::Far).unwrap()),
            [(Role::Receiver, "discard".into())]
        );
        let near = Movers::of(&auto, EndName::Near).unwrap();
        assert_eq!(near.chosen()[0].role, Role::Sender);
        assert!(!near.chosen()[0].why.is_empty());
        let both = Movers::of(&plan("auto", None, Direction::Both), EndName::Near).unwrap();
        assert_eq!(both.chosen().len(), 2);
        let half = plan("copy", Some("auto"), Direction::Both);
        let half = Movers::of(&half, EndName::Far).unwrap();
        assert_eq!(chosen(&half), [(Role::Receiver, "discard".into())]);
        let named = Movers::of(&plan("copy", None, Direction::Send), EndName::Near).unwrap();
        assert!(named.chosen().is_empty());
        assert_eq!(named.of_role(Role::Sender).unwrap().id(), "copy");
        assert!(named.of_role(Role::Receiver).is_err());
    }

    #[test]
    fn what_is_not_payload_alone_is_received_by_copy_only() {
        let decoded = |receive: &str| {
            let mut plan = plan("auto", Some(receive), Direction::Reverse);
            super::decoded(&mut plan, EndName::Near).map(|()| plan.receive_mover)
        };
        for good in ["auto", "copy"] {
            assert_eq!(decoded(good).unwrap().as_deref(), Some("copy"));
        }
        let why = decoded("discard").unwrap_err().to_string();
        assert!(why.contains("discard") && why.contains("--receive-mover"), "{why}");
    }

    #[test]
    fn a_foreign_peer_gets_each_side_alone() {
        let chosen = |mover, receive| {
            let plan = for_peer(&plan(mover, receive, Direction::Send), false).unwrap();
            (plan.mover, plan.receive_mover)
        };
        assert_eq!(chosen("auto", None), ("copy".into(), None));
        assert_eq!(chosen("splice", None), ("splice".into(), None));
        assert_eq!(chosen("discard", None), ("copy".into(), Some("discard".into())));
        assert_eq!(chosen("auto", Some("discard")), ("copy".into(), Some("discard".into())));
        assert!(for_peer(&plan("teleport", None, Direction::Send), false).is_err());
    }
}
