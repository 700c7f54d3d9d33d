//! A mesh of hosts: in which rounds its pairs are tested and at what cost, and what explains its slow pairs.
//!
//! Pure: no I/O and no clock. The caller passes in the file's text, the records and the time.
//!
//! ```text
//! mesh file ──▶ Mesh ──▶ plan (rounds, calendar, budgets) ──▶ FleetPlan
//! records ──▶ seen (who sent to whom) ──▶ cells ──▶ fit (senders + receivers + paths) ──▶ explain ──▶ Matrix
//! plan ──▶ Turn ──▶ Task ──▶ step (what an agent does with it) ──▶ Outcome
//! ```
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod matrix;
mod mesh;
mod plan;
mod task;

pub use matrix::{
    Cause, Cell, Explanation, LimitSeen, Matrix, Observation, Part, Question, Unusable, matrix,
    seen, seen_between,
};
pub use mesh::{Mesh, MeshError, Pair, Site, Window};
pub use plan::{
    Costs, FleetPlan, LeftOut, Reason, SiteShare, fewest_rounds, opens_in_s, plan, rounds,
};
pub use task::{
    Announcement, Answer, Call, Delivered, End, FORMAT, Invitation, KEPT_S, Next, Outcome, Rival,
    Step, Task, Turn, Unreadable, is_sure, next, step, tasks, word,
};
