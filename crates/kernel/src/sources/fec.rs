//! Forward error correction of the path's link (`ETHTOOL_MSG_FEC_GET`, Linux 5.13 and later): links of 25 Gbit/s and
//! more lose frames without it. No available device supports it.

use goodput_model::{Missing, Snapshot};
use goodput_netlink::line_care::{Fec, fec};

use super::Source;
use crate::Context;
use crate::context::missing;

pub(super) struct FecSource;

impl Source for FecSource {
    fn id(&self) -> &'static str {
        "fec"
    }

    fn summary(&self) -> &'static str {
        "forward error correction of the path's link, with corrected and uncorrected errors"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        put(snapshot, fec(&context.device_name()?).map_err(missing)?);
        Ok(())
    }

    fn lasts(&self, name: &str) -> bool {
        name == "code"
    }
}

fn put(snapshot: &mut Snapshot, fec: Fec) {
    match fec.code {
        Some(code) => snapshot.put("fec.code", code),
        None => {
            snapshot.lacks("fec.code", "the driver does not report it, or the code is a new one")
        }
    }
    let sums = [("corrected", fec.corrected_blocks), ("uncorrectable", fec.uncorrectable_blocks)];
    for (name, sum) in sums {
        let name = format!("fec.{name}_blocks");
        match sum {
            Some(sum) => snapshot.put(name, sum),
            None => snapshot.lacks(name, "the driver does not count it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_report_is_missing() {
        let mut snapshot = Snapshot::default();
        put(&mut snapshot, Fec { code: Some("RS"), corrected_blocks: Some(3), ..<_>::default() });
        assert_eq!(snapshot.text("fec.code"), Ok("RS"));
        assert_eq!(snapshot.count("fec.corrected_blocks"), Ok(3));
        assert!(snapshot.count("fec.uncorrectable_blocks").is_err());
    }
}
