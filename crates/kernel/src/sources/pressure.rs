//! How long tasks of this host waited for CPU, memory and disks (/proc/pressure; Linux 4.20 and
//! later, if pressure stall information is switched on).

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::parse::pressure;

/// Each file with its name for messages. For the CPU of the whole host, "full" is always 0
/// (Documentation/accounting/psi.rst), so it is not recorded.
const FILES: [(&str, &str, &str, bool); 3] = [
    ("cpu", "proc/pressure/cpu", "/proc/pressure/cpu", false),
    ("memory", "proc/pressure/memory", "/proc/pressure/memory", true),
    ("io", "proc/pressure/io", "/proc/pressure/io", true),
];

pub(super) struct PressureSource;

impl Source for PressureSource {
    fn id(&self) -> &'static str {
        "pressure"
    }

    fn summary(&self) -> &'static str {
        "time in which some or all tasks waited for CPU, memory or disks"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.root.readable("proc/pressure/cpu")
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        for (resource, file, name, full) in FILES {
            let text = context.root.read(file);
            match text.and_then(|text| Ok(pressure::parse(name, &text)?)) {
                Ok(pressure) => {
                    snapshot.put(format!("pressure.{resource}_some_us"), pressure.some_us);
                    if let Some(us) = pressure.full_us.filter(|_| full) {
                        snapshot.put(format!("pressure.{resource}_full_us"), us);
                    }
                }
                Err(why) => snapshot.lacks(format!("pressure.{resource}"), why.to_string()),
            }
        }
        Ok(())
    }
}
