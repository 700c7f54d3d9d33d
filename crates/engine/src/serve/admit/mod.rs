//! Who is let in, and how much of this host each may take.

pub mod access;
pub mod admission;
pub mod attempts;
pub mod back_off;
pub mod cost;
pub mod denied;
pub mod echoes;
pub mod gate;
pub mod host;
pub mod keys;
pub mod logins;
pub mod progress;
pub mod quotas;
pub mod rates;
pub mod read_budgets;
pub mod usage;
