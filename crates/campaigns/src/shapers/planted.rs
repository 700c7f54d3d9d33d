//! What can limit a drawn path: a row each.

/// Bytes of a frame of the train: 1500 of IP, and its Ethernet header.
pub const FRAME_BYTES: f64 = 1514.0;
/// What nft's policer counts as a packet, bits (`crates/lab/src/faults/policer.rs`).
const POLICED_BITS: f64 = 12_000.0;
/// IP packet of a frame of the train, bytes: what a policer at the ingress counts (`sch_handle_ingress`, net/core/dev.c).
const PACKET_BYTES: f64 = FRAME_BYTES - 14.0;

/// A kind of limit.
#[derive(Debug)]
pub struct Planted {
    /// Its name.
    pub id: &'static str,
    /// The kind that a test must report.
    pub kind: &'static str,
    /// Its queue; `None` where it has none.
    pub queue: Option<Queue>,
    /// Whether it has a bucket that late timers can be too much for.
    pub has_bucket: bool,
    /// The kernel that has it.
    pub kernel: Kernel,
    /// The highest rate to draw, bits per second.
    pub most_bits_per_s: f64,
    /// The part of a scenario that makes it.
    pub scenario: fn(Asked) -> String,
    /// What it does.
    pub truth: fn(Asked) -> Truth,
}

/// The queue of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// All flows wait in one, which drops what comes when it is full.
    Fifo,
    /// Each flow has its turn, and the queue drops early.
    FairAndManaged,
}

/// Where a kind can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kernel {
    /// The kernel of the machine that builds, which has few queueing disciplines.
    Own,
    /// One of a distribution, as in `cargo xtask kernel debian`; it is slow there.
    Distribution,
}

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// Rate, kilobits per second.
    pub kbit: u64,
    /// Bucket, bytes of frames.
    pub bucket: f64,
    /// Queue, bytes.
    pub limit: f64,
}

/// What passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truth {
    /// Bits per second of frames.
    pub rate_bits_per_s: f64,
    /// The bucket, bytes of frames.
    pub bucket_bytes: f64,
    /// What passes at once after a pause, bytes of frames.
    pub at_once_bytes: f64,
}

/// Highest rate of a shaper of this machine's kernel, bits per second.
const FAST: f64 = 5e9;
/// Above this rate datagrams leave joined, and a policer drops such a batch whole.
const SINGLE: f64 = 2e8;
/// The highest rate at which an emulated processor keeps up.
const EMULATED: f64 = 3e7;

/// Every kind, each drawn as often as the others of its kernel. A static, because rows are told apart by their places: of
/// a constant, each use may have a copy.
pub static ALL: &[Planted] = &[
    fifo(bucket(row("tbf", "shaper", Kernel::Own, FAST, tbf, exactly))),
    fifo(bucket(row("htb", "shaper", Kernel::Own, FAST, htb, a_frame_more))),
    fifo(row("relay", "shaper", Kernel::Own, SINGLE, relay, a_frame)),
    row("policer", "policer", Kernel::Own, SINGLE, nft, packets),
    row("ebpf-policer", "policer", Kernel::Own, SINGLE, ebpf, at_least_two_frames),
    row("none", "none", Kernel::Own, SINGLE, nothing, exactly),
    row("police", "policer", Kernel::Distribution, EMULATED, police, without_headers),
    managed(row("cake", "shaper", Kernel::Distribution, EMULATED, cake, a_frame)),
    managed(bucket(row(
        "fq_codel",
        "shaper",
        Kernel::Distribution,
        EMULATED,
        fq_codel,
        a_frame_more,
    ))),
    fifo(row("netem", "shaper", Kernel::Distribution, EMULATED, netem, a_frame)),
];

