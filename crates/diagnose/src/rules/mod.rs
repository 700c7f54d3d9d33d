//! Every rule, one file each. To add one: write its file, add its line to [`ALL`].

mod cpu_quota;
mod line_rate;
mod path_loss;
mod path_rate;
pub(crate) mod queue_too_short;
mod receive_window;
mod receiver_application;
mod receiver_cpu;
mod send_buffer;
mod sender_application;
mod sender_cpu;
pub(crate) mod shaper_burst;
mod shaper_rate;

use crate::rule::Rule;

/// Every rule.
pub const ALL: &[&Rule] = &[
    &line_rate::RULE,
    &shaper_rate::RULE,
    &cpu_quota::RULE,
    &shaper_burst::RULE,
    &queue_too_short::RULE,
    &sender_application::RULE,
    &receiver_application::RULE,
    &receive_window::RULE,
    &send_buffer::RULE,
    &sender_cpu::RULE,
    &receiver_cpu::RULE,
    &path_loss::RULE,
    &path_rate::RULE,
];

/// The rule of that id.
pub fn find(id: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.id == id)
}

#[cfg(test)]
mod conformance;
