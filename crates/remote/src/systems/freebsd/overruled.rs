//! Lines of other files that FreeBSD reads after ours: rc.conf(5), sysctl.conf(5), rc.subr(8) `load_rc_config`.

use goodput_model::SettingRef;
use goodput_settings::{Assignment, freebsd};

use super::kinds::Kind;
use crate::command::Command;
use crate::shell::Shell;

/// Prints every line of the files that are there and not empty, each with its path.
const LINES: &str = "for f in \"$@\"; do [ ! -f \"$f\" ] || grep -H . \"$f\"; done; :";

/// A file of ours, and the files that are read after it, in this order. A `*` stands for every file of a folder.
const LATER: [(&str, &[&str]); 2] = [
    (
        "/etc/rc.conf",
        &[
            "/etc/rc.conf.local",
            // netif and network.subr load both names.
            "/etc/rc.conf.d/network",
            "/etc/rc.conf.d/network/*",
            "/etc/rc.conf.d/netif",
            "/etc/rc.conf.d/netif/*",
            "/usr/local/etc/rc.conf.d/network",
            "/usr/local/etc/rc.conf.d/network/*",
            "/usr/local/etc/rc.conf.d/netif",
            "/usr/local/etc/rc.conf.d/netif/*",
        ],
    ),
    ("/etc/sysctl.conf", &["/etc/sysctl.conf.local"]),
];

/// The values that our lines in the file at `path` keep and a later file overrules, with the last such file.
pub(super) fn overruled(
    shell: &mut dyn Shell,
    path: &str,
    keeps: &[Assignment],
) -> Vec<(SettingRef, String)> {
    let files = LATER.iter().find(|(own, _)| *own == path).map_or(&[][..], |(_, later)| later);
    let printed = shell.run(&look(files)).map(|output| output.stdout).unwrap_or_default();
    let host = shell.host().to_owned();
    let by = |(setting, value): &Assignment| {
        let ours = Kind::of(&host, setting).ok()?.permanent(value).lines;
        let mut lines = printed.lines().filter_map(|line| line.split_once(':'));
        let (file, _) = lines.rfind(|(_, line)| is_against(line, &ours))?;
        Some((setting.clone(), file.to_owned()))
    };
    keeps.iter().filter_map(by).collect()
}

fn look(files: &[&str]) -> Command {
    // Not quoted: the shell fills in the names that `*` stands for.
    let script = format!("set -- {}; {LINES}", files.join(" "));
    Command::script("read what is set after goodput's lines", &script, [""; 0])
}

/// Whether a later `line` takes away what `ours` sets: it gives the same name another value, without the value before or
/// with another one of the same option.
fn is_against(line: &str, ours: &str) -> bool {
    let line = line.trim_start();
    let (Some((name, own)), Some((theirs, value))) = (ours.split_once('='), line.split_once('='))
    else {
        return false;
    };
    if name != theirs.trim_end() {
        return false;
    }
    let ours = freebsd::options_before(name);
    let before = [format!("${{{name}}}"), format!("${{{name}-"), format!("${name}")];
    let Some(option) = own.trim_matches('"').strip_prefix(&ours) else {
        return value.trim().trim_matches('"') != own.trim().trim_matches('"');
    };
    if !before.iter().any(|before| value.contains(before.as_str())) {
        return true;
    }
    let bare = |word: &str| word.trim_matches('"').trim_start_matches('-').to_owned();
    let Some(first) = option.split_whitespace().next().map(bare) else { return false };
    value.split_whitespace().any(|word| bare(word) == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    #[test]
    fn a_line_that_drops_or_turns_round_ours_is_against_it() {
        let ours = "ifconfig_em0=\"${ifconfig_em0-${ifconfig_DEFAULT}} polling\"";
        for line in [
            "ifconfig_em0=\"inet 192.0.2.1/24\"",
            "  ifconfig_em0=DHCP",
            "ifconfig_em0=\"${ifconfig_em0} -polling\"",
            "ifconfig_em0=\"polling\"",
        ] {
            assert!(is_against(line, ours), "{line}");
        }
        for line in [
            "#ifconfig_em0=\"DHCP\"",
            "ifconfig_em0=\"$ifconfig_em0 mtu 9000\"",
            "ifconfig_em0=\"${ifconfig_em0} -tso4\"",
            "ifconfig_em0=\"${ifconfig_em0-${ifconfig_DEFAULT}} -tso4\"",
            "ifconfig_em1=\"DHCP\"",
            "ifconfig_em0_ipv6=\"inet6 accept_rtadv\"",
            "hostname=\"b\"",
            "# goodput",
        ] {
            assert!(!is_against(line, ours), "{line}");
        }
        assert!(is_against("kern.polling.burst_max = 150", "kern.polling.burst_max=1000"));
        assert!(!is_against("kern.polling.burst=150", "kern.polling.burst_max=1000"));
    }

    #[test]
    fn the_last_file_that_is_against_a_value_is_named_with_it() {
        let typed = look(LATER[0].1).typed();
        let printed = "/etc/rc.conf.local:ifconfig_em0=\"DHCP\"\n\
                       /etc/rc.conf.d/netif:# nothing\n\
                       /etc/rc.conf.d/netif:ifconfig_em0=\"DHCP mtu 1500\"\n";
        let mut shell = Scripted::default().prints(&typed, printed);
        let keeps: Vec<Assignment> = [("link.mtu@em0", "9000"), ("link.mtu@em1", "9000")]
            .map(|(setting, value)| (setting.parse().unwrap(), value.to_owned()))
            .into();
        let found = overruled(&mut shell, "/etc/rc.conf", &keeps);
        assert_eq!(found, [(keeps[0].0.clone(), "/etc/rc.conf.d/netif".to_owned())]);
        assert_eq!(overruled(&mut Scripted::default(), "/etc/rc.conf", &keeps), []);
    }
}
