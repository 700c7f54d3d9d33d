//! What can be wrong on a drawn path: one row per class. A row lists which rules name the fault, where it sits, and
//! whether a setting removes it; its function draws its strength, or gives up if the path does not fit.
//!
//! A class is drawn over its whole range. The cost of a fault is measured beside its healthy twin, so a fault that
//! costs nothing is no failure of the diagnosis.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;

use super::path::{Path, between};
use super::scene::{Scene, bits, micros};

/// A class of faults.
pub struct Class {
    /// Kebab-case; the first part of a case's name.
    pub id: &'static str,
    /// What is wrong, in one sentence.
    pub title: &'static str,
    /// The rules that name the fault.
    pub rules: &'static [&'static str],
    /// Where it sits.
    pub spot: Spot,
    /// Whether a setting of one of the hosts removes the fault.
    pub fixable: bool,
    /// Plants the fault, and gives the healthy twin what it needs for a fair comparison, such as a shaper of the same
    /// rate. `None` if the fault can't be on this path.
    pub plant: fn(&mut Xoshiro256PlusPlus, &Path, &mut Twins) -> Option<()>,
}

/// A path with a fault, and the same path without it.
#[derive(Debug)]
pub struct Twins {
    /// With the fault.
    pub faulty: Scene,
    /// Without it.
    pub healthy: Scene,
}

impl Twins {
    /// Puts a router between the hosts of both: a hop costs CPU time, too.
    fn route(&mut self) {
        self.faulty.route();
        self.healthy.route();
    }
}

/// Where a fault sits, relative to the direction of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// The host that sends.
    Sender,
    /// The host that receives.
    Receiver,
    /// Between them.
    Path,
    /// Not judged.
    Either,
}

impl Spot {
    /// Where a scenario says that a limit sits, depending on whether the far host sends; `None` if that is not judged.
    pub fn end(self, reverse: bool) -> Option<&'static str> {
        match (self, reverse) {
            (Self::Path, _) => Some("path"),
            (Self::Sender, false) | (Self::Receiver, true) => Some("near"),
            (Self::Sender, true) | (Self::Receiver, false) => Some("far"),
            (Self::Either, _) => None,
        }
    }
}

/// Every class.
pub const ALL: &[Class] = &[
    Class {
        id: "random-loss",
        title: "The path loses single packets.",
        rules: &["path-loss", "rto-bound"],
        spot: Spot::Path,
        fixable: false,
        plant: random_loss,
    },
    Class {
        id: "loss-in-runs",
        title: "The path loses packets in runs.",
        rules: &["path-loss", "rto-bound"],
        spot: Spot::Path,
        fixable: false,
        plant: loss_in_runs,
    },
    Class {
        id: "policer",
        title: "A router drops what is above its rate.",
        rules: &["policer"],
        spot: Spot::Path,
        fixable: false,
        plant: policer,
    },
    Class {
        id: "short-queue",
        title: "The queue before the bottleneck is a small part of a round trip.",
        rules: &["queue-too-short", "policer", "congestion-control"],
        spot: Spot::Either,
        fixable: false,
        plant: short_queue,
    },
    Class {
        id: "reordering",
        title: "Packets overtake each other on the path.",
        rules: &["reordering"],
        spot: Spot::Path,
        fixable: false,
        plant: reordering,
    },
    Class {
        id: "narrow-way-back",
        title: "Acknowledgements wait on a narrow way back.",
        rules: &["ack-path"],
        spot: Spot::Path,
        fixable: false,
        plant: narrow_way_back,
    },
    Class {
        id: "congestion-marks",
        title: "A router marks packets although nothing waits.",
        rules: &["ecn-marking"],
        spot: Spot::Path,
        fixable: false,
        plant: congestion_marks,
    },
    Class {
        id: "small-bucket",
        title: "The sender's own token bucket holds too little for its rate.",
        rules: &["shaper-burst"],
        spot: Spot::Sender,
        fixable: true,
        plant: small_bucket,
    },
    Class {
        id: "low-shaper",
        title: "The sender's own shaper has a lower rate than the path.",
        rules: &["shaper-rate"],
        spot: Spot::Sender,
        fixable: false,
        plant: low_shaper,
    },
    Class {
        id: "slow-class",
        title: "The sender's flows fall into the slow class of its shaper.",
        rules: &["wrong-class"],
        spot: Spot::Sender,
        fixable: false,
        plant: slow_class,
    },
    Class {
        id: "short-own-queue",
        title: "The queue of the sender's own shaper is a small part of a round trip.",
        rules: &["queue-too-short", "local-drop"],
        spot: Spot::Sender,
        fixable: true,
        plant: short_own_queue,
    },
    Class {
        id: "small-receive-buffer",
        title: "The receiver's buffer may not grow to what the round trip needs.",
        rules: &["receive-window"],
        spot: Spot::Receiver,
        fixable: true,
        plant: small_receive_buffer,
    },
    Class {
        id: "small-send-buffer",
        title: "The sender's buffer may not grow to what the round trip needs.",
        rules: &["send-buffer"],
        spot: Spot::Sender,
        fixable: true,
        plant: small_send_buffer,
    },
    Class {
        id: "route-window",
        title: "A window metric on the receiver's route keeps its window small.",
        rules: &["route-window"],
        spot: Spot::Receiver,
        fixable: true,
        plant: route_window,
    },
    Class {
        id: "no-window-scaling",
        title: "A host does not offer window scaling.",
        rules: &["window-scaling-off"],
        spot: Spot::Receiver,
        fixable: true,
        plant: no_window_scaling,
    },
    Class {
        id: "offload-off",
        title: "The sender's device may not cut segments.",
        rules: &["offload-off"],
        spot: Spot::Sender,
        fixable: true,
        plant: offload_off,
    },
    Class {
        id: "oversize-drop",
        title: "A router drops super-packets.",
        rules: &["tso-oversize"],
        spot: Spot::Path,
        fixable: true,
        plant: oversize_drop,
    },
    Class {
        id: "few-cpu",
        title: "goodput may use only a small part of one CPU of a host.",
        rules: &["cpu-quota"],
        spot: Spot::Sender,
        fixable: false,
        plant: few_cpu,
    },
    Class {
        id: "capped-pacing",
        title: "The sending sockets are capped below the path's rate.",
        rules: &["pacing-cap"],
        spot: Spot::Sender,
        fixable: false,
        plant: capped_pacing,
    },
    Class {
        id: "asked-rate",
        title: "The sending program has less to send than the path carries.",
        rules: &["sender-application"],
        spot: Spot::Sender,
        fixable: false,
        plant: asked_rate,
    },
    Class {
        id: "link-flap",
        title: "The link goes down again and again.",
        rules: &["link-flap"],
        spot: Spot::Either,
        fixable: false,
        plant: link_flap,
    },
];

