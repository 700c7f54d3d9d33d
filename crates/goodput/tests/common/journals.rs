//! What interrupted runs leave in a state directory.

use std::path::Path;

/// Number of journals of changes that are not settled. The log of changes is beside them.
pub fn journals(state_dir: &Path) -> usize {
    let entries = std::fs::read_dir(state_dir).into_iter().flatten().flatten();
    let is_journal = |name: &str| name.ends_with(".journal.jsonl");
    entries.filter(|entry| is_journal(&entry.file_name().to_string_lossy())).count()
}
