//! Whether what seems lost on the path was dropped at a host, or not lost at all.

use goodput_model::Missing;

use crate::view::View;

/// Part of the lost packets that, explained otherwise, acquits the path.
pub const MIN_OTHERWISE_EXPLAINED_SHARE: f64 = 0.5;

/// Whether most retransmissions were needless, or the packets were dropped at a host.
pub fn lost_elsewhere(view: &View) -> Result<bool, Missing> {
    let side = &view.sender;
    let needless = side.needless_retransmits().unwrap_or(0.0);
    let by_socket = view.receiver.socket_drops().unwrap_or(0.0);
    let here = side.queue_drops().unwrap_or(0.0) + side.departure_drops();
    let dropped = here + view.receiver.device_drops().unwrap_or(0.0);
    let most = |part: f64, whole: f64| part > 0.0 && part >= MIN_OTHERWISE_EXPLAINED_SHARE * whole;
    Ok(most(needless.max(by_socket), side.retransmitted_segments()?)
        || most(dropped, side.retransmitted_segments_in_all()?))
}

/// Whether most datagrams that never arrived were dropped at a host.
pub fn datagrams_lost_elsewhere(view: &View) -> Result<bool, Missing> {
    Ok(view.datagrams_dropped_at_hosts()
        >= MIN_OTHERWISE_EXPLAINED_SHARE * view.receiver.datagrams_lost()?)
}
