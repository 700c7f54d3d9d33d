//! `goodput ceiling`: computes how fast a path could be at best.

mod series;

use anyhow::{Result, bail};
use goodput_engine::{CeilingFacts, CeilingRequest};
use goodput_model::record::FORMAT_VERSION;
use goodput_model::{CeilingInputs, CeilingReport, CeilingUnread, Transport};

use crate::args::{CeilingArgs, asks_for_something, with_defaults};
use crate::exit::Exit;
use crate::json_text;
use crate::{report, screen};

/// Computes and reports.
pub fn run(args: &CeilingArgs) -> Result<Exit> {
    if let Some(text) = &args.question.fit {
        return fit(text, args.question.json);
    }
    let report = computed(args)?;
    if args.question.json {
        screen::line(json_text::indented(&report)?)?;
    } else {
        screen::print_fitted(&report::ceiling::text(&report))?;
    }
    Ok(match (report.doubts.is_empty(), is_answered(&report)) {
        (false, _) => Exit::Problem,
        (true, true) => Exit::Fine,
        (true, false) => Exit::CouldNot,
    })
}

/// Whether the report has a ceiling, or the fate of a burst, which has no rate.
fn is_answered(report: &CeilingReport) -> bool {
    let mut lines = report.bounds.iter().flat_map(|bound| &bound.lines);
    report.ceiling_bits_per_s.value().is_some()
        || report.inputs.burst_frames.is_some() && lines.any(|line| line.unit == "frames")
}

fn computed(args: &CeilingArgs) -> Result<CeilingReport> {
    let question = &args.question;
    let Read { inputs, read, unread } = inputs(args)?;
    let inputs = CeilingInputs {
        transfer_bytes: question.bytes.map(|bytes| bytes.0),
        ..with_defaults(inputs)
    };
    if !asks_for_something(&inputs) && unread.is_empty() {
        bail!(
            "too little was given to compute a ceiling; give --link RATE, --window with --rtt, --loss with --rtt, \
             --bus, --packet-rate, --hz with --poll-burst, --ring with --drain-gap, or --here DEVICE"
        );
    }
    let ceiling = goodput_ceiling::ceiling(&inputs);
    let doubts = question.measured.map(|measured| ceiling.doubts(measured)).unwrap_or_default();
    Ok(CeilingReport {
        format: FORMAT_VERSION,
        limit: ceiling.lowest().map(|(bound, _)| bound.id.clone()).into(),
        ceiling_bits_per_s: ceiling.rate(),
        transfer_s: inputs.transfer_bytes.and_then(|bytes| ceiling.transfer_s(bytes)),
        measured_bits_per_s: question.measured,
        bounds: ceiling.bounds,
        inputs,
        read,
        unread,
        doubts,
    })
}

/// Inputs, and their sources.
#[derive(Default)]
struct Read {
    inputs: CeilingInputs,
    read: Vec<String>,
    unread: Vec<CeilingUnread>,
}

fn inputs(args: &CeilingArgs) -> Result<Read> {
    let typed = args.inputs.inputs();
    let question = &args.question;
    if question.here.is_none() && question.to.is_none() {
        return Ok(Read { inputs: typed, ..Read::default() });
    }
    let request = CeilingRequest {
        device: question.here.clone(),
        to: question.to.as_deref().map(str::parse).transpose()?,
        family: args.inputs.family(),
        tcp: typed.transport != Some(Transport::Udp),
        rtt: typed.rtt_us.is_none(),
    };
    let CeilingFacts { inputs, read, unread } = goodput_engine::ceiling_facts(&request)?;
    let given = serde_json::to_value(&typed)?;
    let untyped = |input: &str| given.get(input).is_none();
    let read = read.into_iter().filter(|(input, _)| untyped(input)).map(|(_, text)| text);
    let unread = unread.into_iter().filter(|(input, _)| untyped(input)).map(|(_, one)| one);
    Ok(Read { read: read.collect(), unread: unread.collect(), inputs: over(typed, inputs) })
}

/// The typed inputs, completed by those that were read.
fn over(typed: CeilingInputs, read: CeilingInputs) -> CeilingInputs {
    let (same_tunnels, same_bus) = (typed.tunnels.is_empty(), typed.bus.is_none());
    let ring = read.ring_frames.filter(|_| typed.room_bytes.is_none());
    CeilingInputs {
        family: typed.family.or(read.family),
        mtu_bytes: typed.mtu_bytes.or(read.mtu_bytes),
        tcp_option_bytes: typed.tcp_option_bytes.or(read.tcp_option_bytes),
        tunnel_mtu_bytes: typed.tunnel_mtu_bytes.or(read.tunnel_mtu_bytes.filter(|_| same_tunnels)),
        tunnels: if same_tunnels { read.tunnels } else { typed.tunnels },
        vlan_tags: typed.vlan_tags.or(read.vlan_tags),
        link_bits_per_s: typed.link_bits_per_s.or(read.link_bits_per_s),
        half_duplex: typed.half_duplex.or(read.half_duplex),
        shaper_bits_per_s: typed.shaper_bits_per_s.or(read.shaper_bits_per_s),
        window_bytes: typed.window_bytes.or(read.window_bytes),
        rtt_us: typed.rtt_us.or(read.rtt_us),
        loss_model: typed.loss_model.or(read.loss_model),
        bus: if same_bus { read.bus } else { typed.bus },
        ring_frames: typed.ring_frames.or(ring),
        ..typed
    }
}

fn fit(text: &str, json: bool) -> Result<Exit> {
    let points = series::read(text)?;
    let fitted =
        goodput_ceiling::fit(&points).map_err(|why| anyhow::anyhow!("--fit: {text:?}: {why}"))?;
    if json {
        screen::line(json_text::indented(&fitted)?)?;
    } else {
        screen::print_fitted(&report::ceiling::fit(&fitted))?;
    }
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_counts_before_what_was_read() {
        let read = CeilingInputs {
            mtu_bytes: Some(1500),
            tunnels: vec!["vxlan".into()],
            tunnel_mtu_bytes: Some(1450),
            ring_frames: Some(256),
            window_bytes: Some(1),
            ..CeilingInputs::default()
        };
        let typed = CeilingInputs {
            mtu_bytes: Some(9000),
            tunnels: vec!["vxlan6".into()],
            room_bytes: Some(5000),
            ..CeilingInputs::default()
        };
        let both = over(typed, read);
        assert_eq!((both.mtu_bytes, both.window_bytes), (Some(9000), Some(1)));
        assert_eq!((both.tunnels, both.tunnel_mtu_bytes), (vec!["vxlan6".to_string()], None));
        assert_eq!((both.ring_frames, both.room_bytes), (None, Some(5000)));
    }
}
