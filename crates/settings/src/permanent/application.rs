//! Settings of one measurement: the real application must do the same.

use goodput_model::Permanent;

use super::{entry, in_bytes};
use crate::value;

/// What the application must do.
pub(crate) fn application(what: impl Into<String>) -> Vec<Permanent> {
    vec![entry("the application", what)]
}

/// A socket's buffer of a fixed size, or, by default, the kernel's autotuning.
pub(crate) fn socket_buffer(option: &str, size: &str) -> Vec<Permanent> {
    application(if size == value::DEFAULT {
        format!("no setsockopt({option}): the kernel then sizes the buffer")
    } else {
        format!("setsockopt(fd, SOL_SOCKET, {option}, {})", in_bytes(size))
    })
}
