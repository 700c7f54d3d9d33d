//! Why classes get what they get: the classes of the sender's htb, compared with what was measured.

use goodput_model::{BitRate, ClassAnswer, Estimate, ShapingCause, ShapingClass, ShapingTest};

use super::ClassSeen;
use crate::explain::{Sender, above_parent, parents, say, shaper_missing};

/// What causes look at: each class with what was seen of it.
struct Seen<'a> {
    test: &'a ShapingTest,
    pairs: Vec<(&'a ShapingClass, &'a ClassSeen<'a>)>,
}

/// All that explain what was seen.
pub(super) fn all(test: &ShapingTest, seen: &[ClassSeen]) -> Vec<ShapingCause> {
    const ALL: [fn(&Seen) -> Vec<ShapingCause>; 10] = [
        elsewhere,
        unclassified,
        same_class,
        set_otherwise,
        tcp_limit,
        never_borrows,
        children_above_parent,
        rates_above_whole,
        narrower,
        taken_by,
    ];
    let seen = Seen { test, pairs: test.classes.iter().zip(seen).collect() };
    ALL.iter().flat_map(|cause| cause(&seen)).collect()
}

impl<'a> Seen<'a> {
    fn tolerance(&self) -> f64 {
        self.test.tolerance_percent / 100.0
    }

    fn classes(&self) -> impl Iterator<Item = &'a ShapingClass> {
        self.pairs.iter().map(|(class, _)| *class)
    }

    /// Each class that took a class of htb, with that and the sender.
    fn in_tree(&self) -> impl Iterator<Item = (&'a ShapingClass, &'a str, &'a Sender<'a>)> {
        self.pairs.iter().filter_map(|(class, seen)| {
            Some((*class, class.htb_class.value()?.as_str(), seen.sender.as_ref().ok()?))
        })
    }
}

fn fact(sender: &Sender, class: &str, what: &str) -> Option<f64> {
    sender.before.number(&format!("class.{class}.{what}")).ok()
}

/// No htb at the sender.
fn elsewhere(seen: &Seen) -> Vec<ShapingCause> {
    let why = |(_, one): &(&ShapingClass, &ClassSeen)| match &one.sender {
        Ok(sender) if sender.before.text("qdisc.kind") == Ok("htb") => None,
        Ok(sender) => Some(shaper_missing(sender).unwrap_or_else(|| no_classes(sender))),
        Err(why) => Some(why.to_string()),
    };
    let reports = seen.pairs.iter().find(|(_, one)| one.sender.is_ok());
    let why = reports.or(seen.pairs.first()).and_then(why);
    let cause =
        |why| say("elsewhere", format!("{why}: classes elsewhere are only seen from outside"));
    why.map(cause).into_iter().collect()
}

/// A shaper that does not distinguish packets.
fn no_classes(sender: &Sender) -> String {
    let fact = |name: &str| sender.before.text(name).unwrap_or("its device").to_owned();
    format!("the {} of {} has no classes", fact("qdisc.kind"), fact("link.device"))
}

/// Packets that no filter takes to a class, which htb sends without a limit if it has no default. At a router, they may be
/// of other traffic.
fn unclassified(seen: &Seen) -> Vec<ShapingCause> {
    let each = seen.pairs.iter().filter_map(|(class, one)| {
        let sender = one.sender.as_ref().ok()?;
        let direct = sender.before.grown(sender.after, "class.direct_packets").ok()?;
        let is_own = class.htb_class.value().is_none() && sender.router.is_none();
        (is_own && direct > 0).then(|| {
            say(
                "unclassified",
                format!(
                    "no filter takes {} to a class, and htb has no default class: its packets pass unshaped",
                    class.name
                ),
            )
        })
    });
    each.collect()
}

/// Classes that the filters don't tell apart.
fn same_class(seen: &Seen) -> Vec<ShapingCause> {
    let all: Vec<_> = seen.in_tree().collect();
    let pairs = all.iter().enumerate().filter_map(|(place, (class, taken, _))| {
        let (other, ..) = all[..place].iter().find(|(_, other, _)| other == taken)?;
        let (one, two) = (&other.name, &class.name);
        Some(say(
            "same-class",
            format!("{one} and {two} both pass class {taken}: no filter tells them apart"),
        ))
    });
    pairs.collect()
}

/// A class that is set to another rate than the one that was asked about.
fn set_otherwise(seen: &Seen) -> Vec<ShapingCause> {
    let each = seen.in_tree().filter_map(|(class, taken, sender)| {
        let (set, asked) = (fact(sender, taken, "rate_bits_per_s")?, class.rate_bits_per_s);
        ((set / asked.0 - 1.0).abs() > seen.tolerance()).then(|| {
            let (name, set) = (&class.name, BitRate(set));
            say("set-otherwise", format!("{name} passes class {taken}, which is set to {set}"))
        })
    });
    each.collect()
}

