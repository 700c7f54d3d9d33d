//! What each class of a shaper's traffic gets, alone and beside the others, and why.

mod answer;
mod causes;
mod part;
#[cfg(test)]
mod tests;

use goodput_model::{
    BitRate, ClassAnswer, Confirmation, CountedLayer, Estimate, Known, Missing, ShapingClass,
    ShapingTest,
};

use crate::configured::Configured;
use crate::counted::TcpRate;
use crate::explain::{Sender, ceil, counted_layer, used_class};
use crate::judge::{counts, is_own_rate, tcp_in, too_slow};
use crate::trace::Train;
pub use part::{TrainPart, overlapping};

/// What a class should get.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassAsked {
    /// The class by its mark, as typed.
    pub name: String,
    /// Rate that it should get while all classes send, bits per second.
    pub rate: BitRate,
    /// Rate that it should get while the others send nothing, if that was typed.
    pub ceil: Option<BitRate>,
}

/// What was seen of a class.
#[derive(Debug, Clone)]
pub struct ClassSeen<'a> {
    /// What it should get.
    pub asked: ClassAsked,
    /// What TCP got while the others sent nothing.
    pub alone: Result<TcpRate, Missing>,
    /// What TCP got while all classes sent.
    pub beside: Result<TcpRate, Missing>,
    /// Datagrams that came while those of all classes did.
    pub datagrams: Result<TrainPart, Missing>,
    /// The end that sent, with its facts from before and after TCP was alone.
    pub sender: Result<Sender<'a>, Missing>,
}

/// Compares what each class got with what it should get. The rate of `configured` is that of all classes together.
#[must_use]
pub fn classes(configured: Configured, seen: &[ClassSeen]) -> ShapingTest {
    let layer = layer(configured, seen);
    let all = answered(configured, seen.iter().map(|one| class(configured, one, &layer)).collect());
    let (beside, datagrams) = (
        sum(all.iter().map(|class| &class.beside_bits_per_s)),
        sum(all.iter().map(|class| &class.datagrams_bits_per_s)),
    );
    let (confirmation, reasons) = answer::of_all(configured, &all, beside.as_ref().ok());
    let test = ShapingTest {
        tolerance_percent: configured.tolerance_percent,
        counts: layer.into(),
        train: Known::missing("each class sent a train of its own"),
        datagrams_bits_per_s: datagrams.into(),
        tcp_bits_per_s: beside.into(),
        confirmation,
        reasons,
        classes: all,
        shaper: Known::missing("see the classes"),
        enough_bucket: Known::missing("not computed for classes"),
        ..ShapingTest::of(configured.rate)
    };
    let causes = causes::all(&test, seen);
    ShapingTest { causes, ..test }
}

/// Which bytes the shaper counts: as read at the sender, or else as fits the rate of all classes best.
fn layer(configured: Configured, seen: &[ClassSeen]) -> Result<CountedLayer, Missing> {
    let read = |one: &ClassSeen| {
        let (sender, tcp) = (one.sender.as_ref().ok()?, one.alone.as_ref().ok()?);
        counted_layer(sender, tcp.packet)
    };
    if let Some(layer) = seen.iter().find_map(read) {
        return Ok(layer);
    }
    let of = |one: &ClassSeen| one.beside.clone();
    let tcp: Vec<TcpRate> = seen.iter().map(of).collect::<Result<_, _>>()?;
    let first = tcp.first().ok_or_else(|| Missing::because("there is no class"))?;
    let goodput = added(tcp.iter().map(|tcp| tcp.goodput));
    let no_train = Err(Missing::because("there is a train for each class"));
    counts(configured, &no_train, &Ok(TcpRate { goodput, ..*first }))
}

/// The classes with what they may get and with their answers, once the rates of all are there.
fn answered(configured: Configured, mut all: Vec<ShapingClass>) -> Vec<ShapingClass> {
    all_or_none(&mut all, |class| &mut class.beside_bits_per_s);
    all_or_none(&mut all, |class| &mut class.datagrams_bits_per_s);
    let answered = all.iter().map(|class| {
        let tcp = most(configured, &all, class, |class| &class.beside_bits_per_s);
        let datagrams = most(configured, &all, class, |class| &class.datagrams_bits_per_s);
        let answer = answer::of(configured, class, tcp, datagrams);
        ShapingClass { most_bits_per_s: tcp, answer, ..class.clone() }
    });
    answered.collect()
}

