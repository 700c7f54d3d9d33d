//! Which figures of two records show the same: of the direction that both have, if one record has both directions.

use goodput_model::{EndName, Record};

/// Two records, by what their figures are called.
pub struct Kin {
    /// The only sender of each; `None` if both ends send. Its figures name no direction.
    only_senders: [Option<EndName>; 2],
}

impl Kin {
    /// That of two records.
    pub fn of(records: [&Record; 2]) -> Self {
        Self { only_senders: records.map(only_sender) }
    }

    /// Whether the figures with these ids, one of each record, show the same.
    pub fn are(&self, ids: [&str; 2]) -> bool {
        let [one, other] = ids;
        let names = |own: &str, sender: Option<EndName>, other: &str| {
            sender.is_some_and(|sender| format!("{own}{}", of_sender(sender)) == other)
        };
        let [first, second] = self.only_senders;
        one == other || names(one, first, other) || names(other, second, one)
    }

    /// The direction that both have, if one of the records has another one, too.
    pub fn shared(&self) -> Option<EndName> {
        match self.only_senders {
            [Some(sender), None] | [None, Some(sender)] => Some(sender),
            _ => None,
        }
    }
}

/// The end of an id of a figure that shows what one of two ends sends.
pub fn of_sender(sender: EndName) -> String {
    format!("-from-{sender}")
}

fn only_sender(record: &Record) -> Option<EndName> {
    match &record.result.directions[..] {
        [only] => Some(only.sender),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_direction_is_kin_to_the_same_one_of_two() {
        let near = Some(EndName::Near);
        let mixed = Kin { only_senders: [near, None] };
        assert!(mixed.are(["rate", "rate-from-near"]) && !mixed.are(["rate", "rate-from-far"]));
        assert!(mixed.are(["cpu-near", "cpu-near"]) && !mixed.are(["rate", "losses-from-near"]));
        assert_eq!(mixed.shared(), near);
        let turned = Kin { only_senders: [None, near] };
        assert!(turned.are(["rate-from-near", "rate"]) && !turned.are(["rate-from-far", "rate"]));
        let alike = Kin { only_senders: [near, Some(EndName::Far)] };
        assert!(alike.are(["rate", "rate"]) && alike.shared().is_none());
    }
}
