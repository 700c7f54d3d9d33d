//! Losses that are made up for without selective acknowledgements.

use goodput_model::Missing;

use crate::bounds::next_after;
use crate::finding::{Draft, percent};
use crate::thresholds::MIN_LIMITING_TIME_SHARE;
use crate::view::{TcpOption, View};

/// Name of the share as evidence.
pub const WITNESS_NAME: &str = "recovering_unselectively_percent";
/// Fewer retransmissions do not show how losses are repaired.
const MIN_RETRANSMISSIONS: f64 = 3.0;

/// Recovery that limits for lack of the option, whoever is to blame.
#[derive(Debug, Clone, Copy)]
pub struct Unselective {
    /// Share of the time since the first loss that making up for losses took.
    pub share: f64,
}

impl Unselective {
    /// Share of the time since the first loss that making up for losses took, if that is what limits for lack of the
    /// option, whoever is to blame.
    pub fn of(view: &View) -> Result<Option<Self>, Missing> {
        view.needs_tcp()?;
        let selective = view.sender.has_option(TcpOption::Sack)?;
        if selective || view.sender.retransmitted_segments_in_all()? < MIN_RETRANSMISSIONS {
            return Ok(None);
        }
        let share = view.sender.recovering_share()?;
        Ok((share >= MIN_LIMITING_TIME_SHARE).then_some(Self { share }))
    }

    /// What shows it, for any rule that knows why the option is missing.
    pub fn describe(&self, view: &View, draft: Draft) -> Draft {
        let (side, place) = (&view.sender, view.sender.place());
        let held = format!(
            "the sender was recovering lost segments {} of the time since the first loss (tcp_info ca_state), without \
             selective acknowledgements (tcp_info options)",
            percent(self.share)
        );
        draft
            .share(self.share)
            .saw(place, WITNESS_NAME, self.share * 100.0, held)
            .saw_if(place, "retransmitted_segments", side.retransmitted_segments(), |segments| {
                format!("the sender sent {segments:.0} segments again")
            })
            .saw_if(place, "timeouts", side.timeouts(), |timeouts| {
                format!("{timeouts:.0} retransmission time-outs (tcp_info total_rto)")
            })
            .predicted(next_after(view, &["sack-off"]))
    }
}
