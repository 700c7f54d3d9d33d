//! Changes that serve what a transfer is tuned for, whatever limits it: no finding has to propose them. A comparison shows
//! whether they do.

use goodput_model::{Change, Confidence, Finding, Place, Purpose, Snapshot, Source};

use crate::change::{of_host, of_plan};
use crate::names::{
    LINK_KIND, OFFLOAD_GRO, OFFLOAD_GSO, OFFLOAD_SG, OFFLOAD_TSO, OFFLOAD_TX_CHECKSUM, POLLING,
    PROGRAM_DECIDES,
};
use crate::shorter_waits::shorter_waits;
use crate::view::{Side, View};

/// What one cause costs a purpose, and the changes that need no finding of it; some causes have none.
struct Offer {
    /// The rule of the cause. Its witness explains what the changes do.
    rule: &'static str,
    changes: fn(&View) -> Vec<Change>,
}

/// Shorter round trips under load.
const LATENCY: &[Offer] = &[Offer { rule: "queue-too-long", changes: shorter_waits }];

/// Less CPU time for each byte.
const CPU: &[Offer] = &[
    Offer { rule: "sender-cpu", changes: |view| cheaper_mover(view).into_iter().collect() },
    Offer { rule: "receiver-cpu", changes: |_| Vec::new() },
    Offer { rule: "offload-off", changes: segmentation },
    Offer { rule: "gro-off", changes: |view| merging(&view.receiver).into_iter().collect() },
    Offer { rule: "interrupt-coalescing", changes: |view| of_sides(view, adaptive_interrupts) },
    Offer { rule: "softirq-saturation", changes: |view| of_sides(view, deferred_polling) },
    Offer { rule: "softirq-saturation", changes: |view| of_sides(view, clocked_polling) },
];

/// Whether the cause of this rule costs the purpose itself, not goodput. For goodput, and for all purposes together,
/// findings are in the order of what they cost: none is.
pub fn is_of_purpose(rule: &str, purpose: Purpose) -> bool {
    let rows = match purpose {
        Purpose::Latency => LATENCY,
        Purpose::Cpu => CPU,
        Purpose::Throughput | Purpose::Balanced => &[],
    };
    rows.iter().any(|offer| offer.rule == rule)
}

/// What a purpose adds to the proposals of the findings, as findings of the rules that name the same causes.
pub fn offers(view: &View, purpose: Purpose) -> Vec<Finding> {
    let rows: &[&[Offer]] = match purpose {
        Purpose::Throughput => &[],
        Purpose::Latency => &[LATENCY],
        Purpose::Cpu => &[CPU],
        Purpose::Balanced => &[LATENCY, CPU],
    };
    let offered = rows.iter().copied().flatten().map(|offer| Finding {
        changes: (offer.changes)(view).into_iter().filter(Change::changes_something).collect(),
        ..Finding::new(offer.rule, Place::Near, Confidence::Possible, "what costs most beside it")
    });
    offered.filter(|finding| !finding.changes.is_empty()).collect()
}

/// Sending from the page cache, if the plan copies and has something that can be sent so twice.
pub fn cheaper_mover(view: &View) -> Option<Change> {
    let why = "sends from the page cache without a copy";
    // Standard input is no file in the page cache, and can't be sent twice to prove it.
    let is_input = view.plan().storage.source == Some(Source::Input);
    let copies = view.is_tcp() && view.plan().mover == "copy" && !is_input;
    copies.then(|| of_plan("mover", Some("copy".into()), "sendfile", why))
}

/// What the sender's device or kernel could do once for many segments. Checksums and scatter-gather come first: the
/// others depend on them.
fn segmentation(view: &View) -> Vec<Change> {
    let kind = view.sender.text(LINK_KIND).unwrap_or_default();
    if !view.is_tcp() || PROGRAM_DECIDES.contains(&kind) {
        return Vec::new();
    }
    let names = [OFFLOAD_TX_CHECKSUM, OFFLOAD_SG, OFFLOAD_TSO, OFFLOAD_GSO];
    names.into_iter().filter_map(|name| switched_on(&view.sender, name)).collect()
}

/// Merging of arriving segments at a card. A veth has GRO off for a reason: what it gets is merged already.
fn merging(side: &Side) -> Option<Change> {
    switched_on(side, OFFLOAD_GRO).filter(|_| is_card(side))
}

fn switched_on(side: &Side, name: &str) -> Option<Change> {
    let values = (Some("off".into()), "on".into());
    let device = side.device().ok()?;
    let is_off = side.text(name) == Ok("off");
    is_off.then(|| of_host(side, name, Some(device), values, "less CPU per byte"))
}

/// The card chooses how long it collects packets for one interrupt. A virtual device says `off` because it has none.
pub fn adaptive_interrupts(side: &Side) -> Option<Change> {
    let values = (Some("off".into()), "on".into());
    let device = side.device().ok()?;
    let is_off = side.text("coalescing.rx_adaptive") == Ok("off");
    let why = "the card chooses the delay of interrupts by the load";
    (is_off && is_card(side))
        .then(|| of_host(side, "coalescing.adaptive_rx", Some(device), values, why))
}

/// Polling by a timer while there is traffic, in place of an interrupt for each batch. Only for a card that interrupts
/// now: another state has a reason, and has no name to go back to.
pub fn deferred_polling(side: &Side) -> Option<Change> {
    let device = side.device().ok()?;
    let values = (Some(INTERRUPTS.into()), DEFERRED.into());
    is_interrupting(&side.end().ok()?.before)
        .then(|| of_host(side, "polling", Some(device), values, DEFERRED_WHY))
}

