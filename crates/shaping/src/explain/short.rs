//! A rate, exact and short, as commands and files take it.

/// A rate, exact, in the largest of these units (of 10⁹ bits per second, 10⁶, 1000 and 1) in which it is whole.
pub(super) fn short(bits: u64, units: [&str; 4]) -> String {
    let mut sizes = [1_000_000_000, 1_000_000, 1000, 1].into_iter().zip(units);
    let whole = sizes.find(|(size, _)| bits.is_multiple_of(*size));
    whole.map_or_else(|| bits.to_string(), |(size, unit)| format!("{}{unit}", bits / size))
}

/// The same as tc(8) and settings write it.
pub(super) fn in_tc(bits: u64) -> String {
    short(bits, ["gbit", "mbit", "kbit", "bit"])
}

/// The same as systemd.network(5) writes it.
pub(super) fn in_networkd(bits: u64) -> String {
    short(bits, ["G", "M", "K", ""])
}
