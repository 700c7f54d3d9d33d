//! Which parameters the kernel alters along with another one. Nothing else counts as the effect of a
//! change, so that changes that other programs make meanwhile stay theirs.
//!
//! The conformance test writes each parameter of a network namespace and compares all others, so
//! it reveals a missing row.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/proc/sys";

/// Parameters that belong together, as paths below /proc/sys. `{}` stands for the same part of the path
/// in each of them, `*` for any.
struct Coupling {
    /// Writing one of these…
    writing: &'static [&'static str],
    /// …alters these.
    alters: &'static [&'static str],
}

/// Each of these alters all others: two units of one value, or two forms of it, of which the kernel
/// clears the other.
const fn together(names: &'static [&'static str]) -> Coupling {
    Coupling { writing: names, alters: names }
}

const fn one_way(writing: &'static [&'static str], alters: &'static [&'static str]) -> Coupling {
    Coupling { writing, alters }
}

const COUPLINGS: &[Coupling] = &[
    // mm/page-writeback.c `dirty_ratio_handler`, `dirty_bytes_handler` and the two for background
    // writing: the written one counts, the other becomes 0.
    together(&["vm/dirty_ratio", "vm/dirty_bytes"]),
    together(&["vm/dirty_background_ratio", "vm/dirty_background_bytes"]),
    // mm/util.c `overcommit_ratio_handler`, `overcommit_kbytes_handler`: the same.
    together(&["vm/overcommit_ratio", "vm/overcommit_kbytes"]),
    // mm/hugetlb_sysctl.c: one number of pages under two names.
    together(&["vm/nr_hugepages", "vm/nr_hugepages_mempolicy"]),
    // net/mptcp/ctrl.c `proc_pm_type`, `proc_path_manager`: a number and a name of one thing.
    together(&["net/mptcp/pm_type", "net/mptcp/path_manager"]),
    // net/netfilter/nf_conntrack_standalone.c: one number under two names.
    together(&["net/nf_conntrack_max", "net/netfilter/nf_conntrack_max"]),
    // net/ipv4/route.c and net/ipv6/route.c: one interval in seconds and in milliseconds.
    together(&["net/{}/route/gc_min_interval", "net/{}/route/gc_min_interval_ms"]),
    // net/core/neighbour.c: one time in two units.
    together(&["net/ipv4/neigh/{}/retrans_time", "net/ipv4/neigh/{}/retrans_time_ms"]),
    together(&["net/ipv6/neigh/{}/retrans_time", "net/ipv6/neigh/{}/retrans_time_ms"]),
    together(&[
        "net/ipv4/neigh/{}/base_reachable_time",
        "net/ipv4/neigh/{}/base_reachable_time_ms",
    ]),
    together(&[
        "net/ipv6/neigh/{}/base_reachable_time",
        "net/ipv6/neigh/{}/base_reachable_time_ms",
    ]),
    // net/core/neighbour.c: one limit of a queue, in bytes and in packets.
    together(&["net/ipv4/neigh/{}/unres_qlen", "net/ipv4/neigh/{}/unres_qlen_bytes"]),
    together(&["net/ipv6/neigh/{}/unres_qlen", "net/ipv6/neigh/{}/unres_qlen_bytes"]),
    // net/core/neighbour.c `neigh_copy_dflt_parms`: devices without their own value follow.
    one_way(&["net/ipv4/neigh/default/{}"], &["net/ipv4/neigh/*/{}"]),
    one_way(&["net/ipv6/neigh/default/{}"], &["net/ipv6/neigh/*/{}"]),
    // net/ipv4/tcp_cong.c `tcp_set_default_congestion_control`: the default is allowed to everyone.
    one_way(&["net/ipv4/tcp_congestion_control"], &["net/ipv4/tcp_allowed_congestion_control"]),
];

