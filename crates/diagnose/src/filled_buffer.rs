//! A send buffer that is full because of losses, not because it is small: lost data stays in it for another round trip, with
//! everything written after it.

use goodput_model::Missing;

use crate::view::View;

/// Retransmitted share from which losses may be what fills a send buffer.
const MIN_RETRANSMITTED_SHARE: f64 = 0.001;
/// What a buffer allows over what is carried, from which its size is not the limit. A limiting buffer was measured to hold
/// down to 0.7 of its size in payload.
const MIN_SPARE_BUFFER_RATIO: f64 = 1.6;

/// Whether losses fill the sender's buffer.
///
/// # Errors
/// If the sender does not report its buffer, its round trips or what it sent again.
pub fn losses_fill_the_buffer(view: &View) -> Result<bool, Missing> {
    let side = &view.sender;
    let carried_bytes = view.goodput()? / 8.0 / side.flow_count()? * side.rtt_s()?;
    Ok(side.retransmitted_share()? >= MIN_RETRANSMITTED_SHARE
        && side.send_buffer_bytes()? >= MIN_SPARE_BUFFER_RATIO * carried_bytes)
}
