//! /proc/self/mountinfo: mounted file systems, their mount points and options (proc_pid_mountinfo(5)).

use super::ParseError;

const FILE: &str = "/proc/self/mountinfo";

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Number of the mount, as in /proc/self/fdinfo of an open file.
    pub id: u64,
    /// Number of the file system's device, "major:minor".
    pub device: String,
    /// The directory of the file system that is visible at the mount point.
    pub root: String,
    /// Where it is mounted.
    pub point: String,
    /// Type of the file system: "cgroup", "cgroup2", …
    pub kind: String,
    /// The mounted object: a device, a name, or for NFS `SERVER:/EXPORT`.
    pub source: String,
    /// Options of the file system; for a version 1 control group they include its controllers.
    pub options: Vec<String>,
}

/// Reads the file.
pub fn parse(text: &str) -> Result<Vec<Mount>, ParseError> {
    text.lines().map(line).collect()
}

/// `36 35 98:0 /root /point rw,noatime optional:1 fields:2 - kind source options`
fn line(line: &str) -> Result<Mount, ParseError> {
    let broken = || ParseError::new(FILE, format!("{line:?}"));
    let (before, after) = line.split_once(" - ").ok_or_else(broken)?;
    let before: Vec<&str> = before.split(' ').collect();
    let after: Vec<&str> = after.split(' ').collect();
    let (Some([id, _parent, device, root, point]), Some([kind, source, options])) =
        (before.first_chunk(), after.first_chunk())
    else {
        return Err(broken());
    };
    Ok(Mount {
        id: id.parse().map_err(|_| broken())?,
        device: (*device).into(),
        source: unescape(source),
        root: unescape(root),
        point: unescape(point),
        kind: (*kind).into(),
        options: options.split(',').map(str::to_owned).collect(),
    })
}

impl Mount {
    /// Whether the kernel's NFS client serves it.
    pub fn is_nfs(&self) -> bool {
        ["nfs", "nfs4"].contains(&self.kind.as_str())
    }

    /// The mounted NFS export with the visible directory of it: for a bind mount, this is only a part.
    pub fn whole_source(&self) -> String {
        match self.root.trim_end_matches('/') {
            "" => self.source.clone(),
            folder => format!("{}{folder}", self.source.trim_end_matches('/')),
        }
    }

    /// The value of an option `NAME=VALUE`.
    pub fn option(&self, name: &str) -> Option<&str> {
        value_of(&self.options, name)
    }
}

/// The value of an option `NAME=VALUE` among others.
pub(super) fn value_of<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    let pairs = options.iter().filter_map(|option| option.split_once('='));
    pairs.filter(|(found, _)| *found == name).map(|(_, value)| value).next()
}

/// Characters that would break the columns are written in octal (`mangle_path`, fs/seq_file.c).
pub(super) fn unescape(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\043", "#"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (code, character)| path.replace(code, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_are_passed_over() {
        let text = "32 31 0:29 /docker/a /sys/fs\\040x/cpu rw,relatime shared:7 master:1 - cgroup cgroup rw,cpu,cpuacct\n";
        let mounts = parse(text).unwrap();
        assert_eq!(
            (mounts[0].root.as_str(), mounts[0].point.as_str()),
            ("/docker/a", "/sys/fs x/cpu")
        );
        assert_eq!((mounts[0].kind.as_str(), mounts[0].source.as_str()), ("cgroup", "cgroup"));
        assert_eq!((mounts[0].id, mounts[0].device.as_str()), (32, "0:29"));
        assert!(mounts[0].options.contains(&"cpu".to_owned()));
    }

    #[test]
    fn a_broken_line_is_an_error() {
        assert!(parse("32 31 0:29 /\n").is_err() && parse("1 2 3 / /x rw - tmpfs\n").is_err());
    }
}
