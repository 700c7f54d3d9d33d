//! The bytes that are sent: random, so that nothing on the way can compress them.

/// `len` random bytes.
pub(crate) fn random(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rand::fill(bytes.as_mut_slice());
    bytes
}
