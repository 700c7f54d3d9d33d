//! What the kernel answers over netlink and ethtool, and `struct tcp_info`.

/// Takes any bytes.
pub fn run(data: &[u8]) {
    goodput_netlink::fuzzing::replies(data);
    let _ = goodput_kernel::decode(data);
}