type Rng = Xoshiro256PlusPlus;

fn sender(path: &Path) -> &'static str {
    if path.reverse { "far" } else { "near" }
}

fn receiver(path: &Path) -> &'static str {
    if path.reverse { "near" } else { "far" }
}

fn percent(share: f64) -> String {
    format!("{:.4}%", share * 100.0)
}

fn bytes(count: f64) -> String {
    format!("{count:.0}")
}

/// A path that can have data in flight: with a rate and a round trip.
fn long(path: &Path) -> Option<(f64, f64)> {
    let rate = path.rate.filter(|_| path.round_trip_s > 0.0)?;
    Some((rate, path.flight_bytes()))
}

/// A path with so much in flight that a smaller window is a real fault: 16 segments a flow.
fn needs_window(path: &Path) -> Option<f64> {
    const SEGMENT_BYTES: f64 = 1448.0;
    let per_flow = path.flight_bytes() / f64::from(path.flows);
    (per_flow >= 16.0 * SEGMENT_BYTES).then_some(per_flow)
}

fn random_loss(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    long(path)?;
    twins.faulty.link("loss", &percent(between(rng, 0.000_1, 0.05)));
    Some(())
}

fn loss_in_runs(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    long(path)?;
    twins.faulty.link("loss", &percent(between(rng, 0.000_2, 0.05)));
    twins.faulty.link_number("loss_run", rng.random_range(2.0..8.0));
    Some(())
}

fn policer(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let rate = path.rate.filter(|_| !path.reverse)?;
    twins.route();
    let (rate, burst) = (rate * rng.random_range(0.2..0.8), between(rng, 5.0, 500.0));
    twins.faulty.fault(
        "policer",
        "router",
        [("rate", bits(rate).into()), ("burst", (burst as i64).into())],
    );
    Some(())
}

fn short_queue(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let (_, flight) = long(path)?;
    twins.faulty.link("queue", &bytes((flight * between(rng, 0.02, 0.3)).max(3_100.0)));
    Some(())
}

fn reordering(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    long(path)?;
    twins.faulty.link("reorder", &percent(between(rng, 0.001, 0.2)));
    twins.faulty.link("displace", &micros(path.round_trip_s * between(rng, 0.05, 1.5)));
    Some(())
}

fn narrow_way_back(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    // An acknowledgement of 66 bytes for two segments of 1514: at a 46th of the rate or less it waits.
    let (rate, _) = long(path)?;
    twins.faulty.rate_of_acknowledgements(rate / between(rng, 50.0, 800.0));
    Some(())
}