const fn row(
    id: &'static str,
    kind: &'static str,
    kernel: Kernel,
    most_bits_per_s: f64,
    scenario: fn(Asked) -> String,
    truth: fn(Asked) -> Truth,
) -> Planted {
    Planted { id, kind, queue: None, has_bucket: false, kernel, most_bits_per_s, scenario, truth }
}

const fn bucket(row: Planted) -> Planted {
    Planted { has_bucket: true, ..row }
}

const fn managed(row: Planted) -> Planted {
    Planted { queue: Some(Queue::FairAndManaged), ..row }
}

const fn fifo(row: Planted) -> Planted {
    Planted { queue: Some(Queue::Fifo), ..row }
}

impl Planted {
    /// The row of this name.
    pub fn named(id: &str) -> Option<&'static Self> {
        ALL.iter().find(|row| row.id == id)
    }

    /// Whether segmentation offload can be switched off at the sender: a TUN device has none.
    pub fn has_offload(&self) -> bool {
        self.id != "relay"
    }

    /// Whether it limits anything.
    pub fn limits(&self) -> bool {
        self.kind != "none"
    }
}

fn tbf(Asked { kbit, bucket, limit }: Asked) -> String {
    format!(
        "[link.path]\n[[fault]]\nkind = \"tbf\"\nhost = \"near\"\nrate = \"{kbit}kbit\"\nburst = \"{bucket:.0}\"\n\
         limit = \"{limit:.0}\"\n"
    )
}

fn htb(Asked { kbit, bucket, .. }: Asked) -> String {
    format!(
        "[link.path]\n[[fault]]\nkind = \"htb\"\nhost = \"near\"\nrate = \"10gbit\"\ndefault_rate = \"{kbit}kbit\"\n\
         burst = \"{bucket:.0}\"\n"
    )
}

/// A link whose relay sends a frame after the other.
fn relay(Asked { kbit, limit, .. }: Asked) -> String {
    format!("[link.path]\nrate = \"{kbit}kbit\"\ndelay = \"1ms\"\nqueue = \"{limit:.0}\"\n")
}

fn nft(Asked { kbit, bucket, .. }: Asked) -> String {
    let packets = (bucket / FRAME_BYTES).ceil();
    format!(
        "[link.path]\n[[fault]]\nkind = \"policer\"\nhost = \"far\"\nrate = \"{kbit}kbit\"\nburst = {packets:.0}\n"
    )
}

fn ebpf(asked: Asked) -> String {
    let (kbit, bucket) = (asked.kbit, at_least_two_frames(asked).bucket_bytes);
    format!(
        "[link.path]\n[[fault]]\nkind = \"ebpf-policer\"\nhost = \"far\"\nrate = \"{kbit}kbit\"\n\
         burst = \"{bucket:.0}\"\n"
    )
}

fn nothing(_: Asked) -> String {
    "[link.path]\n".into()
}

fn police(Asked { kbit, bucket, .. }: Asked) -> String {
    let bucket = bucket.max(2.0 * PACKET_BYTES);
    tc(
        "far",
        &[
            "qdisc add dev DEVICE clsact".into(),
            format!(
                "filter add dev DEVICE ingress matchall action police rate {kbit}kbit burst {bucket:.0} mtu 65535 \
             conform-exceed drop"
            ),
        ],
    )
}

fn cake(Asked { kbit, .. }: Asked) -> String {
    tc("near", &[format!("qdisc replace dev DEVICE root cake bandwidth {kbit}kbit besteffort")])
}

fn fq_codel(Asked { kbit, bucket, .. }: Asked) -> String {
    let class = format!("rate {kbit}kbit burst {bucket:.0} cburst {bucket:.0}");
    tc(
        "near",
        &[
            "qdisc replace dev DEVICE root handle 1: htb default 1".into(),
            format!("class add dev DEVICE parent 1: classid 1:1 htb {class}"),
            "qdisc add dev DEVICE parent 1:1 fq_codel".into(),
        ],
    )
}

