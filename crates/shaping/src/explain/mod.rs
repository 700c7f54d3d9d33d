//! Why a shaper gives what it gives: the settings of the sending host's queueing discipline, compared with what was measured.

mod bucket;
#[cfg(test)]
mod cake_tests;
mod captured_bursts;
mod causes;
#[cfg(test)]
mod class_tests;
mod downstream;
#[cfg(test)]
mod joined_tests;
mod late_timers;
mod local;
#[cfg(test)]
mod meanwhile_tests;
mod other_traffic;
mod queue;
mod rates;
mod remedy;
mod reset;
#[cfg(test)]
mod reset_tests;
mod resized;
mod sender;
mod short;
#[cfg(test)]
pub(crate) mod tests;
mod timers;
mod tree;

pub(crate) use local::{ceil, is_set_otherwise, parents, used_class};
pub use other_traffic::other_traffic;
pub(crate) use rates::above_parent;
pub(crate) use remedy::{LIMIT, at};
pub(crate) use resized::is_bucket;
pub use sender::{Sender, TcpLimit};
pub use timers::{Timers, Watched};

use goodput_ceiling::counting;
use goodput_model::{
    Bytes, Change, Confirmation, CountedLayer, EnoughBucket, Estimate, Known, LocalShaper, Missing,
    QueueDiscipline, Shaping, ShapingCause, ShapingKind, ShapingTest, Snapshot,
};

use crate::changed::changed;
use crate::judge::confirmation;
use crate::kind::waited_for_rate;
use crate::others::{OtherTraffic, Others};
use crate::{Configured, Counts};

/// Largest difference between two rates that may be an error of measurement, as a share.
const ACCURACY: f64 = 0.005;

/// What the shaper counts that has the `configured` rate, if it is at the sender and so can be read; `packet` is an IP
/// packet of TCP, bytes, and the train one that is measured in the same counts.
#[must_use]
pub fn counts(
    sender: &Sender,
    configured: &Configured,
    packet: f64,
    train: Option<&Shaping>,
) -> Option<Counts> {
    let shaper = read(sender, packet).ok()?;
    let off_percent = (shaper.rate_bits_per_s.0 / configured.rate.0 - 1.0).abs() * 100.0;
    if off_percent > configured.tolerance_percent {
        return None;
    }
    let (layer, tcp) = (layer_of(&shaper, packet), shaper.counted_frame_bytes.0 as f64);
    let tcp_least =
        bucket::least_for_segment(sender, &shaper).map_or(tcp, |least| least.bytes.min(tcp));
    let alone = |train: &Shaping| local::counts_for(sender, &shaper, train.frame_bytes.0 as f64);
    let (alone, train, train_least) = train.map_or((tcp, tcp, tcp), |train| {
        let own = local::counts_for_datagram(sender, &shaper, train);
        (alone(train), own, local::least_for_datagram(sender, &shaper, train).min(own))
    });
    Some(match layer {
        // What a table or a division leaves over is less than a byte.
        Some(layer) if tcp - tcp_least < 1.0 && alone - train_least < 1.0 => layer.into(),
        _ => Counts::AsSet { train, train_least, tcp, tcp_least, layer },
    })
}

/// A train that a policer behind the own shaper dropped bursts of, although it is the faster one: its rate, of the times in
/// which it dropped, is none that came. The own shaper counts its waits.
#[must_use]
pub fn held_first(mut train: Shaping, sender: &Sender, configured: &Configured) -> Shaping {
    let tolerance = configured.tolerance_percent / 100.0;
    let set = read(sender, train.packet_bytes.0 as f64).ok();
    let rates = set.map(|shaper| shaper.rate_bits_per_s.0).zip(train.rate_bits_per_s.value());
    let is_slower = rates.is_some_and(|(set, seen)| set < seen.low * (1.0 - tolerance));
    if train.kind == ShapingKind::Policer
        && waited_for_rate(&train.rate_waits_per_call)
        && is_slower
    {
        train.rate_bits_per_s = Known::Missing(Missing::because(
            "behind the shaper, a policer of a higher rate drops a part of each burst",
        ));
    }
    train
}

/// What the shaper at the sender counts, whatever its rate is; `packet` is an IP packet, bytes.
pub(crate) fn counted_layer(sender: &Sender, packet: f64) -> Option<CountedLayer> {
    layer_of(&read(sender, packet).ok()?, packet)
}

/// Why there is no shaper at the sender; `None` if there is one.
pub(crate) fn shaper_missing(sender: &Sender) -> Option<String> {
    let (_, packet) = sender.segment.clone().unwrap_or_default();
    read(sender, packet).err().map(|why| why.to_string())
}

