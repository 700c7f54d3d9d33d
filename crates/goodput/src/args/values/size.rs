//! Numbers of bytes, with the bounds that an option sets.

use goodput_model::{Bytes, CeilingInputs, NfsPlan};

/// At least one byte.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn positive(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(Bytes(0)) => Err("it must be at least one byte".into()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Payload of one datagram: what IPv4 leaves of 65535 bytes.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn datagram(text: &str) -> Result<Bytes, String> {
    match positive(text)? {
        bytes if bytes.0 <= CeilingInputs::MAX_DATAGRAM_BYTES => Ok(bytes),
        _ => Err(format!("a datagram carries 1 to {} bytes", CeilingInputs::MAX_DATAGRAM_BYTES)),
    }
}

/// Bytes that one READ or WRITE of an NFS server may have.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn nfs_read(text: &str) -> Result<Bytes, String> {
    match positive(text)? {
        bytes if bytes.0 <= NfsPlan::MOST_RSIZE_BYTES => Ok(bytes),
        _ => Err("one READ or WRITE has at most 64M".into()),
    }
}

/// A window that TCP can announce: 65535 bytes scaled by 14 bits at most (RFC 7323 section 2.3).
///
/// # Errors
/// A sentence that says what is wrong.
pub fn window(text: &str) -> Result<Bytes, String> {
    match positive(text)? {
        bytes if bytes.0 <= 1 << 30 => Ok(bytes),
        _ => Err("TCP has no window above 1G".into()),
    }
}

/// A socket buffer of 1 GiB at most: the kernel takes no larger ones (`sk_setsockopt`, net/core/sock.c,
/// limits it to half of what an `int` holds).
///
/// # Errors
/// A sentence that says what is wrong.
pub fn socket_buffer(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(bytes) if bytes.0 <= 1 << 30 => Ok(bytes),
        Ok(_) => Err("the kernel gives a socket at most 1G".into()),
        Err(error) => Err(error.to_string()),
    }
}
