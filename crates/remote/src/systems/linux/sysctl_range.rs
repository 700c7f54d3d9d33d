//! Which values a host's kernel refuses for a network parameter, and which numbers it takes: tried in a temporary network
//! namespace of that host (unshare(1), util-linux), as goodput does on this host.

use goodput_settings::parameters;
use goodput_settings::value::bad;

use super::row::At;
use crate::command::Command;
use crate::error::RemoteError;

/// Makes a namespace whose parameters in the folder of `$2` are like those of the host, and runs the script `$1` there
/// with all other arguments. With a second file, grep(1) names the first one also if it is alone.
const IN_NAMESPACE: &str = "try=$1; shift; grep -s . \"/proc/sys/${1%/*}\"/* /dev/null 2>/dev/null | \
    unshare --net sh -c \"$try\" sh \"$@\"";

/// Prints `refused` if the kernel refuses the value `$2` of the parameter `$1`, and then the least and the largest number
/// that it takes, found by bisection from the present one, if that is a number. What the kernel takes may depend on the
/// parameters beside, which are set twice, because the order may matter, and on those that are set before: the arguments
/// after the first two, in pairs. printf(1) says why a file refuses, a shell's own
/// may not.
const TRY: &str = "all=$(cat); for i in 1 2; do printf '%s\\n' \"$all\" | while IFS=: read -r f v; do \
    read -r c <\"$f\" && [ \"$c\" = \"$v\" ] || printf '%s\\n' \"$v\" >\"$f\"; done 2>/dev/null; done; \
    n=/proc/sys/$1; new=$2; [ -e \"$n\" ] || exit 0; shift 2; \
    while [ $# -gt 1 ]; do printf '%s\\n' \"$2\" >\"/proc/sys/$1\"; shift 2; done 2>/dev/null; \
    said=$(env printf '%s\\n' \"$new\" 2>&1 >\"$n\") && exit 0; \
    case $said in *'Invalid argument'*|*'out of range'*) echo refused;; *) exit 0;; esac; \
    w() { printf '%s\\n' \"$1\" 2>/dev/null >\"$n\"; }; \
    t() { w \"$1\" && [ \"$(cat \"$n\")\" = \"$1\" ]; }; now=$(cat \"$n\" 2>/dev/null) || exit 0; \
    case $now in ''|*[!0-9-]*) exit 0;; esac; t \"$now\" || exit 0; \
    e() { g=$now; b=$1; if t \"$b\"; then g=$b; else \
    while [ $((g - b)) -gt 1 ] || [ $((b - g)) -gt 1 ]; do m=$(((g + b) / 2)); \
    if t \"$m\"; then g=$m; else b=$m; fi; done; fi; echo \"$g\"; }; \
    for most in 18446744073709551615 4294967295 2147483647 no; do t $most && break; done; \
    [ $most != no ] || most=$(e 2147483647); echo \"$(e -2147483648) $most\"";

/// Refuses a value that the kernel there would refuse once `earlier` is in effect, if every network namespace has the parameter and the login may
/// make a namespace. Otherwise only a change can tell, except what no kernel takes. `name` is the parameter's file below /proc/sys.
pub(super) fn check(
    at: &mut At<'_>,
    name: &str,
    value: &str,
    earlier: &[(String, String)],
) -> Result<(), RemoteError> {
    parameters::check_value(at.setting, value)?;
    if !may_be_tried(name) {
        return Ok(());
    }
    let tried = at.shell.run(&attempt(name, value, earlier))?;
    let mut lines = tried.stdout.lines();
    if lines.next() != Some("refused") {
        return Ok(());
    }
    let host = at.shell.host();
    let why = match (value.parse::<i128>(), lines.next().and_then(range)) {
        (Ok(number), Some((least, most))) if !(least..=most).contains(&number) => {
            format!("the kernel of {host} takes {least} to {most}")
        }
        _ => format!("the kernel of {host} does not take it"),
    };
    Err(bad(at.setting, value, why).into())
}

