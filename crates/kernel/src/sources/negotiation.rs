//! What the two ends of the path's cable support, offered and agreed on (`ETHTOOL_GLINKSETTINGS`). An end that names no
//! modes has no fact. The speed in force is in the area `link`. Not tested on hardware that negotiates.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::Netlink;
use goodput_netlink::ethtool::{LinkSettings, link_settings};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct Negotiation;

impl Source for Negotiation {
    fn id(&self) -> &'static str {
        "negotiation"
    }

    fn summary(&self) -> &'static str {
        "autonegotiation of the path's link, and the fastest speed that each end supports and offers"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let device = context.device_name()?;
        let link = Netlink::open().and_then(|mut n| n.link(&device)).map_err(missing)?;
        if link.loopback || link.kind.is_some() {
            return Err(Missing::because(format!(
                "{device} is a virtual device and negotiates nothing"
            )));
        }
        put(snapshot, &link_settings(&device).map_err(missing)?);
        Ok(())
    }

    fn lasts(&self, _name: &str) -> bool {
        true
    }
}

fn put(snapshot: &mut Snapshot, settings: &LinkSettings) {
    snapshot.put("negotiation.autoneg", if settings.autoneg { "on" } else { "off" });
    let ends = [
        ("supported", &settings.supported),
        ("advertised", &settings.advertised),
        ("partner", &settings.partner),
    ];
    for (name, modes) in ends {
        if let Some(speed) = modes.fastest_bits_per_s() {
            snapshot.put(format!("negotiation.{name}_bits_per_s"), speed);
        }
    }
    if settings.supported.fastest_bits_per_s().is_none() {
        let why = "the driver names no link mode with a known speed";
        snapshot.lacks("negotiation.supported_bits_per_s", why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_names_no_modes_leaves_them_missing() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, &LinkSettings::default());
        assert_eq!(snapshot.text("negotiation.autoneg"), Ok("off"));
        assert!(snapshot.count("negotiation.supported_bits_per_s").is_err());
    }
}
