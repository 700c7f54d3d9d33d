//! What can be seen of a network namespace, to find any change that was not put back.

/// A script that prints all of it, except what counts or changes on its own.
pub fn look(devices: &[&str]) -> String {
    let devices = devices.join(" ");
    format!(
        "sysctl -a -r '^net' 2>/dev/null | grep -v -e nf_conntrack -e random -e inuse; ip -d -o link; ip -o addr; \
         ip route show table all; tc qdisc show; tc class show; \
         for d in {devices}; do for o in -k -g -l -c -a; do ethtool $o $d 2>&1; done; done"
    )
}

/// The lines that are only in one of two views, `-` before those that are gone, `+` before new ones.
pub fn difference(before: &[String], after: &[String]) -> Vec<String> {
    let only = |these: &[String], others: &[String], sign: char| {
        let only = these.iter().filter(|line| !others.contains(line));
        only.map(|line| format!("{sign} {line}")).collect::<Vec<_>>()
    };
    [only(before, after, '-'), only(after, before, '+')].concat()
}
