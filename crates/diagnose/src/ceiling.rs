//! What the path could carry: the slowest known link or shaper.

use goodput_ceiling::MAX_EXCESS_SHARE;
use goodput_model::{BitRate, CeilingInputs, EndName, Known, Missing};

use crate::framing::packet_inputs;
use crate::names::{LINK_KIND, LINK_SPEED};
use crate::shaper::Shaper;
use crate::view::{Side, View, positive};

/// Virtual devices, which have no speed; some report one anyway (drivers/net/veth.c and
/// drivers/net/tun.c claim 10 Gbit/s).
const WITHOUT_SPEED: [&str; 9] =
    ["veth", "tun", "tap", "dummy", "ifb", "bridge", "vxlan", "wireguard", "loopback"];

/// The ceiling of one direction, with its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct PathCeiling {
    /// Goodput that the path could carry at best, as far as links and the local shaper show.
    pub rate: Known<BitRate>,
    /// The inputs: the slowest link whose speed is believed, or the slowest of all if none is.
    pub inputs: Option<CeilingInputs>,
    /// Links and shapers whose speed the measurement exceeded, in words.
    pub outrun: Vec<String>,
}

impl PathCeiling {
    /// The ceiling of an unknown path.
    pub fn unknown(why: String) -> Self {
        Self { rate: Known::missing(why), inputs: None, outrun: Vec::new() }
    }

    /// The ceiling from what both ends reported.
    pub fn of(view: &View) -> Self {
        // If both ends give a reason, take this host's: its user can do something about it.
        let ends = [EndName::Near, EndName::Far].map(|name| view.side(name));
        let links = ends.map(|side| link_ceiling(view, side));
        let shaper = Shaper::of(view).ok().flatten();
        let inputs = inputs(view, ends, links.each_ref().map(Result::is_ok), shaper.as_ref());
        let rate = match (&inputs, links.iter().any(Result::is_ok) || shaper.is_some()) {
            (Ok(inputs), true) => goodput_ceiling::ceiling(inputs).rate(),
            (Err(why), true) => Known::Missing(why.clone()),
            (_, false) => Known::Missing(
                links
                    .into_iter()
                    .find_map(Result::err)
                    .unwrap_or_else(|| Missing::because("neither link nor shaper reports a speed")),
            ),
        };
        Self { rate, inputs: inputs.ok(), outrun: outrun(view, shaper.as_ref()) }
    }
}

/// Goodput that the path could carry at best, as far as links and the local shaper show.
pub fn ceiling(view: &View) -> Known<BitRate> {
    PathCeiling::of(view).rate
}

/// Goodput that the link of one side could carry, bits per second.
pub fn link_ceiling(view: &View, side: &Side) -> Result<f64, Missing> {
    let speed = claimed(side)?;
    let ceiling = carries(view, speed)?;
    let claim = BitRate(speed);
    match view.goodput() {
        Ok(goodput) if is_beyond(goodput, ceiling) => Err(Missing::because(format!(
            "the {} device claims {claim}, yet {} went through",
            side.name,
            BitRate(goodput)
        ))),
        _ => Ok(ceiling),
    }
}

/// The speed that a side's device reports, bits per second.
fn claimed(side: &Side) -> Result<f64, Missing> {
    let kind = side.words(LINK_KIND).unwrap_or_default();
    if WITHOUT_SPEED.contains(&kind.as_str()) {
        return Err(Missing::because(format!("a {kind} device has no speed of its own")));
    }
    positive(side.count(LINK_SPEED)?, "the link's speed")
}

/// Goodput of the measured flows on a link of this speed, bits per second.
fn carries(view: &View, speed: f64) -> Result<f64, Missing> {
    let link = CeilingInputs { link_bits_per_s: Some(BitRate(speed)), ..packet_inputs(view)? };
    goodput_ceiling::ceiling(&link).rate().get().map(|rate| rate.0)
}

/// Whether a measurement is so far above a ceiling that one of them is wrong.
fn is_beyond(goodput: f64, ceiling: f64) -> bool {
    goodput > ceiling * (1.0 + MAX_EXCESS_SHARE)
}

fn inputs(
    view: &View,
    ends: [&Side; 2],
    believed: [bool; 2],
    shaper: Option<&Shaper>,
) -> Result<CeilingInputs, Missing> {
    let speeds = ends.map(|side| claimed(side).ok());
    let among = |every: bool| {
        let speeds = speeds.iter().zip(believed).filter(|(_, believed)| every || *believed);
        speeds.filter_map(|(speed, _)| *speed).reduce(f64::min)
    };
    Ok(CeilingInputs {
        link_bits_per_s: among(false).or_else(|| among(true)).map(BitRate),
        shaper_bits_per_s: shaper.map(|shaper| BitRate(shaper.in_frames)),
        ..packet_inputs(view)?
    })
}

