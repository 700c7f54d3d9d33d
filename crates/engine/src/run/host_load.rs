//! How busy the whole host is while flows run, at a bounded number of instants.

use std::time::Duration;

use goodput_kernel::Root;
use goodput_model::{HostCpu, Known, MAX_HOST_CPU, Missing};

/// Time between two readings of a short run. The kernel counts in ticks of 10 ms (USER_HZ, proc_stat(5)), so that each CPU
/// has 50 of them in between.
const EVERY: Duration = Duration::from_millis(500);

/// The readings so far, evenly spaced. If there are too many, every second one is dropped, and as many come from then on.
/// They are cumulative, so the load between any two stays the same.
pub struct HostLoad {
    root: Root,
    /// The first reading, or why there are none.
    first: Result<[u64; 4], Missing>,
    kept: Vec<HostCpu>,
    every_s: f64,
}

impl HostLoad {
    /// Begins now, at time zero; reads nothing unless `wanted`.
    pub fn begin(wanted: bool, root: &Root) -> Self {
        let first = match wanted {
            true => goodput_kernel::host_busy(root).map(|(_, since_boot)| since_boot),
            false => Err(Missing::because("observing was switched off")),
        };
        Self {
            root: root.clone(),
            first,
            kept: vec![HostCpu::default()],
            every_s: EVERY.as_secs_f64(),
        }
    }

    /// Reads if it is time; `at_s` is the time since the beginning, seconds.
    pub fn look(&mut self, at_s: f64) {
        let last_s = self.kept.last().map_or(0.0, |last| last.at_s);
        if at_s >= last_s + self.every_s {
            self.read(at_s);
        }
    }

    /// All readings, with a last one now. It takes the place of one before it that is so young that few ticks lie between.
    pub fn end(mut self, at_s: f64) -> Known<Vec<HostCpu>> {
        let is_young = |last: &HostCpu| at_s - last.at_s < self.every_s / 2.0;
        if self.kept.len() > 1 && self.kept.last().is_some_and(is_young) {
            self.kept.pop();
        }
        self.read(at_s);
        self.first.map(|_| self.kept).into()
    }

    fn read(&mut self, at_s: f64) {
        let Ok(first) = &self.first else { return };
        match goodput_kernel::host_busy(&self.root) {
            Ok((cpus, now)) => {
                let grown = |at: usize| now[at].saturating_sub(first[at]);
                let [counted_us, busy_us, softirq_us, steal_us] = [0, 1, 2, 3].map(grown);
                // The ticks of the counters are longer.
                let at_s = (at_s * 1e3).round() / 1e3;
                self.keep(HostCpu { at_s, cpus, counted_us, busy_us, softirq_us, steal_us });
            }
            Err(why) => self.first = Err(why),
        }
    }

    fn keep(&mut self, reading: HostCpu) {
        if self.kept.len() == MAX_HOST_CPU {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every_s *= 2.0;
        }
        self.kept.push(reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(folder: &std::path::Path, user: u64, softirq: u64) {
        let line = format!("{user} 0 0 9 9 0 {softirq} 0 0 0");
        let text = format!("cpu  {line}\ncpu0 {line}\nctxt 1\n");
        std::fs::create_dir_all(folder.join("proc")).unwrap();
        std::fs::write(folder.join("proc/stat"), text).unwrap();
    }

    #[test]
    fn a_long_run_keeps_evenly_spaced_readings_and_its_end() {
        let host = tempfile::tempdir().unwrap();
        stat(host.path(), 1000, 500);
        let mut load = HostLoad::begin(true, &Root::at(host.path()));
        for tenth in 1..=6000_u32 {
            stat(host.path(), 1000 + u64::from(tenth), 500);
            load.look(f64::from(tenth) / 10.0);
        }
        let Known::Value(kept) = load.end(600.04) else { panic!("it can be read") };
        assert!((MAX_HOST_CPU / 2..=MAX_HOST_CPU).contains(&kept.len()), "{}", kept.len());
        assert_eq!((kept[0], kept.last().unwrap().at_s), (HostCpu::default(), 600.04));
        let apart: Vec<f64> = kept.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).collect();
        let [even @ .., end] = &apart[..] else { panic!("there are several") };
        assert!(*end > even[0] / 4.0, "{end} of {even:?}");
        // The newest ones may still have the time of before.
        assert!(even.iter().all(|apart| (apart / even[0] - 1.0).abs() < 0.2), "{even:?}");
        let ticks = kept.last().unwrap().busy_us as f64 / kept[1].busy_us as f64;
        assert!((ticks - 6000.0 / (kept[1].at_s * 10.0)).abs() < 1.0, "{ticks}");
        assert!(kept.iter().all(|one| one.softirq_us == 0), "only what has grown since the start");
    }

    #[test]
    fn what_is_not_wanted_or_cant_be_read_has_its_reason() {
        let host = tempfile::tempdir().unwrap();
        let unwanted = HostLoad::begin(false, &Root::at(host.path()));
        assert_eq!(unwanted.end(1.0), Known::missing("observing was switched off"));
        stat(host.path(), 1, 1);
        let mut load = HostLoad::begin(true, &Root::at(host.path()));
        std::fs::remove_file(host.path().join("proc/stat")).unwrap();
        load.look(0.7);
        stat(host.path(), 2, 2);
        assert!(matches!(load.end(1.0), Known::Missing(why) if why.missing.contains("stat")));
    }
}
