//! How fast congestion control can go at a given loss, according to the published models.

use goodput_ceiling::models::{cubic, mathis};
use goodput_model::Missing;

use crate::view::{View, positive};

/// Share of its window that CUBIC keeps at a loss (RFC 9438 section 4.6).
const KEPT_BY_CUBIC: f64 = 0.7;
/// The same for Reno, and the most that a standard congestion control may keep (RFC 5681 section 3.1, equation 4).
const KEPT_BY_RENO: f64 = 0.5;

/// Share of the congestion window left after a loss: the slow-start threshold over the window before. `None` if the threshold
/// says nothing of losses: BBR sets it when it has found the rate (net/ipv4/tcp_bbr.c, `bbr_check_drain`).
pub fn kept_at_loss(view: &View) -> Option<f64> {
    match view.congestion() {
        Ok("cubic") => Some(KEPT_BY_CUBIC),
        Ok(_) if view.backs_off_at_loss() == Ok(false) => None,
        _ => Some(KEPT_BY_RENO),
    }
}

/// Rate that all flows together could have with a loss-based congestion control at the observed
/// loss, bits per second. `None` if nothing was lost.
pub fn rate_at_loss(view: &View) -> Result<Option<f64>, Missing> {
    let side = &view.sender;
    let loss = side.episodes()?.lost_share_since()?;
    if loss <= 0.0 {
        return Ok(None);
    }
    let (mss, rtt) = (side.mss_bytes()?, side.rtt_s()?);
    let reno = view.congestion().is_ok_and(|name| name == "reno");
    let one = if reno { mathis(mss, rtt, loss) } else { cubic(mss, rtt, loss) };
    Ok(Some(positive(one * side.flow_count()?, "the rate at this loss")?))
}
