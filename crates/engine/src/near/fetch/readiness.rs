//! What a conversation waits for, in the terms of poll(2).

use goodput_files::Ready;
use rustix::event::PollFlags;

/// The events for poll(2).
pub fn events(ready: Ready) -> PollFlags {
    match ready {
        Ready::Read => PollFlags::IN,
        Ready::Write => PollFlags::OUT,
        Ready::Either => PollFlags::IN | PollFlags::OUT,
    }
}
