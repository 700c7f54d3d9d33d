//! What can change on a path: one row per cause, with a strength that is drawn, and what a watch must say of it.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;

/// Bits of a full packet.
const PACKET_BITS: f64 = 1500.0 * 8.0;

/// A path before it changes.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// Bits per second.
    pub rate: f64,
    /// Time in each direction, seconds.
    pub delay_s: f64,
    /// Congestion control of the tests.
    pub congestion: &'static str,
}

impl Path {
    /// Slow enough for any machine, and with some data in flight.
    pub fn draw(random: &mut Xoshiro256PlusPlus) -> Self {
        Self {
            rate: random.random_range(1.5e7..3e7),
            delay_s: random.random_range(0.01..0.02),
            congestion: ["cubic", "cubic", "bbr", "reno"].choose(random).unwrap_or(&"cubic"),
        }
    }

    /// Bytes in flight when the path is just full.
    fn flight(&self) -> f64 {
        self.rate * 2.0 * self.delay_s / 8.0
    }

    /// The scenario of a lab: a router between the hosts, and the path behind it. The router's filter would count a
    /// super-packet as one packet, so the near host sends none.
    pub fn scenario(&self) -> String {
        let Self { rate, delay_s, .. } = self;
        format!(
            "name = \"changes\"\ntitle = \"A path that will change.\"\n[link.near-router]\n\
             [link.router-far]\nrate = \"{rate:.0}bit\"\ndelay = \"{:.0}us\"\n\
             [[fault]]\nkind = \"offload\"\nhost = \"near\"\nname = \"tso\"\nvalue = \"off\"\n\
             [[fault]]\nkind = \"offload\"\nhost = \"near\"\nname = \"gso\"\nvalue = \"off\"\n",
            delay_s * 1e6
        )
    }
}

/// Something that changes.
pub struct Cause {
    /// What changes: rate, loss, window, route, host setting.
    pub what: &'static str,
    /// The host on which it is planted.
    pub host: &'static str,
    /// A shell script that plants it, and takes at least a tenth of the goodput. `$ON_ROUTER` runs a command on the router,
    /// and `$NEAR` is the address of the near host.
    pub script: fn(&mut Xoshiro256PlusPlus, &Path) -> String,
    /// The limits that name it.
    pub limits: &'static [&'static str],
    /// Words for what else changed, each of which names it as well.
    pub words: &'static [&'static str],
}

/// Every cause.
pub const ALL: [Cause; 7] = [
    Cause {
        what: "rate",
        host: "router",
        script: |random, path| shaper(random, path, "to-far"),
        limits: &["path-rate", "policer", "queue-too-long", "queue-too-short"],
        words: &[],
    },
    Cause {
        what: "rate",
        host: "router",
        script: policer,
        limits: &["policer", "path-rate"],
        words: &[],
    },
    Cause {
        what: "loss",
        host: "router",
        script: loss,
        limits: &["path-loss", "rto-bound"],
        words: &["retransmitted share"],
    },
    Cause {
        what: "window",
        host: "far",
        script: |random, path| {
            // The kernel lends half of the buffer as window (net.ipv4.tcp_adv_win_scale).
            let most = 2.0 * path.flight() * random.random_range(0.2..0.5);
            format!("sysctl -qw net.ipv4.tcp_rmem='4096 {most:.0} {most:.0}'")
        },
        limits: &["receive-window"],
        words: &["sysctl.net.ipv4.tcp_rmem of the far end", "receiver's window"],
    },
    Cause {
        what: "route",
        host: "near",
        script: slower_way,
        limits: &[],
        words: &["route.device of the near end", "route.gateway of the near end"],
    },
    Cause {
        what: "host setting",
        host: "near",
        script: |random, path| shaper(random, path, "to-router"),
        limits: &["shaper-rate"],
        words: &["qdisc."],
    },
    Cause {
        what: "host setting",
        host: "near",
        script: |random, path| {
            let most = path.flight() * random.random_range(0.3..0.7);
            format!("sysctl -qw net.ipv4.tcp_wmem='4096 {most:.0} {most:.0}'")
        },
        limits: &["send-buffer"],
        words: &["sysctl.net.ipv4.tcp_wmem of the near end"],
    },
];

fn shaper(random: &mut Xoshiro256PlusPlus, path: &Path, device: &str) -> String {
    let rate = path.rate * random.random_range(0.3..0.75);
    let limit = rate / 8.0 * 0.1;
    format!("tc qdisc replace dev {device} root tbf rate {rate:.0}bit burst 32000 limit {limit:.0}")
}

/// Another cable to the router, over which less fits.
fn slower_way(random: &mut Xoshiro256PlusPlus, path: &Path) -> String {
    format!(
        "ip link add second type veth peer name second netns ${{ON_ROUTER#nsenter --net=}}\n\
         ip addr add 10.78.0.2/30 dev second\nip link set second up\n\
         $ON_ROUTER ip addr add 10.78.0.1/30 dev second\n$ON_ROUTER ip link set second up\n\
         ip route change default via 10.78.0.1 src $NEAR\n{}",
        shaper(random, path, "second")
    )
}

fn policer(random: &mut Xoshiro256PlusPlus, path: &Path) -> String {
    let (share, burst) = (random.random_range(0.3..0.6), random.random_range(10..40));
    let packets = path.rate / PACKET_BITS * share;
    forwarded(&format!(
        "meta length > 1000 limit rate over {packets:.0}/second burst {burst} packets"
    ))
}

fn loss(random: &mut Xoshiro256PlusPlus, _: &Path) -> String {
    forwarded(&format!("numgen random mod 10000 < {}", random.random_range(400..800)))
}

/// Drops what the router forwards to the far host, if this holds.
fn forwarded(condition: &str) -> String {
    format!(
        "nft -f - <<'END'\ntable inet planted {{\n chain forward {{\n type filter hook forward priority 0\n \
         oifname \"to-far\" {condition} drop\n }}\n}}\nEND"
    )
}