fn congestion_marks(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    long(path).filter(|_| path.congestion != "bbr")?;
    twins.faulty.link("mark", &percent(between(rng, 0.000_1, 0.05)));
    let value = || [("name", "net.ipv4.tcp_ecn".into()), ("value", "1".into())];
    twins.faulty.fault("sysctl", "near", value());
    twins.faulty.fault("sysctl", "far", value());
    Some(())
}

fn token_bucket(scene: &mut Scene, host: &str, rate: f64, burst: f64, limit: f64) {
    scene.fault("tbf", host, bucket(rate, burst, limit));
}

/// Gives the sender a shaper of its own at four fifths of the path's rate, with a fitting bucket and queue. The change of
/// its rate by `percent`, as `goodput compare` takes it; `None` if the far host sends, or the path has no rate.
pub fn shaped(path: &Path, scene: &mut Scene, percent: f64) -> Option<String> {
    let rate = path.rate.filter(|_| !path.reverse)? * 0.8;
    let queue = fitting_queue(rate, path.round_trip_s);
    // Otherwise the lab adds a router where it has to, and the sender's device is named after its neighbour.
    scene.route_by_cable();
    token_bucket(scene, sender(path), rate, fitting_burst(rate), queue);
    let less = rate * (1.0 - percent / 100.0);
    Some(format!("qdisc.tbf.rate@to-router={},{}", bits(rate), bits(less)))
}

fn bucket(rate: f64, burst: f64, limit: f64) -> [(&'static str, toml::Value); 3] {
    [("rate", bits(rate).into()), ("burst", bytes(burst).into()), ("limit", bytes(limit).into())]
}

/// Bits per second of a rate like `50mbit`.
fn rate_of(text: &str) -> Option<f64> {
    let units = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
    let in_unit =
        |(unit, bits): (&str, f64)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * bits);
    units.into_iter().find_map(in_unit)
}

/// A bucket that outlasts the timers of any kernel: 10 ms of the rate, bytes.
fn fitting_burst(rate: f64) -> f64 {
    (rate / 8.0 * 0.01).max(16_000.0)
}

/// A queue that keeps a shaper busy after a loss: a round trip, but at least 100 ms, bytes.
fn fitting_queue(rate: f64, round_trip_s: f64) -> f64 {
    (rate / 8.0 * round_trip_s.max(0.1)).max(128_000.0)
}

fn small_bucket(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let rate = match path.rate {
        Some(rate) => rate * rng.random_range(0.5..1.0),
        None => between(rng, 5e8, 3e9),
    };
    let limit = (path.flight_bytes() * 2.0).max(1e6);
    token_bucket(&mut twins.faulty, sender(path), rate, between(rng, 1_600.0, 6_000.0), limit);
    token_bucket(&mut twins.healthy, sender(path), rate, fitting_burst(rate), limit);
    Some(())
}

fn low_shaper(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let rate = match path.rate {
        Some(rate) => rate * rng.random_range(0.1..0.8),
        None => between(rng, 1e6, 5e8),
    };
    token_bucket(
        &mut twins.faulty,
        sender(path),
        rate,
        fitting_burst(rate),
        fitting_queue(rate, path.round_trip_s),
    );
    Some(())
}

fn slow_class(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let rate = path.rate.unwrap_or(1e9);
    let slow = rate * rng.random_range(0.05..0.8);
    let more = [
        ("rate", bits(rate).into()),
        ("default_rate", bits(slow).into()),
        ("burst", bytes((rate / 8.0 * 0.002).max(16_000.0)).into()),
    ];
    twins.faulty.fault("htb", sender(path), more);
    Some(())
}

fn short_own_queue(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let (rate, flight) = long(path)?;
    let rate = rate * rng.random_range(0.5..0.95);
    let limit = (flight * between(rng, 0.02, 0.2)).max(4_600.0);
    token_bucket(&mut twins.faulty, sender(path), rate, fitting_burst(rate), limit);
    token_bucket(
        &mut twins.healthy,
        sender(path),
        rate,
        fitting_burst(rate),
        fitting_queue(rate, path.round_trip_s),
    );
    Some(())
}

fn small_receive_buffer(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let most = (needs_window(path)? * between(rng, 0.2, 1.2)).max(4_096.0);
    let value = format!("4096 {:.0} {most:.0}", most.min(65_536.0));
    let more = [("name", "net.ipv4.tcp_rmem".into()), ("value", value.into())];
    twins.faulty.fault("sysctl", receiver(path), more);
    Some(())
}

