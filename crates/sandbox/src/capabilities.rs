//! Drops all capabilities (capabilities(7)).

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

use crate::error::SandboxError;

/// Empties the bounding set, so that no program started by this one gets a capability either. This needs CAP_SETPCAP;
/// without it `no_new_privs` has the same effect.
pub(crate) fn bound() {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // An error means that the kernel knows no more capabilities.
        let Ok(present) = capability_is_in_bounding_set(one) else { return };
        if present && remove_capability_from_bounding_set(one) == Err(Errno::PERM) {
            return;
        }
    }
}

/// Empties all other sets and keeps programs from gaining any (`no_new_privs`).
pub(crate) fn clear() -> Result<(), SandboxError> {
    // Kernels before 4.3 have no ambient set, so there is nothing to clear.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    // A service without capabilities may not be allowed to change them.
    if capabilities(None) != Ok(sets) {
        set_capabilities(None, sets).map_err(SandboxError::of("give up all capabilities"))?;
    }
    set_no_new_privs(true).map_err(SandboxError::of("set no_new_privs"))
}