/// How much a bucket that was full at the start adds to the rate of the window, bits per second of goodput.
fn from_the_bucket(view: &View, shaper: &Shaper) -> f64 {
    let (from_s, to_s) = view.receiver.window_s();
    let burst = shaper.burst.as_ref().map_or(0.0, |bytes| bytes * 8.0);
    let added = burst / (to_s - from_s) * shaper.ceiling / shaper.rate;
    if added.is_finite() { added.max(0.0) } else { 0.0 }
}

/// What the measurement exceeded: the ceiling is then not the limit, and something about it is wrong.
fn outrun(view: &View, shaper: Option<&Shaper>) -> Vec<String> {
    let Ok(goodput) = view.goodput() else { return Vec::new() };
    let links = view.sides().into_iter().filter_map(|side| {
        let speed = claimed(side).ok()?;
        let words = format!("the {} device claims {}", side.name, BitRate(speed));
        Some((words, carries(view, speed).ok()?))
    });
    let shaper = shaper.map(|shaper| {
        let rate = BitRate(shaper.rate);
        let words = format!("the {} shaper on {} is set to {rate}", shaper.kind, shaper.device);
        (words, shaper.ceiling + from_the_bucket(view, shaper))
    });
    let exceeded = links.chain(shaper).filter(|(_, ceiling)| is_beyond(goodput, *ceiling));
    let words = exceeded.map(|(claim, ceiling)| {
        format!(
            "the {} end sent {} of payload, but {claim}, which leaves {}: this claim, the model or the \
             measurement is wrong",
            view.sender.name,
            BitRate(goodput),
            BitRate(ceiling)
        )
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;
    use goodput_model::EndName::{Far, Near};

    #[test]
    fn a_gigabit_link_carries_941() {
        let evidence = Case::healthy().evidence();
        let rate = ceiling(&View::new(&evidence));
        assert_eq!(rate.value().unwrap().to_string(), "941.5 Mbit/s");
    }

    #[test]
    fn the_receiver_alone_knows_it_too() {
        let evidence = Case::healthy().silent_sender(|_, _| ()).evidence();
        let rate = ceiling(&View::new(&evidence));
        assert_eq!(rate.value().unwrap().to_string(), "941.5 Mbit/s");
    }

    #[test]
    fn the_slower_of_link_and_shaper_counts() {
        let evidence = Case::healthy().tbf(1e8, 125_000).evidence();
        assert_eq!(ceiling(&View::new(&evidence)).value().unwrap().to_string(), "95.6 Mbit/s");
    }

    #[test]
    fn a_device_without_speed_says_so() {
        let case = Case::healthy().fact(Near, LINK_KIND, "veth").fact(Far, LINK_KIND, "veth");
        let evidence = case.evidence();
        let why = ceiling(&View::new(&evidence)).get().unwrap_err().to_string();
        assert_eq!(why, "a veth device has no speed of its own");
    }

    #[test]
    fn of_two_reasons_the_near_ends_is_reported_whoever_sends() {
        let case = Case::healthy().fact(Near, LINK_KIND, "veth").fact(Far, LINK_KIND, "tun");
        let mut evidence = case.evidence();
        for sender in [Near, Far] {
            evidence.sender_end = sender;
            let why = ceiling(&View::new(&evidence)).get().unwrap_err().to_string();
            assert_eq!(why, "a veth device has no speed of its own", "{sender:?} sends");
        }
    }

    #[test]
    fn a_speed_that_is_outrun_is_not_believed() {
        let evidence = Case::healthy().goodput(30e9).evidence();
        let path = PathCeiling::of(&View::new(&evidence));
        assert!(path.rate.value().is_none());
        assert!(
            path.outrun[0].contains("the model or the measurement is wrong"),
            "{:?}",
            path.outrun
        );
    }

    #[test]
    fn a_full_bucket_explains_more_than_the_rate_and_no_claim_is_doubted_below_it() {
        let outrun = |goodput, burst| {
            let evidence = Case::healthy().goodput(goodput).tbf(1e8, burst).evidence();
            PathCeiling::of(&View::new(&evidence)).outrun
        };
        assert_eq!(outrun(95e6, 125_000), Vec::<String>::new());
        assert!(outrun(200e6, 125_000)[0].contains("tbf shaper on eth0 is set to 100 Mbit/s"));
        assert_eq!(outrun(200e6, 2_000_000_000), Vec::<String>::new());
    }

    #[test]
    fn the_kept_inputs_give_the_ceiling() {
        for case in [Case::healthy(), Case::healthy().tbf(1e8, 125_000), Case::healthy_udp()] {
            let evidence = case.evidence();
            let path = PathCeiling::of(&View::new(&evidence));
            assert_eq!(goodput_ceiling::ceiling(&path.inputs.unwrap()).rate(), path.rate);
        }
    }
}
