//! The low-water mark on data that is not sent yet (`tcp_notsent_lowat`).

use goodput_model::Missing;

use crate::names::TCP_NOTSENT_LOWAT;
use crate::thresholds::{MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_LIMITING_TIME_SHARE};
use crate::view::View;

/// Share up to which a writer that the mark keeps waiting fills the buffer: it is woken once a third is free
/// (include/net/sock.h, `sk_stream_min_wspace`). Then the buffer limits as well.
const MIN_SHARE_OF_LOW_WATER: f64 = 0.7;
/// The mark if nobody set one (`tcp_notsent_lowat` of ip-sysctl.rst).
pub const UNSET_LOW_WATER_BYTES: u64 = u32::MAX as u64;

/// Whether the writer waits as it does for the mark. Its buffer is less than full then, but a writer that
/// a small buffer keeps waiting leaves it like that as well.
pub fn may_hold(view: &View) -> Result<bool, Missing> {
    view.needs_tcp()?;
    let side = &view.sender;
    let waits = side.blocked_share()? >= MIN_LIMITING_TIME_SHARE
        && side.app_limited_share()? >= MIN_LIMITING_TIME_SHARE;
    let reader_is_behind =
        view.receiver.blocked_share().is_ok_and(|waits| waits < MAX_WAIT_SHARE_OF_SLOW_THREAD);
    let has_room = side.send_buffer_fill()? < MIN_SHARE_OF_LOW_WATER;
    Ok(mark(view)? < UNSET_LOW_WATER_BYTES && waits && has_room && !reader_is_behind)
}

/// The mark, bytes.
pub fn mark(view: &View) -> Result<u64, Missing> {
    let text = view.sender.text(TCP_NOTSENT_LOWAT)?;
    let wrong = || Missing::because(format!("{TCP_NOTSENT_LOWAT} is {text:?}, not a number"));
    text.parse().map_err(|_| wrong())
}