/// Leaves out a rate of all classes if it is unknown for one of them: what that one did not use, the others may have
/// borrowed, and nobody took anything from a class that was alone.
fn all_or_none(classes: &mut [ShapingClass], of: fn(&mut ShapingClass) -> &mut Known<Estimate>) {
    let lacking = classes.iter_mut().find_map(|class| match of(class) {
        Known::Value(_) => None,
        Known::Missing(_) => Some(class.name.clone()),
    });
    let Some(name) = lacking else { return };
    let why = format!("{name} was not measured at the same time");
    for rate in classes.iter_mut().map(of).filter(|rate| rate.value().is_some()) {
        *rate = Known::Missing(Missing::because(why.clone()));
    }
}

/// The highest rate of a class beside the others: its own and what no class asks for, or what the others left of the
/// whole, which they lend; its ceil at most. The others took at least the lower ends of their intervals.
fn most(
    configured: Configured,
    classes: &[ShapingClass],
    class: &ShapingClass,
    of: fn(&ShapingClass) -> &Known<Estimate>,
) -> BitRate {
    let (whole, rate) = (configured.rate.0, class.rate_bits_per_s.0);
    let asked: f64 = classes.iter().map(|class| class.rate_bits_per_s.0).sum();
    let took = |class| of(class).value().map_or(0.0, |rate| rate.low.max(0.0));
    let by_others = classes.iter().map(took).sum::<f64>() - took(class);
    let highest = class.ceil_bits_per_s.value().map_or(whole, |ceil| ceil.0).max(rate);
    BitRate((rate + (whole - asked).max(0.0)).max(whole - by_others).min(highest))
}

/// What a class got. What it may get beside the others, and its answer, follow from all classes.
fn class(
    configured: Configured,
    one: &ClassSeen,
    layer: &Result<CountedLayer, Missing>,
) -> ShapingClass {
    let ClassAsked { name, rate, ceil: typed } = &one.asked;
    let htb_class = one.sender.as_ref().map_err(Clone::clone).and_then(used_class);
    let read = || {
        let class = htb_class.as_ref().map_err(Clone::clone)?;
        ceil(one.sender.as_ref().map_err(Clone::clone)?, class)
    };
    // Nobody gets more than all together.
    let ceil = typed.map_or_else(read, Ok).map(|ceil| BitRate(ceil.0.min(configured.rate.0)));
    let in_layer = |tcp: &Result<TcpRate, Missing>| {
        let (tcp, layer) = (tcp.as_ref().map_err(Clone::clone)?, layer.clone()?);
        Ok::<_, Missing>(tcp_in(tcp, layer))
    };
    let datagrams =
        || datagrams_in(*rate, one.datagrams.as_ref().map_err(Clone::clone)?, layer.clone()?);
    ShapingClass {
        name: name.clone(),
        rate_bits_per_s: *rate,
        most_bits_per_s: *rate,
        ceil_bits_per_s: ceil.into(),
        htb_class: htb_class.into(),
        alone_bits_per_s: in_layer(&one.alone).into(),
        beside_bits_per_s: in_layer(&one.beside).into(),
        datagrams_bits_per_s: datagrams().into(),
        answer: ClassAnswer::Inconclusive,
    }
}

/// Rate of the datagrams of a class with this `rate`.
fn datagrams_in(rate: BitRate, part: &TrainPart, layer: CountedLayer) -> Result<Estimate, Missing> {
    let Train { sizes, held_percent, rate_waits_per_call, .. } = part.train();
    part.lasts_for(rate)?;
    let (offered, lost) = (part.offered(), part.lost_share());
    if is_own_rate(rate, offered, lost, held_percent, rate_waits_per_call) {
        return Err(too_slow(offered));
    }
    let by = (sizes.packet as f64 + layer.extra_bytes()) / sizes.frame as f64;
    Ok(part.rate().scaled(by))
}

/// The rates of all classes together, if each is known.
fn sum<'a>(rates: impl Iterator<Item = &'a Known<Estimate>>) -> Result<Estimate, Missing> {
    let all: Vec<Estimate> = rates.map(|rate| rate.get().cloned()).collect::<Result<_, _>>()?;
    Ok(added(all.into_iter()))
}

/// Errors may have one cause, so they add up.
fn added(rates: impl Iterator<Item = Estimate>) -> Estimate {
    let none = Estimate { value: 0.0, low: 0.0, high: 0.0 };
    rates.fold(none, |sum, one| Estimate {
        value: sum.value + one.value,
        low: sum.low + one.low,
        high: sum.high + one.high,
    })
}

/// Whether this is a reason to say that the shaper misses its rates.
fn confirmation(answer: ClassAnswer) -> Confirmation {
    match answer {
        ClassAnswer::Gives => Confirmation::Confirmed,
        ClassAnswer::Inconclusive => Confirmation::Inconclusive,
        _ => Confirmation::Missed,
    }
}
