//! What a mesh costs in rounds, time and bytes, and what the budgets leave out.

mod budget;
mod calendar;
mod gaps;
mod outline;
mod rounds;
mod schedule;

pub use calendar::{has_window, opening, opens_in_s};
pub use outline::{Costs, FleetPlan, LeftOut, Reason, SiteShare, plan};
pub use rounds::{fewest_rounds, rounds};
pub(crate) use schedule::schedule;
