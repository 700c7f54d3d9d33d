//! One block of an arm and the baseline.

/// ln(arm / baseline) of one response in one block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) block: u32,
    pub(crate) log_ratio: f64,
    /// The condition beside the two runs, if both have it.
    pub(crate) beside: Option<Beside>,
}

/// The condition beside the runs of one block, and how the block compares with others. All are logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Beside {
    /// ln(arm / baseline) of the condition.
    pub(crate) log_ratio: f64,
    /// Sum over both runs of the response, and of the condition. Runs that swap their names change neither.
    pub(crate) response_sum: f64,
    pub(crate) condition_sum: f64,
}
