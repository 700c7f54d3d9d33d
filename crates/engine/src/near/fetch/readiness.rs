//! What a conversation waits for, in the words of poll(2).

use goodput_files::Ready;
use rustix::event::PollFlags;

/// What poll(2) is to look for.
pub fn events(ready: Ready) -> PollFlags {
    match ready {
        Ready::Read => PollFlags::IN,
        Ready::Write => PollFlags::OUT,
        Ready::Either => PollFlags::IN | PollFlags::OUT,
    }
}