fn netem(Asked { kbit, limit, .. }: Asked) -> String {
    let packets = (limit / FRAME_BYTES).ceil();
    tc("near", &[format!("qdisc replace dev DEVICE root netem rate {kbit}kbit limit {packets:.0}")])
}

fn tc(host: &str, commands: &[String]) -> String {
    format!("[link.path]\n[[fault]]\nkind = \"tc\"\nhost = \"{host}\"\ncommands = {commands:?}\n")
}

fn exactly(Asked { kbit, bucket, .. }: Asked) -> Truth {
    Truth { rate_bits_per_s: kbit as f64 * 1e3, bucket_bytes: bucket, at_once_bytes: bucket }
}

/// A class may send while its tokens are not negative, and its last packet makes them so (`htb_class_mode`,
/// net/sched/sch_htb.c).
fn a_frame_more(asked: Asked) -> Truth {
    let at_once_bytes = ((asked.bucket / FRAME_BYTES).floor() + 1.0) * FRAME_BYTES;
    Truth { at_once_bytes, ..exactly(asked) }
}

/// No bucket: a frame after the other.
fn a_frame(asked: Asked) -> Truth {
    exactly(Asked { bucket: FRAME_BYTES, ..asked })
}

/// nft counts packets.
fn packets(Asked { kbit, bucket, .. }: Asked) -> Truth {
    let bucket = (bucket / FRAME_BYTES).ceil() * FRAME_BYTES;
    let rate_bits_per_s = (kbit as f64 * 1e3 / POLICED_BITS).round() * FRAME_BYTES * 8.0;
    Truth { rate_bits_per_s, bucket_bytes: bucket, at_once_bytes: bucket }
}

/// A policer of one frame wastes what comes in while it waits for the next datagram.
fn at_least_two_frames(asked: Asked) -> Truth {
    exactly(Asked { bucket: asked.bucket.max(2.0 * FRAME_BYTES), ..asked })
}

/// Frames without their Ethernet headers count.
fn without_headers(Asked { kbit, bucket, .. }: Asked) -> Truth {
    let more = FRAME_BYTES / PACKET_BYTES;
    let bucket = bucket.max(2.0 * PACKET_BYTES) * more;
    Truth { rate_bits_per_s: kbit as f64 * 1e3 * more, bucket_bytes: bucket, at_once_bytes: bucket }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Asked = Asked { kbit: 12_000, bucket: 1600.0, limit: 65_536.0 };

    #[test]
    fn names_are_unique_and_found() {
        for row in ALL {
            assert!(std::ptr::eq(Planted::named(row.id).unwrap(), row), "{}", row.id);
        }
        assert!(Planted::named("cbq").is_none());
    }

    #[test]
    fn each_makes_a_scenario_with_a_truth() {
        for row in ALL {
            let text = (row.scenario)(ASKED);
            let scenario: toml::Table = text.parse().unwrap();
            assert!(scenario.contains_key("link"), "{text}");
            let truth = (row.truth)(ASKED);
            assert!((truth.rate_bits_per_s / 12e6 - 1.0).abs() < 0.02, "{}: {truth:?}", row.id);
            assert!(truth.at_once_bytes >= FRAME_BYTES, "{}: {truth:?}", row.id);
        }
    }

    #[test]
    fn a_class_may_send_a_frame_more_than_its_bucket_holds() {
        assert_eq!(a_frame_more(ASKED).at_once_bytes, 2.0 * FRAME_BYTES);
    }

    #[test]
    fn a_policer_counts_packets() {
        let truth = packets(Asked { kbit: 12_001, ..ASKED });
        assert_eq!(truth.rate_bits_per_s, 1000.0 * FRAME_BYTES * 8.0);
        assert_eq!(truth.bucket_bytes, 2.0 * FRAME_BYTES);
        assert!((without_headers(ASKED).bucket_bytes / (2.0 * FRAME_BYTES) - 1.0).abs() < 1e-9);
    }
}