/// What limits a class that does not get its rate alone, by its diagnosis.
fn tcp_limit(seen: &Seen) -> Vec<ShapingCause> {
    let slow = seen.pairs.iter().filter(|(class, _)| class.answer == ClassAnswer::TooSlow);
    let each = slow.filter_map(|(class, one)| {
        let limit = &one.sender.as_ref().ok()?.tcp_limit.as_ref()?.words;
        Some(say("tcp-limit", format!("TCP of {} alone: {limit}", class.name)))
    });
    each.collect()
}

/// A class that gets less than its ceil alone.
fn never_borrows(seen: &Seen) -> Vec<ShapingCause> {
    let each = seen.in_tree().filter(|(class, ..)| class.answer == ClassAnswer::BelowCeil);
    let each = each.filter_map(|(class, taken, sender)| {
        let ceil = BitRate(fact(sender, taken, "ceil_bits_per_s")?);
        let ShapingClass { name, ceil_bits_per_s, alone_bits_per_s, .. } = class;
        if ceil.0 < ceil_bits_per_s.value()?.0 * (1.0 - seen.tolerance()) {
            return Some(say(
                "low-ceil",
                format!("{name} passes class {taken}, whose ceil is {ceil}"),
            ));
        }
        let (alone, lends) =
            (BitRate(alone_bits_per_s.value()?.value), lends(sender, taken, ceil)?);
        Some(say(
            "never-borrows",
            format!("class {taken} of {name} may borrow up to {ceil}, and gets {alone}: {lends}"),
        ))
    });
    each.collect()
}

/// Whether the class above has what a class may borrow, in words.
fn lends(sender: &Sender, class: &str, ceil: BitRate) -> Option<String> {
    let Some(above) = parents(sender, class).first().copied() else {
        return Some("there is no class above it, and only children of one class borrow".into());
    };
    let has = BitRate(fact(sender, above, "rate_bits_per_s")?);
    Some(match has.0 < ceil.0 {
        true => format!("class {above} above it has only {has}"),
        false => format!(
            "class {above} above it has enough, so its bucket (cburst) is too small, or something slower is on the way"
        ),
    })
}

/// Classes whose rates together exceed what a class above them has, each such class once.
fn children_above_parent(seen: &Seen) -> Vec<ShapingCause> {
    let mut found: Vec<ShapingCause> = Vec::new();
    for (_, taken, sender) in seen.in_tree() {
        let above = parents(sender, taken);
        for cause in above.iter().filter_map(|parent| above_parent(sender, parent)) {
            if !found.contains(&cause) {
                found.push(cause);
            }
        }
    }
    found
}

/// Rates that can't all be had.
fn rates_above_whole(seen: &Seen) -> Vec<ShapingCause> {
    let sum: f64 = seen.classes().map(|class| class.rate_bits_per_s.0).sum();
    let whole = seen.test.configured_bits_per_s;
    let cause = || {
        let sum = BitRate(sum);
        let text = format!(
            "the rates of the classes are {sum} together, and the shaper has {whole}: some class must get less"
        );
        say("rates-above-whole", text)
    };
    (sum > whole.0 * (1.0 + seen.tolerance())).then(cause).into_iter().collect()
}

/// All classes together get less than their rates.
fn narrower(seen: &Seen) -> Vec<ShapingCause> {
    let sum: f64 = seen.classes().map(|class| class.rate_bits_per_s.0).sum();
    let should = sum.min(seen.test.configured_bits_per_s.0);
    let is_short = |all: &&Estimate| all.high < should * (1.0 - seen.tolerance());
    let starves = seen.classes().any(|class| class.answer == ClassAnswer::Starves);
    let all = seen.test.tcp_bits_per_s.value().filter(is_short).filter(|_| starves);
    let cause = |all: &Estimate| {
        let text = format!(
            "together the classes get {}: something on the way is slower than their rates, and does not tell them apart",
            BitRate(all.value)
        );
        say("narrower", text)
    };
    all.map(cause).into_iter().collect()
}

/// Who has what a starving class lacks.
fn taken_by(seen: &Seen) -> Vec<ShapingCause> {
    let takes = |class: &ShapingClass| {
        let got = class.beside_bits_per_s.value()?;
        let most = class.rate_bits_per_s.0 * (1.0 + seen.tolerance());
        (got.low > most).then(|| {
            let ShapingClass { name, rate_bits_per_s: rate, .. } = class;
            format!("{name} gets {}, its rate is {rate}", BitRate(got.value))
        })
    };
    let takers: Vec<String> = seen.classes().filter_map(takes).collect();
    let starving = seen.classes().filter(|class| class.answer == ClassAnswer::Starves);
    let each = starving.filter(|_| !takers.is_empty()).map(|class| {
        say("taken", format!("what {} lacks, others have: {}", class.name, takers.join("; ")))
    });
    each.collect()
}
