//! Evidence that several rules report in the same words.

use goodput_model::Role;

use crate::finding::{Draft, percent};
use crate::view::Side;

impl Draft {
    /// CPU use of a side's thread, if known.
    pub fn saw_thread_cpu(self, side: &Side) -> Self {
        let who = match side.role {
            Role::Sender => "writer",
            Role::Receiver => "reader",
        };
        self.saw_if(side.place(), "thread_cpu_share", side.thread_cpu_share(), |share| {
            format!("the {who} used {} of a CPU (CPU time of its thread)", percent(share))
        })
    }

    /// How long the receiver's window stopped the sender, if known.
    pub fn saw_closed_window(self, sender: &Side) -> Self {
        self.saw_if(sender.place(), "rwnd_limited_share", sender.rwnd_limited_share(), |share| {
            let share = percent(share);
            format!("the window stopped the sender {share} of the time (tcp_info rwnd_limited)")
        })
    }
}