/// Whether a trial in a namespace leaves the host alone.
fn may_be_tried(name: &str) -> bool {
    name.starts_with("net/") && !parameters::OF_ALL_NAMESPACES.contains(&name)
}

fn attempt(name: &str, value: &str, earlier: &[(String, String)]) -> Command {
    let purpose = format!("try {value:?} for {name} in a network namespace of its own");
    let earlier = earlier.iter().filter(|(name, _)| may_be_tried(name));
    let earlier = earlier.flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    Command::script(purpose, IN_NAMESPACE, [TRY, name, value].into_iter().chain(earlier))
}

fn range(line: &str) -> Option<(i128, i128)> {
    let (least, most) = line.split_once(' ')?;
    Some((least.parse().ok()?, most.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    #[test]
    fn what_is_refused_is_said_with_the_range_and_all_else_is_left_to_the_change() {
        let said = |printed: &str, name: &str, value: &str| {
            let setting = format!("sysctl.{name}").parse().unwrap();
            let file = name.replace('.', "/");
            let typed = attempt(&file, value, &[]).typed();
            let mut shell = Scripted::default().prints(&typed, printed);
            check(&mut At { shell: &mut shell, setting: &setting }, &file, value, &[])
                .map_err(|why| why.to_string())
        };
        let name = "net.ipv4.tcp_reordering";
        assert!(said("refused\n1 300\n", name, "301").unwrap_err().contains("takes 1 to 300"));
        for (printed, value) in [("refused\n1 300\n", "300"), ("refused\n", "many")] {
            let why = said(printed, name, value).unwrap_err();
            assert!(why.contains("does not take it"), "{printed} {value}: {why}");
        }
        assert_eq!(said("", name, "300"), Ok(()));
        assert_eq!(said("refused\n1 300\n", "vm.swappiness", "100"), Ok(()), "not tried");
        assert!(said("", "vm.swappiness", "301").unwrap_err().contains("more than 200"));
        let falling = said("", "net.ipv4.tcp_rmem", "9000 5 4").unwrap_err();
        assert!(falling.contains("must not fall"), "no kernel refuses it: {falling}");
    }

    #[test]
    fn a_host_tries_it_and_judges_what_depends_on_another_parameter() {
        let home = tempfile::tempdir().unwrap();
        goodput_testing::in_namespace(|| {
            let sh = |command: &Command| {
                let mut shell = std::process::Command::new("sh");
                shell.args(["-c", &command.to_string()]).env("LC_ALL", "C");
                let output = shell.current_dir(home.path()).output();
                String::from_utf8(output.unwrap().stdout).unwrap()
            };
            let tried = |name: &str, value: &str| sh(&attempt(name, value, &[]));
            assert_eq!(tried("net/ipv4/tcp_reordering", "301"), "refused\n1 300\n");
            assert_eq!(tried("net/ipv4/tcp_reordering", "299"), "");
            assert_eq!(tried("net/ipv4/tcp_rmem", "0 0 0"), "refused\n");
            assert_eq!(tried("net/ipv4/none", "1"), "");
            assert_eq!(tried("net/unix/max_dgram_qlen", "100"), "", "alone in its folder");
            let start = "net/ipv4/ip_unprivileged_port_start";
            assert!(tried(start, "33000").starts_with("refused\n"));
            let both = [("net/ipv4/ip_local_port_range".to_owned(), "40000 50000".to_owned())];
            assert_eq!(sh(&attempt(start, "33000", &both)), "", "after another one");
            assert!(tried(start, "33000").starts_with("refused\n"), "nothing is changed");
            let range = ["-q", "-w", "net/ipv4/ip_local_port_range=40000 50000"];
            sh(&Command::new("sysctl", range));
            assert_eq!(tried(start, "33000"), "");
        });
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing is left there");
    }
}
