//! Flows that were lost while the others went on.

use goodput_model::{EndName, LostFlow, Role, Seconds};

use crate::result::measurement::Measurement;

/// The flows that each end lost in each role.
pub fn flows(measurement: &Measurement) -> Vec<String> {
    let roles = [Role::Sender, Role::Receiver];
    let ends = [EndName::Near, EndName::Far].into_iter();
    let each = ends.flat_map(|end| roles.map(|role| words(measurement, end, role)));
    each.flatten().collect()
}

fn words(measurement: &Measurement, end: EndName, role: Role) -> Option<String> {
    let lost = measurement.end(end)?.lost_flows.iter().filter(|lost| lost.role == role);
    let lost: Vec<&LostFlow> = lost.collect();
    let first = lost.iter().min_by(|a, b| a.at_s.total_cmp(&b.at_s))?;
    let (count, after, why) = (lost.len(), Seconds(first.at_s), &first.why);
    let did = if role == Role::Sender { "sent" } else { "received" };
    let of = format!("of the {} flows on which the {end} end {did}", measurement.plan.flows);
    Some(match count {
        1 => format!("1 {of} was lost after {after}, and the others went on; {why}"),
        _ => format!(
            "{count} {of} were lost, the first after {after}, and the others went on; {why}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use goodput_model::{End, Host, Known, Plan};

    use super::*;

    fn lost(flow: u16, at_s: f64) -> LostFlow {
        LostFlow { flow, role: Role::Sender, at_s, why: format!("flow {flow}: can't send") }
    }

    #[test]
    fn lost_flows_are_counted_and_the_first_one_says_why() {
        let near = End {
            lost_flows: vec![lost(3, 9.0), lost(12, 8.1)],
            ..End::unobserved(Host::foreign("near"))
        };
        let plan = Plan { flows: 64, ..Plan::standard() };
        let said = |near: &End| {
            flows(&Measurement::made_up(plan.clone(), near.clone(), Known::missing("gone")))
        };
        let two = said(&near);
        assert_eq!(two.len(), 1, "{two:?}");
        assert!(two[0].starts_with(
            "2 of the 64 flows on which the near end sent were lost, the first after 8.10 s"
        ));
        assert!(two[0].ends_with("flow 12: can't send"), "{two:?}");
        let one = said(&End { lost_flows: vec![lost(3, 9.0)], ..near });
        assert!(one[0].contains("sent was lost after 9 s"), "{one:?}");
    }
}
