//! How the path's device is polled after an interrupt (/sys/class/net/*; Documentation/networking/napi.rst). Busy
//! polling belongs to the settings, in the area `sysctl`.

use goodput_model::{Missing, Snapshot};

use super::Source;
use crate::Context;
use crate::device::directory;

pub(super) struct Napi;

impl Source for Napi {
    fn id(&self) -> &'static str {
        "napi"
    }

    fn summary(&self) -> &'static str {
        "how the path's device is polled: by thread or softirq, and when interrupts return"
    }

    fn can_run(&self, context: &Context) -> Result<(), Missing> {
        context.device_name().map(drop)
    }

    fn snapshot(&self, context: &Context, snapshot: &mut Snapshot) -> Result<(), Missing> {
        let directory = directory(context)?;
        let numbers = [
            ("gro_flush_timeout_ns", "gro_flush_timeout"),
            ("defer_hard_irqs", "napi_defer_hard_irqs"),
            ("threaded", "threaded"),
        ];
        for (name, file) in numbers {
            let name = format!("napi.{name}");
            let text = context.root.read_if_there(&format!("{directory}/{file}"));
            match text.map(|text| text.map(|text| text.trim().parse::<u64>())) {
                Ok(Some(Ok(value))) => snapshot.put(name, value),
                Ok(Some(Err(_))) => snapshot.lacks(name, "not a number"),
                Ok(None) => snapshot.lacks(name, "this kernel does not have it"),
                Err(why) => snapshot.lacks(name, why.to_string()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Root;

    #[test]
    fn what_an_older_kernel_lacks_is_missing() {
        let host = tempfile::tempdir().unwrap();
        let lo = host.path().join("sys/class/net/lo");
        std::fs::create_dir_all(&lo).unwrap();
        for (file, text) in [
            ("ifindex", "1\n"),
            ("address", "00:00:00:00:00:00\n"),
            ("gro_flush_timeout", "20000\n"),
        ] {
            std::fs::write(lo.join(file), text).unwrap();
        }
        let context =
            Context { root: Root::at(host.path()), device: Some("lo".into()), ..<_>::default() };
        let mut snapshot = Snapshot::default();
        Napi.snapshot(&context, &mut snapshot).unwrap();
        assert_eq!(snapshot.count("napi.gro_flush_timeout_ns"), Ok(20_000));
        assert!(snapshot.count("napi.threaded").is_err());
    }
}