/// The files below /proc/sys that the kernel alters along with `file`, as far as this kernel has them.
pub(super) fn altered(file: &Path) -> Vec<PathBuf> {
    let below = |file: &Path| file.strip_prefix(ROOT).ok()?.to_str().map(str::to_owned);
    let Some(first) = below(file) else { return Vec::new() };
    let exists = |name: &String| Path::new(ROOT).join(name).is_file();
    closure(&first, &folders).into_iter().filter(exists).map(|n| Path::new(ROOT).join(n)).collect()
}

/// The parameters that another host's kernel may alter along with `name`, as paths below /proc/sys. That host's
/// devices are unknown here, so parameters of single devices are left out.
pub(crate) fn named(name: &str) -> BTreeSet<String> {
    closure(name, &|_| Vec::new())
}

/// Everything coupled with `first`, directly or indirectly.
fn closure(first: &str, folders: &dyn Fn(&str) -> Vec<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::from([first.to_owned()]);
    let mut next = vec![first.to_owned()];
    while let Some(name) = next.pop() {
        for other in directly(&name, folders) {
            if found.insert(other.clone()) {
                next.push(other);
            }
        }
    }
    found.remove(first);
    found
}

fn directly(name: &str, folders: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
    let matching = COUPLINGS.iter().filter_map(|coupling| {
        let same = coupling.writing.iter().find_map(|pattern| matched(pattern, name))?;
        Some(coupling.alters.iter().map(move |pattern| pattern.replace("{}", &same)))
    });
    matching
        .flatten()
        .flat_map(|pattern| match pattern.split_once('*') {
            None => vec![pattern],
            Some((before, after)) => {
                let all = folders(before).into_iter();
                all.map(|folder| format!("{before}{folder}{after}")).collect()
            }
        })
        .collect()
}

/// The text that `{}` of a pattern matches in `name`; empty if the pattern has none.
fn matched(pattern: &str, name: &str) -> Option<String> {
    let Some((before, after)) = pattern.split_once("{}") else {
        return (pattern == name).then(String::new);
    };
    let part = name.strip_prefix(before)?.strip_suffix(after)?;
    (!part.is_empty() && !part.contains('/')).then(|| part.to_owned())
}

fn folders(below: &str) -> Vec<String> {
    let entries = fs::read_dir(Path::new(ROOT).join(below)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Vec<String> {
        closure(name, &|_| vec!["default".into(), "eth0".into()]).into_iter().collect()
    }

    #[test]
    fn what_the_kernel_clears_or_copies_is_found_and_nothing_beside_it() {
        assert_eq!(of("vm/dirty_ratio"), ["vm/dirty_bytes"]);
        assert_eq!(of("vm/dirty_bytes"), ["vm/dirty_ratio"]);
        assert_eq!(of("vm/dirty_background_bytes"), ["vm/dirty_background_ratio"]);
        assert_eq!(of("net/ipv4/tcp_rmem"), [""; 0]);
        assert_eq!(of("net/ipv4/conf/all/rp_filter"), [""; 0]);
        let one = "net/ipv4/neigh/eth0/retrans_time";
        assert_eq!(of(one), ["net/ipv4/neigh/eth0/retrans_time_ms"]);
        let all = [
            "net/ipv4/neigh/default/retrans_time_ms",
            "net/ipv4/neigh/eth0/retrans_time",
            "net/ipv4/neigh/eth0/retrans_time_ms",
        ];
        assert_eq!(of("net/ipv4/neigh/default/retrans_time"), all);
    }

    #[test]
    fn a_part_of_a_path_is_never_more_than_one() {
        assert_eq!(matched("net/{}/route/x", "net/ipv4/route/x").as_deref(), Some("ipv4"));
        assert_eq!(matched("net/{}/route/x", "net/a/b/route/x"), None);
        assert_eq!(matched("net/{}/route/x", "net//route/x"), None);
    }

    #[test]
    fn only_what_this_kernel_has_is_altered() {
        let coupled = altered(Path::new("/proc/sys/vm/dirty_ratio"));
        assert_eq!(coupled, [Path::new("/proc/sys/vm/dirty_bytes")]);
        assert!(
            altered(Path::new("/proc/sys/net/ipv4/route/gc_min_interval_of_no_kernel")).is_empty()
        );
    }
}
