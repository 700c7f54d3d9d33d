//! Every bound, one file each. To add one: write its file, add its line to [`ALL`].

mod bus;
mod cubic;
mod mathis;
mod packet_rate;
mod pftk;
mod polling;
mod ring;
mod shaper;
mod window;
mod wire;

use goodput_model::{CeilingInputs, Missing};

use crate::lines::Lines;

/// One thing that bounds goodput.
#[derive(Debug)]
pub struct Bound {
    /// Kebab-case name; also the name of its file.
    pub id: &'static str,
    /// What bounds, in a few words.
    pub title: &'static str,
    /// The formula, with the document it is from.
    pub source: &'static str,
    /// The options that it is computed from, for a person.
    pub needs: &'static str,
    /// Whether these inputs ask for it.
    pub asked: fn(&CeilingInputs) -> bool,
    /// Goodput at best, bits per second, with its arithmetic; or what is missing. Steps that could be made
    /// are shown even then.
    pub work_out: fn(&CeilingInputs, &mut Lines) -> Result<f64, Missing>,
    /// Why it is shown but does not count, if it does not.
    pub beside: fn(&CeilingInputs) -> Option<String>,
    /// Inputs that give it, for the conformance test.
    pub example: fn() -> CeilingInputs,
    /// Changes by a factor above 1 after which the bound is no lower.
    pub rises: &'static [fn(&mut CeilingInputs, f64)],
}

/// Every bound.
pub const ALL: &[&Bound] = &[
    &wire::BOUND,
    &shaper::BOUND,
    &window::BOUND,
    &mathis::BOUND,
    &cubic::BOUND,
    &pftk::BOUND,
    &bus::BOUND,
    &ring::BOUND,
    &packet_rate::BOUND,
    &polling::BOUND,
];

/// The bound of that id.
pub fn find(id: &str) -> Option<&'static Bound> {
    ALL.iter().copied().find(|bound| bound.id == id)
}

/// It always counts.
fn counts(_: &CeilingInputs) -> Option<String> {
    None
}

#[cfg(test)]
mod conformance;
