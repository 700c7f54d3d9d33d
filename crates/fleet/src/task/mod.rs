//! Tests as tasks: what coordinator and agents of a mesh say to each other, and what each of them then does.

mod hold;
mod message;
mod step;
mod turn;
mod word;

pub use hold::{Rival, is_sure};
pub use message::{Announcement, Answer, Call, End, FORMAT, Invitation, Outcome, Task, Unreadable};
pub use step::{Delivered, Step, step};
pub use turn::{KEPT_S, Next, Turn, next, tasks};
pub use word::word;
