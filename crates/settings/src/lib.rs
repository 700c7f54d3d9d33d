//! Everything that can be changed: read, apply, verify, and put back whatever happens.
//!
//! [`Changes`] is the only way to change the machine. The original value is on disk before a
//! setting is changed. If this process is killed, a guard process puts the value back; if the guard is
//! killed too, [`undo()`] does. A value that someone else changed meanwhile is left alone.
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod allowlist;
mod became;
mod beside;
mod by_ssh;
mod changes;
pub mod cpus;
pub mod each;
mod error;
mod footprint;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guard;
mod held;
pub mod helper;
mod holder;
mod journal;
mod leftover;
mod life;
mod live;
mod log;
mod lookup;
mod machine;
pub mod parameters;
mod permanent;
mod place;
pub mod polled;
mod private_mount;
mod privilege;
mod process;
mod restore;
pub mod rules;
mod saved;
mod scope;
mod setting;
pub mod settings;
mod settle;
mod side_effects;
mod standing;
pub mod steering;
mod sysctl_cell;
mod turn;
mod undo;
pub mod value;
mod written;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod kill_tests;
#[cfg(test)]
mod sweep_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod turn_tests;

pub use became::Became;
pub use by_ssh::DEAD_MAN;
pub use changes::Changes;
pub use error::SettingError;
pub use footprint::Footprint;
pub use guard::{GuardProgram, guard_main};
pub use held::{Awaited, Patience};
pub use holder::Holder;
pub use journal::{
    Asker, Durable, Elsewhere, JournalContents, JournalText, Opened, SealedFile, make_own_folder,
};
pub use leftover::{Leftover, Whereabouts, leftovers};
pub use live::{changes_live_flows, may_cut};
pub use log::{
    ChangeKind, LogPart, LoggedChange, enter_at as log_change_at, network_namespace,
    part as log_part,
};
pub use lookup::{
    apply_to_plan, check_scope, check_value, check_values, command_to_keep, command_to_set, find,
    find_for, may_change, permanent, read, to_keep,
};
pub use permanent::{Form, freebsd, merged};
pub use place::{default_state_dir, identity_here};
pub use private_mount::{MountAgain, PrivateMountError};
pub use process::ProcessMark;
pub use restore::{Forget, Outcome, RestoreReport, Restored};
pub use saved::{
    SaveError, SavedFile, check_savable, check_would_save, contents as saved_text, is_of_mount,
    is_started_at_boot, keeping, of_mount, remove_saved, saved, would_save,
};
pub use setting::{Assignment, Backend, Machine, Scope, Setting, Unit};
pub use settle::UndoRequest;
pub use standing::{Standing, standing};
pub use turn::Turn;
pub use undo::{settle_before, undo, undo_as_asked};
pub use written::{FileOutcome, TakenBack};
