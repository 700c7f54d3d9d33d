//! What the records say of each pair of a mesh, and what explains its slow pairs.

mod cells;
mod expected;
mod explain;
mod fit;
mod packed;
mod pairs;
mod part;
mod scale;
mod seen;
mod side;
mod student;
mod survey;
mod tally;
mod whole;
mod words;

pub use cells::Cell;
pub use explain::{Cause, Explanation, LimitSeen};
pub use pairs::Pairs;
pub use part::Part;
pub use seen::{Observation, Unusable, seen, seen_between};
pub use survey::{Survey, Surveyed};
pub use tally::{Tally, matrix};
pub use whole::{Matrix, Question, SLOW_PERCENT};
pub use words::{CELL_VALUES, CellValue, EACH_DIRECTION, Naming, left_out_in_words};
