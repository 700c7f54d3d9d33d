//! What the records say of each pair of a mesh, and what explains its slow pairs.

mod cells;
mod explain;
mod fit;
mod part;
mod scale;
mod seen;
mod student;
mod survey;
mod whole;
mod words;

pub use cells::Cell;
pub use explain::{Cause, Explanation, LimitSeen};
pub use part::Part;
pub use seen::{Observation, Unusable, seen, seen_between};
pub use survey::{Survey, Surveyed};
pub use whole::{Matrix, Question, SLOW_PERCENT, matrix};
pub use words::{Naming, QUANTITIES, Quantity, left_out_in_words};
