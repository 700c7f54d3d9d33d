//! Events of a running measurement, and where they go.

pub use goodput_model::{Decided, Event, Outlook};

/// Where events go. Called from the thread that drives the measurement; must not block for long.
pub type Listener<'a> = dyn FnMut(Event) + 'a;
