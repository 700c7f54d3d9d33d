//! Tests as tasks: what coordinator and agents of a mesh say to each other, and what each of them then does.

mod agent;
mod hold;
mod language;
mod left;
mod measured;
mod message;
mod newest;
mod sealed;
mod single;
mod step;
mod turn;
mod wanted;
mod word;

pub use agent::{Announcement, Limits, fitted};
pub use hold::{Rival, is_sure};
pub use language::FORMAT;
pub use left::Left;
pub use message::{Answer, Call, End, Farewell, Invitation, Outcome};
pub use newest::Newest;
pub use sealed::Sealed;
pub use single::{KEPT_S, Role, TASK_LIFE_S, Task, Unreadable};
pub use step::{Delivered, Step, step};
pub use turn::{Next, Tasks, Turn, next, tasks};
pub use wanted::{UnreadableWish, Wanted, task_between};
pub use word::word;
