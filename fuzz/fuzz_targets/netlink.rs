//! What the kernel answers over netlink and ethtool, and `struct tcp_info`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    goodput_netlink::fuzzing::replies(data);
    let _ = goodput_kernel::decode(data);
});