fn read(sender: &Sender, packet: f64) -> Result<LocalShaper, Missing> {
    local::shaper(sender, packet + CountedLayer::Frame.extra_bytes())
}

fn layer_of(shaper: &LocalShaper, packet: f64) -> Option<CountedLayer> {
    let extra = shaper.counted_frame_bytes.0 as f64 - packet;
    CountedLayer::ALL.into_iter().find(|layer| layer.extra_bytes() == extra)
}

/// Adds to a test what explains it.
#[must_use]
pub fn explain(test: ShapingTest, sender: Result<Sender<'_>, Missing>) -> ShapingTest {
    let sender = match sender {
        Ok(sender) => sender,
        Err(why) => {
            let (shaper, enough_bucket) = (Known::Missing(why.clone()), Known::Missing(why));
            return ShapingTest { shaper, enough_bucket, ..test };
        }
    };
    if let Some(how) = changed(&looks(&sender)) {
        return of_changed(test, &how);
    }
    let frame = frame_bytes(&test, &sender);
    let shaper = frame.clone().and_then(|frame| local::shaper(&sender, frame));
    let test = within_limit(with_counted_kind(test, &sender, &shaper), &shaper);
    let lost_behind = downstream::lost_behind(&Seen::of(&test, &sender, &shaper));
    let test = downstream::without_losses_of_others(test, lost_behind);
    let enough = frame.and_then(|frame| match shaper.as_ref().ok() {
        Some(shaper) if shaper.kind == "cake" => {
            Err(Missing::because("cake has no bucket: it counts when the next packet may leave"))
        }
        None => match test.train.value().filter(|train| train.kind == ShapingKind::None) {
            Some(_) => Err(no_rate_held(&test)),
            None => Ok(bucket::enough(&test, &sender, None, frame)),
        },
        shaper => Ok(bucket::enough(&test, &sender, shaper, frame)),
    });
    let seen = Seen { enough: enough.as_ref().ok(), ..Seen::of(&test, &sender, &shaper) };
    let (causes, mut changes) = (causes::all(&seen), remedy::changes(&seen));
    let (commands, networkd) =
        (remedy::commands(&seen, &changes), remedy::networkd(&seen, &changes));
    if seen.sender.router.is_some() {
        // A setting is one of the ends.
        changes.clear();
    }
    let (shaper, enough_bucket) = (shaper.into(), enough.into());
    ShapingTest { causes, changes, commands, networkd, shaper, enough_bucket, ..test }
}

/// Why no bucket is worked out if the train met no limit.
fn no_rate_held(test: &ShapingTest) -> Missing {
    Missing::because(match test.is_unheld() {
        true => "nothing holds the rate",
        false => "whether anything holds the rate is unknown",
    })
}

/// The facts of the shaper's place, the earliest first.
fn looks<'a>(sender: &Sender<'a>) -> Vec<&'a Snapshot> {
    let train = sender.around_train.map(|around| [around.sender.before, around.sender.after]);
    train.into_iter().flatten().chain([sender.before, sender.after]).collect()
}

/// A test of a shaper that someone changed meanwhile: what was measured is of neither setting.
fn of_changed(test: ShapingTest, how: &str) -> ShapingTest {
    let why = Missing::because("it was changed meanwhile");
    ShapingTest {
        confirmation: Confirmation::Inconclusive,
        reasons: vec![format!("{how}: it was changed while it was measured; test again")],
        shaper: Known::Missing(why.clone()),
        enough_bucket: Known::Missing(why),
        ..test
    }
}

/// A test whose datagrams were dropped above the rate without waiting, as by a policer, but by a shaper that was read: its
/// queue is so short that almost nothing waits, and it counts its waits. If another rate came through than the one that it
/// is set to, something else dropped them.
fn with_counted_kind(
    mut test: ShapingTest,
    sender: &Sender,
    shaper: &Result<LocalShaper, Missing>,
) -> ShapingTest {
    let seen = Seen::of(&test, sender, shaper);
    let is_own = |train: &Shaping| {
        train.kind == ShapingKind::Policer
            && waited_for_rate(&train.rate_waits_per_call)
            && seen.gives_what_is_set()
    };
    if seen.train().is_some_and(is_own)
        && let Known::Value(train) = &mut test.train
    {
        train.kind = ShapingKind::Shaper;
        train.queue = Known::missing(
            "it is so short that almost nothing waited: the shaper counts its waits",
        );
    }
    test
}

