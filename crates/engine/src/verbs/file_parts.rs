//! Disk alone, network alone, and both: which of them limits a file transfer.

use goodput_model::{Bytes, Direction, Known, Length, Plan, Record, SettingRef};

use crate::error::EngineError;
use crate::events::Listener;
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::near::measure::measure_whole;
use crate::result::conclude::conclude;
use crate::verbs::compare::{Arm, CompareRequest, compare};

/// The setting whose values are the two arms, the network alone first.
const SETTING: &str = "storage";
const VALUES: [&str; 2] = ["memory", "files"];

/// Compares runs with the plan's files and from memory to memory, interleaved. Before each run with files, each file is
/// read or written alone, so every block measures every part once. Ignores the arms of `request`.
pub async fn file_parts(
    request: &CompareRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let mut plan = request.plan.clone();
    plan.storage.sink_alone = plan.storage.sink.is_some();
    if plan.length == Length::Source {
        plan.length = whole_source(request, &plan, interrupt, listener).await?;
    }
    let setting: SettingRef =
        SETTING.parse().map_err(|why| EngineError::Flow(format!("{SETTING}: {why}")))?;
    let arms = VALUES.map(|value| Arm(vec![(setting.clone(), value.to_owned())])).to_vec();
    let request = CompareRequest { plan, arms, is_about_parts: true, ..request.clone() };
    let mut record = compare(&request, interrupt, listener).await?;
    record.file_parts = record.comparison.as_ref().map(goodput_experiment::file_parts);
    Ok(record)
}

/// The bytes of all flows if each sends the source once: a run from memory has no other end. A measurement reports this
/// wherever the source is.
async fn whole_source(
    request: &CompareRequest,
    plan: &Plan,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Length, EngineError> {
    let CompareRequest { target, credentials, .. } = request;
    let mut client = Client::connect(target, plan, credentials, interrupt, listener).await?;
    let measured = measure_whole(&mut client, plan, interrupt, listener).await;
    client.leave().await;
    let record = conclude(measured?, &target.text, &request.started)?.record;
    let storage = record.result.directions.first().and_then(|only| only.storage.as_ref());
    let Some(Known::Value(bytes)) = storage.map(|storage| &storage.source_bytes) else {
        let whose = if plan.direction == Direction::Send { "source" } else { "far end's source" };
        let words = format!("the length of the {whose} is unknown; add -n or -t");
        return Err(EngineError::Flow(words));
    };
    Ok(Length::Bytes(Bytes(bytes.saturating_mul(u64::from(plan.flows)))))
}
