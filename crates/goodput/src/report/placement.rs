//! The CPUs on which each end's flows ran, if the user chose any.

use goodput_model::{CpuList, End, EndName, Known, Pin, Record};

/// One phrase for each end with chosen CPUs.
pub fn phrases(record: &Record) -> Vec<String> {
    let ends = [(EndName::Near, &record.ends.near), (EndName::Far, &record.ends.far)];
    let asked = ends.into_iter().filter(|(name, _)| *record.plan.pin.of(*name) != Pin::None);
    asked.map(|(name, end)| format!("{name} {}", phrase(end))).collect()
}

fn phrase(end: &Known<End>) -> String {
    let placement = end.value().and_then(|end| end.placement.as_ref());
    let Some(placement) = placement else { return "not reported".into() };
    let (cpus, chosen) = (placement.cpus(), &placement.chosen);
    format!("CPU {} ({chosen})", CpuList(&cpus))
}
