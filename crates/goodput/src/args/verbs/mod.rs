//! What each verb takes, beside the options of a measurement. One file a verb.

mod check;
mod compare;
mod generate;
mod history;
mod key;
mod lab;
mod list;
mod old_names;
mod serve;
mod settings;
mod test;

pub use check::CheckArgs;
pub use compare::CompareArgs;
pub use generate::Generate;
pub use history::HistoryArgs;
pub use key::KeyArgs;
pub use lab::Lab;
pub use list::{ListArgs, Listed, Narrowed};
pub use old_names::AsArgs;
pub use serve::{ServeArgs, ServedFileArgs, WhenBusy};
pub use settings::Settings;
pub use test::TestArgs;
