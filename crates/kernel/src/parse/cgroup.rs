//! Files of control groups: /proc/self/cgroup and cpu.max (cgroups(7), cgroup-v2.rst).

use super::ParseError;

/// The group of a process in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Controllers of a version 1 hierarchy; empty for version 2.
    pub controllers: Vec<String>,
    /// Path of the group in its hierarchy.
    pub path: String,
}

/// A limit of CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// CPU time per period, microseconds.
    pub quota_us: u64,
    /// The period, microseconds; at least 1.
    pub period_us: u64,
}

/// Reads /proc/self/cgroup: lines of `id:controllers:path`.
pub fn parse_membership(text: &str) -> Result<Vec<Membership>, ParseError> {
    text.lines()
        .map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                return Err(ParseError::new("/proc/self/cgroup", format!("{line:?}")));
            };
            let controllers = controllers.split(',').filter(|name| !name.is_empty());
            Ok(Membership {
                controllers: controllers.map(str::to_owned).collect(),
                path: path.into(),
            })
        })
        .collect()
}

/// Reads cpu.max of version 2: "max 100000" or "50000 100000". `None` if there is no limit.
pub fn parse_max(text: &str) -> Result<Option<Quota>, ParseError> {
    let broken = || ParseError::new("cpu.max", format!("{text:?}"));
    let mut words = text.split_ascii_whitespace();
    let (quota, period) = (words.next().ok_or_else(broken)?, words.next().ok_or_else(broken)?);
    if quota == "max" {
        return Ok(None);
    }
    let quota_us = quota.parse().map_err(|_| broken())?;
    let period_us = period.parse().ok().filter(|us| *us > 0).ok_or_else(broken)?;
    Ok(Some(Quota { quota_us, period_us }))
}

/// Reads cpu.cfs_quota_us and cpu.cfs_period_us of version 1; a negative quota is no limit.
pub fn parse_cfs(quota: &str, period: &str) -> Result<Option<Quota>, ParseError> {
    let broken = || ParseError::new("cpu.cfs_quota_us", format!("{quota:?} of {period:?}"));
    let quota: i64 = quota.trim().parse().map_err(|_| broken())?;
    let period_us = period.trim().parse().ok().filter(|us| *us > 0).ok_or_else(broken)?;
    Ok(u64::try_from(quota).ok().map(|quota_us| Quota { quota_us, period_us }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_membership_are_read() {
        let all = parse_membership("2:cpu,cpuacct:/a:b\n0::/user.slice\n").unwrap();
        assert_eq!(all[0].controllers, ["cpu", "cpuacct"]);
        assert_eq!(all[0].path, "/a:b");
        assert_eq!((all[1].controllers.len(), all[1].path.as_str()), (0, "/user.slice"));
        assert!(parse_membership("nonsense\n").is_err());
    }

    #[test]
    fn a_quota_is_read_in_both_spellings() {
        let half = Quota { quota_us: 50_000, period_us: 100_000 };
        assert_eq!(parse_max("50000 100000\n"), Ok(Some(half)));
        assert_eq!(parse_max("max 100000\n"), Ok(None));
        assert_eq!(parse_cfs("50000\n", "100000\n"), Ok(Some(half)));
        assert_eq!(parse_cfs("-1\n", "100000\n"), Ok(None));
        assert!(parse_max("50000 0\n").is_err() && parse_max("x\n").is_err());
        assert!(parse_cfs("", "100000\n").is_err() && parse_cfs("1\n", "0\n").is_err());
    }
}