/// The test without a contradiction between what waited and the limit of the queue that was read: what is measured to wait is off by
/// a little, and a queue in which as much waits as it holds was full.
fn within_limit(mut test: ShapingTest, shaper: &Result<LocalShaper, Missing>) -> ShapingTest {
    let limit = shaper.as_ref().ok().and_then(|shaper| shaper.limit_bytes.value().copied());
    if let (Some(limit), Known::Value(train)) = (limit, &mut test.train)
        && let Known::Value(queue) = &mut train.queue
        && queue.bytes >= limit
        && queue.discipline.value() == Some(&QueueDiscipline::Unfilled)
    {
        queue.discipline =
            Known::missing(format!("as much waited as its limit of {limit}, and nothing was lost"));
    }
    test
}

/// Largest possible size of a shaper's bucket, bytes: the kernel reports the size rounded down to a step.
pub(crate) fn burst_at_most(shaper: &LocalShaper) -> Option<f64> {
    let Bytes(least) = shaper.burst_bytes.value()?;
    Some(counting::burst_at_most(*least as f64, shaper.rate_bits_per_s.0))
}

/// A sufficient bucket in place of the present one, if the shaper is at the sender.
pub(crate) fn larger_bucket(test: &ShapingTest, sender: &Sender) -> Option<Change> {
    let shaper = test.shaper.get().cloned();
    let seen = Seen { enough: test.enough_bucket.value(), ..Seen::of(test, sender, &shaper) };
    remedy::larger(&seen)
}

/// The commands that make these changes of the shaper's settings, and the lines of systemd-networkd.
pub(crate) fn made_by(
    test: &ShapingTest,
    sender: &Sender,
    changes: &[Change],
) -> (Vec<String>, Vec<String>) {
    let shaper = test.shaper.get().cloned();
    let seen = Seen { enough: test.enough_bucket.value(), ..Seen::of(test, sender, &shaper) };
    (remedy::commands(&seen, changes), remedy::networkd(&seen, changes))
}

/// Size of a full frame of the train or of TCP, bytes, as a shaper without configured overhead counts it.
fn frame_bytes(test: &ShapingTest, sender: &Sender) -> Result<f64, Missing> {
    let header = f64::from(goodput_model::ETHERNET_HEADER_BYTES);
    match (&test.train, &sender.segment) {
        (Known::Value(train), _) => Ok(train.frame_bytes.0 as f64),
        (_, Ok((_, packet))) => Ok(packet + header),
        (_, Err(why)) => Err(why.clone()),
    }
}

/// A cause, if it is one.
type Answer = Option<ShapingCause>;

pub(crate) fn say(id: &str, text: String) -> ShapingCause {
    ShapingCause { id: id.into(), text }
}

/// What is missing of a rate that is `set`, as a share, if it is more than the `least` one.
fn short_by(least: f64, passed: f64, error: f64, set: f64) -> Option<f64> {
    ((passed + error) / set < 1.0 - least).then_some(1.0 - passed / set)
}

/// What causes look at.
struct Seen<'a> {
    test: &'a ShapingTest,
    sender: &'a Sender<'a>,
    shaper: &'a Result<LocalShaper, Missing>,
    enough: Option<&'a EnoughBucket>,
    others: OtherTraffic,
}

impl<'a> Seen<'a> {
    fn of(
        test: &'a ShapingTest,
        sender: &'a Sender<'a>,
        shaper: &'a Result<LocalShaper, Missing>,
    ) -> Self {
        Self {
            test,
            sender,
            shaper,
            enough: None,
            others: other_traffic(sender, test.train.value()),
        }
    }

    /// The rate that datagrams and others beside them get, in frames, bits per second.
    fn passed(&self) -> Option<f64> {
        Some(self.given()?.value + Others::rate(self.others.train.as_ref()))
    }

