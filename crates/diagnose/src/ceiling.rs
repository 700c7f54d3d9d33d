//! What the path could carry: the slowest of the links and the shaper that are known.

use goodput_model::{BitRate, Known, Missing};

use crate::framing::{Packet, WIRE_EXTRA};
use crate::names::{LINK_KIND, LINK_SPEED};
use crate::shaper::Shaper;
use crate::view::{Side, View, positive};

/// Virtual devices, which have no speed; some name one all the same (drivers/net/veth.c and
/// drivers/net/tun.c claim 10 Gbit/s).
const WITHOUT_SPEED: [&str; 9] =
    ["veth", "tun", "tap", "dummy", "ifb", "bridge", "vxlan", "wireguard", "loopback"];
/// More than this share of its ceiling through a link shows that its speed is not real.
const BEYOND_DOUBT: f64 = 1.02;

/// Goodput that the path could carry at best, as far as links and the local shaper tell.
pub fn ceiling(view: &View) -> Known<BitRate> {
    let links = view.sides().map(|side| link_ceiling(view, side));
    let shaper = Shaper::of(view).ok().flatten().map(|shaper| shaper.ceiling);
    let known = links.iter().filter_map(|link| link.as_ref().ok().copied()).chain(shaper);
    match known.reduce(f64::min) {
        Some(rate) => Known::Value(BitRate(rate)),
        None => Known::Missing(
            links
                .into_iter()
                .find_map(Result::err)
                .unwrap_or_else(|| Missing::because("neither link nor shaper reports a speed")),
        ),
    }
}

/// Goodput that the link of one side could carry, bits per second.
pub fn link_ceiling(view: &View, side: &Side) -> Result<f64, Missing> {
    let kind = side.words(LINK_KIND).unwrap_or_default();
    if WITHOUT_SPEED.contains(&kind.as_str()) {
        return Err(Missing::because(format!("a {kind} device has no speed of its own")));
    }
    let speed = positive(side.count(LINK_SPEED)?, "the link's speed")?;
    let ceiling = speed * Packet::of(view)?.share(WIRE_EXTRA);
    let claim = BitRate(speed);
    match view.goodput() {
        Ok(goodput) if goodput > BEYOND_DOUBT * ceiling => Err(Missing::because(format!(
            "the {} device claims {claim}, yet {} went through",
            side.name,
            BitRate(goodput)
        ))),
        _ => positive(ceiling, "the link's ceiling"),
    }
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
    fn a_speed_that_is_outrun_is_not_believed() {
        let evidence = Case::healthy().goodput(30e9).evidence();
        assert!(ceiling(&View::new(&evidence)).value().is_none());
    }
}
