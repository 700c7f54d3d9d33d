//! One block of an arm and the baseline.

/// ln(arm / baseline) of one response in one block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) block: u32,
    pub(crate) log_ratio: f64,
    /// The same for the condition beside the two runs, if both have it.
    pub(crate) beside: Option<f64>,
}
