//! What all parts of an agent know.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::commands::fleet::places::Places;

/// This agent.
pub(super) struct Here<'a> {
    /// Its site.
    pub site: String,
    /// The word of its site on the bus.
    pub word: String,
    /// Tells it apart from others of the same name.
    pub session: String,
    /// Longest test that it takes part in, seconds.
    pub max_duration_s: f64,
    /// The bus.
    pub places: &'a Places,
    /// The right to be in a test: it is in one at a time.
    pub turn: Arc<Mutex<()>>,
}