    fn train(&self) -> Option<&'a Shaping> {
        self.test.train.value()
    }

    fn shaper(&self) -> Option<&'a LocalShaper> {
        self.shaper.as_ref().ok()
    }

    /// Largest tolerated difference, as a share.
    fn tolerance(&self) -> f64 {
        self.test.tolerance_percent / 100.0
    }

    /// The rate that datagrams get in the long run, in frames, bits per second; `None` if it is the sender's own.
    fn given(&self) -> Option<&'a Estimate> {
        self.test.datagrams_bits_per_s.value()?;
        self.train()?.rate_bits_per_s.value()
    }

    /// The rate that the local shaper's own rate leaves for the train's frames, bits per second.
    fn set_in_frames(&self) -> Option<f64> {
        let (shaper, train) = (self.shaper()?, self.train()?);
        let counted = local::counts_for_datagram(self.sender, shaper, train);
        Some(shaper.rate_bits_per_s.0 * train.frame_bytes.0 as f64 / counted)
    }

    /// Shortfall of the datagrams' rate, as a share of the local shaper's rate; `None` if it is tolerated, or may be.
    fn shortfall(&self) -> Option<f64> {
        self.shortfall_by(self.tolerance())
    }

    /// The same if it is more than this share.
    fn shortfall_by(&self, least: f64) -> Option<f64> {
        let error = self.given()?.high - self.given()?.value;
        short_by(least, self.passed()?, error, self.set_in_frames()?)
    }

    /// The smallest share that is worth an explanation by the bucket: what is tolerated, if the shaper gives its rate; otherwise what
    /// a test shows. A test may miss something else than the rate.
    fn least_loss(&self) -> f64 {
        let test = self.test;
        let is_off = |rate: &Known<Estimate>| {
            rate.value().is_some_and(|rate| {
                let (configured, percent) = (test.configured_bits_per_s, test.tolerance_percent);
                confirmation(rate, configured, percent) != Confirmation::Confirmed
            })
        };
        let is_missed = test.confirmation != Confirmation::Confirmed
            && (is_off(&test.datagrams_bits_per_s) || is_off(&test.tcp_bits_per_s));
        if is_missed { self.tolerance().min(ACCURACY) } else { self.tolerance() }
    }

    /// Whether the rate that came is the local shaper's own.
    fn gives_what_is_set(&self) -> bool {
        let rates = self.passed().zip(self.set_in_frames());
        rates.is_some_and(|(passed, set)| (passed / set - 1.0).abs() <= self.tolerance())
    }

    /// A full frame of TCP or of the train, whichever is larger, as the local shaper counts it, bytes: frames of TCP fill
    /// the MTU, those of the train need not.
    fn largest_frame(&self) -> Option<f64> {
        let shaper = self.shaper()?;
        let own = shaper.counted_frame_bytes.0 as f64;
        Some(bucket::largest_frame(self.sender, Some(shaper), own))
    }

    /// Shortfall of TCP's rate, as a share of the local shaper's rate; `None` if it is tolerated, or may be.
    fn tcp_shortfall(&self) -> Option<f64> {
        self.tcp_shortfall_by(self.tolerance())
    }

    /// The same if it is more than this share.
    fn tcp_shortfall_by(&self, least: f64) -> Option<f64> {
        let (shaper, (_, packet)) = (self.shaper()?, self.sender.segment.as_ref().ok()?);
        let frame = packet + CountedLayer::Frame.extra_bytes();
        let counted = local::counts_for(self.sender, shaper, frame);
        // Without a layer, the rate is in what the shaper counts.
        let in_layer = |layer: &CountedLayer| counted / (packet + layer.extra_bytes());
        let by = self.test.counts.value().map_or(1.0, in_layer);
        let tcp = self.test.tcp_bits_per_s.value()?;
        let passed = tcp.value * by + Others::rate(self.others.tcp.as_ref());
        short_by(least, passed, (tcp.high - tcp.value) * by, shaper.rate_bits_per_s.0)
    }

    /// Timers that were watched at the shaper's host.
    fn watched(&self, which: fn(&Timers) -> &Watched) -> Option<&'a Watched> {
        self.shaper()?;
        self.sender.timers.as_ref().ok().map(which)
    }

    /// Size of the local shaper's bucket as the kernel reports it, rounded down to a step, bytes.
    fn burst(&self) -> Option<f64> {
        self.shaper()?.burst_bytes.value().map(|Bytes(bytes)| *bytes as f64)
    }

    /// Largest possible size of that bucket, bytes.
    fn burst_at_most(&self) -> Option<f64> {
        burst_at_most(self.shaper()?)
    }

    /// Whether TCP gets less than datagrams, or than the local shaper's rate.
    fn tcp_shortfall_or_lag(&self) -> bool {
        self.tcp_lags() || self.tcp_shortfall().is_some()
    }

    /// Whether TCP gets less than datagrams, by more than what is tolerated; less than the configured rate, if theirs is unknown.
    /// What others sent beside each counts as its own, but not beyond the configured rate: it may take another way.
    fn tcp_lags(&self) -> bool {
        let configured = self.test.configured_bits_per_s.0;
        let beside = Others::rate(self.others.train.as_ref());
        let of_datagrams = self.test.datagrams_bits_per_s.value().map(|rate| rate.value);
        let rate = of_datagrams.map_or(configured, |own| (own + beside).min(own.max(configured)));
        let tcp = self.test.tcp_bits_per_s.value();
        let others = Others::rate(self.others.tcp.as_ref());
        tcp.is_some_and(|tcp| tcp.high + others < rate * (1.0 - self.tolerance()))
    }
}