/// Polling of a card of FreeBSD at each tick of the clock (polling(4)), if its driver and kernel can.
fn clocked_polling(side: &Side) -> Option<Change> {
    let values = (Some("off".into()), "on".into());
    let device = side.device().ok()?;
    let why = "the kernel polls at each tick of its clock: no interrupts";
    (side.text(POLLING) == Ok("off")).then(|| of_host(side, "polling", Some(device), values, why))
}

/// States of the setting `polling`.
pub const INTERRUPTS: &str = "interrupts";
/// The same.
pub const DEFERRED: &str = "deferred";
/// Why the second may be better.
pub const DEFERRED_WHY: &str = "a timer polls while there is traffic: fewer interrupts";

/// Whether a card interrupts, and nothing polls it.
pub fn is_interrupting(facts: &Snapshot) -> bool {
    let counts = ["napi.gro_flush_timeout_ns", "napi.defer_hard_irqs", "napi.threaded"];
    let sysctls = ["sysctl.net.core.busy_poll", "sysctl.net.core.busy_read"];
    facts.text(LINK_KIND) == Ok("hardware")
        && counts.iter().all(|name| facts.count(name) == Ok(0))
        && sysctls.iter().all(|name| facts.text(name) == Ok("0"))
}

fn is_card(side: &Side) -> bool {
    side.text(LINK_KIND) == Ok("hardware")
}

fn of_sides(view: &View, change: fn(&Side) -> Option<Change>) -> Vec<Change> {
    // Packets that arrive cause most interrupts.
    [&view.receiver, &view.sender].into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use goodput_model::EndName::{self, Far, Near};

    use super::*;
    use crate::testing::Case;

    fn offered(case: Case, purpose: Purpose) -> Vec<String> {
        let evidence = case.evidence();
        let offers = offers(&View::new(&evidence), purpose);
        offers.iter().flat_map(|offer| &offer.changes).map(Change::as_argument).collect()
    }

    fn card(case: Case, end: EndName) -> Case {
        let zeros = ["napi.gro_flush_timeout_ns", "napi.defer_hard_irqs", "napi.threaded"];
        let polls = ["sysctl.net.core.busy_poll", "sysctl.net.core.busy_read"];
        let case = zeros.into_iter().fold(case, |case, name| case.fact(end, name, 0u64));
        let case = polls.into_iter().fold(case, |case, name| case.fact(end, name, "0"));
        case.fact(end, LINK_KIND, "hardware").fact(end, "coalescing.rx_adaptive", "off")
    }

    #[test]
    fn cpu_time_is_saved_by_what_does_more_at_once() {
        let case =
            card(Case::healthy(), Far).fact(Near, OFFLOAD_TSO, "off").fact(Far, OFFLOAD_GRO, "off");
        let all = [
            "mover=copy,sendfile",
            "offload.tso@eth0=off,on",
            "far:offload.gro@eth0=off,on",
            "far:coalescing.adaptive_rx@eth0=off,on",
            "far:polling@eth0=interrupts,deferred",
        ];
        assert_eq!(offered(case, Purpose::Cpu), all);
    }

    #[test]
    fn what_is_so_already_is_not_offered() {
        let busy = card(Case::healthy(), Far)
            .fact(Far, "sysctl.net.core.busy_poll", "50")
            .fact(Far, "coalescing.rx_adaptive", "on")
            .plan(|plan| plan.mover = "sendfile".into());
        assert_eq!(offered(busy, Purpose::Cpu), [""; 0]);
        let tunnel = Case::healthy().fact(Near, LINK_KIND, "tun").fact(Near, OFFLOAD_TSO, "off");
        assert_eq!(offered(tunnel, Purpose::Cpu), ["mover=copy,sendfile"]);
        let bridge = card(Case::healthy(), Far).fact(Far, LINK_KIND, "veth");
        let veth = offered(bridge.fact(Far, OFFLOAD_GRO, "off"), Purpose::Cpu);
        assert_eq!(veth, ["mover=copy,sendfile"]);
    }

    #[test]
    fn a_card_of_freebsd_is_polled_if_it_can_be() {
        let offered_at = |state: Option<&'static str>| {
            let case =
                state.map_or_else(Case::healthy, |state| Case::healthy().fact(Far, POLLING, state));
            offered(case, Purpose::Cpu)
        };
        let polling = ["mover=copy,sendfile", "far:polling@eth0=off,on"];
        assert_eq!(offered_at(Some("off")), polling);
        for none in [Some("on"), None] {
            assert_eq!(offered_at(none), ["mover=copy,sendfile"]);
        }
    }

    #[test]
    fn each_purpose_has_its_own_and_throughput_none() {
        let cubic = || Case::path_rate().congestion("cubic");
        let bbr = "socket.congestion=cubic,bbr";
        assert_eq!(offered(cubic(), Purpose::Latency), [bbr]);
        assert_eq!(offered(cubic(), Purpose::Balanced), [bbr, "mover=copy,sendfile"]);
        assert_eq!(offered(cubic(), Purpose::Throughput), [""; 0]);
    }

    #[test]
    fn each_offer_has_the_name_of_a_rule() {
        for offer in LATENCY.iter().chain(CPU) {
            assert!(crate::rules::find(offer.rule).is_some(), "{}", offer.rule);
        }
    }
}