fn small_send_buffer(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let most = (needs_window(path)? * between(rng, 0.2, 1.2)).max(4_608.0);
    let value = format!("4096 {:.0} {most:.0}", most.min(16_384.0));
    let more = [("name", "net.ipv4.tcp_wmem".into()), ("value", value.into())];
    twins.faulty.fault("sysctl", sender(path), more);
    Some(())
}

fn route_window(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let window = needs_window(path)? * between(rng, 0.05, 0.5);
    twins.faulty.fault("route-window", receiver(path), [("window", bytes(window).into())]);
    Some(())
}

fn no_window_scaling(_: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    needs_window(path).filter(|window| *window > 65_535.0)?;
    let more = [("name", "net.ipv4.tcp_window_scaling".into()), ("value", "0".into())];
    twins.faulty.fault("sysctl", receiver(path), more);
    Some(())
}

fn offload_off(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    path.rate.is_none().then_some(())?;
    let name = *["tso", "tx-checksum", "sg"].choose(rng)?;
    twins.faulty.fault("offload", sender(path), [("name", name.into()), ("value", "off".into())]);
    Some(())
}

/// A fault's kind and parameters: each packet is one segment.
fn single_segments() -> (&'static str, [(&'static str, toml::Value); 2]) {
    ("offload", [("name", "tso".into()), ("value", "off".into())])
}

/// What the best setting leaves of a scenario's fault; `None` if nothing.
pub fn mended(fault: &toml::Value) -> Option<toml::Value> {
    let text = |key: &str| fault.get(key).and_then(toml::Value::as_str);
    let mut table = toml::Table::new();
    let (kind, host) = match text("kind")? {
        "oversize" => {
            let (kind, single) = single_segments();
            table.extend(single.map(|(key, value)| (key.to_owned(), value)));
            (kind, "near")
        }
        "tbf" => {
            let rate = rate_of(text("rate")?)?;
            let limit = fitting_queue(rate, 0.0);
            table.extend(bucket(rate, fitting_burst(rate), limit).map(|(k, v)| (k.to_owned(), v)));
            ("tbf", text("host")?)
        }
        _ => return None,
    };
    table.extend([("kind".into(), kind.into()), ("host".into(), host.into())]);
    Some(table.into())
}

fn oversize_drop(_: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    (path.rate.is_none() && !path.reverse).then_some(())?;
    twins.route();
    twins.faulty.fault("oversize", "router", [("bytes", 1_500.into())]);
    // No setting of a host makes the router let super-packets through.
    let (_, single) = single_segments();
    twins.healthy.fault("offload", sender(path), single);
    // Which costs CPU time: on a path this fast that may well be the limit.
    twins.healthy.may_be("offload-off");
    Some(())
}

fn few_cpu(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    path.rate.is_none_or(|rate| rate > 1e8).then_some(())?;
    let share = between(rng, 0.01, 0.2);
    twins.faulty.fault("cpu-quota", sender(path), [("percent", percent(share).into())]);
    Some(())
}

fn capped_pacing(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    let per_flow = path.rate? / f64::from(path.flows);
    twins.faulty.client(&["--max-pacing", &bits(per_flow * rng.random_range(0.1..0.8))]);
    Some(())
}

fn asked_rate(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    twins.faulty.client(&["--rate", &bits(path.rate? * rng.random_range(0.1..0.8))]);
    Some(())
}

fn link_flap(rng: &mut Rng, path: &Path, twins: &mut Twins) -> Option<()> {
    long(path)?;
    // Only a cable loses its carrier; then the host at its end counts that.
    twins.faulty.route_by_cable();
    twins.healthy.route_by_cable();
    let every_s = between(rng, 0.6, 1.5);
    let more = [
        ("every", micros(every_s).into()),
        ("lasts", micros(every_s * rng.random_range(0.1..0.4)).into()),
    ];
    twins.faulty.fault("link-flap", "router", more);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_setting_leaves_a_shaper_its_rate_and_a_host_its_single_segments() {
        let fault = |text: &str| text.parse::<toml::Table>().unwrap().into();
        let shaper =
            mended(&fault("kind='tbf'\nhost='near'\nrate='2gbit'\nburst='1600'\nlimit='1M'"));
        let shaper = shaper.unwrap();
        let value = |key: &str| shaper[key].as_str();
        assert_eq!((value("host"), value("kind")), (Some("near"), Some("tbf")));
        assert_eq!(shaper["rate"], bits(2e9).into());
        assert_eq!(shaper["burst"], bytes(2.5e6).into());
        let single = mended(&fault("kind='oversize'\nhost='router'\nbytes=1500")).unwrap();
        assert_eq!(single["name"].as_str(), Some("tso"));
        assert!(mended(&fault("kind='sysctl'\nhost='near'")).is_none());
    }
}
