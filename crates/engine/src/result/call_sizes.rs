//! What an NFS server, or this kernel, made of the sizes of calls that a plan asks for.

use goodput_model::{Direction, Record};

/// The sizes that became others, in words.
pub fn changed(record: &Record) -> Vec<String> {
    let sizes = [("rsize", record.plan.nfs.rsize_bytes), ("wsize", record.plan.nfs.wsize_bytes)];
    let said = sizes.into_iter().filter_map(|(name, asked)| {
        let asked = asked?.0;
        let options = record.mount.as_ref().map(|mount| mount.options.as_str());
        let mounted = options.and_then(|options| of_mount(options, name));
        made_by_mount(name, asked, mounted).or_else(|| allowed(name, asked, of_calls(record, name)))
    });
    said.collect()
}

fn made_by_mount(name: &str, asked: u64, made: Option<u64>) -> Option<String> {
    let made = made.filter(|made| *made != asked)?;
    Some(format!(
        "nfs.{name}={asked}: the server or the kernel made it {made} (powers of two from 1K up to what the server allows)"
    ))
}

fn allowed(name: &str, asked: u64, made: Option<u64>) -> Option<String> {
    let made = made.filter(|made| *made < asked)?;
    Some(format!("nfs.{name}={asked}: the server allows {made}"))
}

/// The size among the options of a mount.
fn of_mount(options: &str, name: &str) -> Option<u64> {
    let mut values = options.split(',').filter_map(|option| option.split_once('='));
    values.find(|(option, _)| *option == name)?.1.parse().ok()
}

/// The size of the calls that goodput made itself. A file that is read with one call says nothing about it.
fn of_calls(record: &Record, name: &str) -> Option<u64> {
    let reads = record.plan.direction == Direction::Reverse;
    if reads != (name == "rsize") {
        return None;
    }
    let fetches = record.fetches.as_ref()?;
    let made = fetches.rpcs.as_ref()?.call_bytes.0;
    let is_whole_file = reads && fetches.file_bytes.value().is_some_and(|bytes| *bytes <= made);
    (!is_whole_file).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mount_made_of_a_size_is_said_and_nothing_else() {
        let said = |options: &str| made_by_mount("rsize", 1 << 20, of_mount(options, "rsize"));
        let other = said("rw,rsize=262144,wsize=1048576,hard").unwrap();
        assert!(other.starts_with("nfs.rsize=1048576: "), "{other}");
        assert!(other.contains("made it 262144 "), "{other}");
        assert_eq!(said("rw,rsize=1048576"), None);
        assert_eq!(said("rw,hard"), None, "unknown is not another size");
    }

    #[test]
    fn a_server_that_allows_less_is_named_with_what_it_allows() {
        let said = allowed("wsize", 1 << 20, Some(1 << 18)).unwrap();
        assert_eq!(said, "nfs.wsize=1048576: the server allows 262144");
        assert_eq!(allowed("wsize", 1 << 18, Some(1 << 18)), None);
        assert_eq!(allowed("wsize", 1 << 18, None), None);
    }
}
