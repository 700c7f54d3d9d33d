//! A mesh of hosts: in which rounds its pairs are tested and at what cost, and what explains its slow pairs.
//!
//! Pure: no I/O and no clock. The caller passes in the file's text, the records and the time.
//!
//! ```text
//! mesh file ──▶ Mesh ──▶ plan (rounds, calendar, budgets) ──▶ FleetPlan
//! records ──▶ seen (who sent to whom) ──▶ cells ──▶ fit (senders + receivers + paths) ──▶ explain ──▶ Matrix
//! plan ──▶ Turn ──▶ Task ──▶ Sealed ──▶ step (what an agent does with it) ──▶ Outcome
//! Mesh ──▶ access (what each may use on the bus) ──▶ configuration of the server
//! ```
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod access;
mod matrix;
mod mesh;
mod plan;
mod span;
mod task;

pub use access::{Login, places, server_file};
pub use matrix::{
    CELL_VALUES, Cause, Cell, CellValue, EACH_DIRECTION, Explanation, LimitSeen, Matrix, Naming,
    Observation, Pairs, Part, Question, SLOW_PERCENT, Survey, Surveyed, Tally, Unusable,
    left_out_in_words, matrix, seen, seen_between,
};
pub use mesh::{
    FOREIGN_PROTOCOLS, Mesh, MeshError, Pair, SSH, SSH_PROGRAMS, Site, SshServer, Window,
    check_site_name,
};
pub use plan::{
    Costs, FleetPlan, LeftOut, Reason, SiteShare, fewest_rounds, has_window, opening, opens_in_s,
    plan, rounds,
};
pub use span::span;
pub use task::{
    Announcement, Answer, Call, Delivered, End, FORMAT, Farewell, Invitation, KEPT_S, Left, Limits,
    Newest, Next, Outcome, Rival, Role, Sealed, Step, TASK_LIFE_S, Task, Tasks, Turn, Unreadable,
    UnreadableWish, Wanted, fitted, is_sure, next, step, task_between, tasks, word,
};
