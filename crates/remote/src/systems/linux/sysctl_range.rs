//! Which numbers a host's kernel takes for a network parameter that it has just refused to change. They are tried in a
//! temporary network namespace of that host (unshare(1), util-linux), as goodput does on this host.

use goodput_model::SettingRef;
use goodput_settings::SettingError;

use super::sysctl;
use crate::command::Command;
use crate::error::RemoteError;
use crate::shell::Shell;

/// Prints the least and the largest number that the kernel takes for a parameter, found by bisection from the present
/// one; nothing if that is no number or the namespace lacks it.
const SEARCH: &str = "n=/proc/sys/$1; w() { printf '%s\\n' \"$1\" 2>/dev/null >\"$n\"; }; \
    t() { w \"$1\" && [ \"$(cat \"$n\")\" = \"$1\" ]; }; now=$(cat \"$n\" 2>/dev/null) || exit 0; \
    case $now in ''|*[!0-9-]*) exit 0;; esac; t \"$now\" || exit 0; \
    e() { g=$now; b=$1; if t \"$b\"; then g=$b; else \
    while [ $((g - b)) -gt 1 ] || [ $((b - g)) -gt 1 ]; do m=$(((g + b) / 2)); \
    if t \"$m\"; then g=$m; else b=$m; fi; done; fi; echo \"$g\"; }; \
    for most in 18446744073709551615 4294967295 2147483647 no; do t $most && break; done; \
    [ $most != no ] || most=$(e 2147483647); echo \"$(e -2147483648) $most\"";

/// The refusal of a number with the range of the parameter, if the number is outside; otherwise the refusal as it is.
pub(super) fn explained(
    shell: &mut dyn Shell,
    setting: &SettingRef,
    value: &str,
    refusal: RemoteError,
) -> RemoteError {
    let (RemoteError::Failed { .. }, Ok(number)) = (&refusal, value.parse::<i128>()) else {
        return refusal;
    };
    match range(shell, setting) {
        Some((least, most)) if !(least..=most).contains(&number) => {
            let cause = format!("the kernel of {} takes {least} to {most}", shell.host()).into();
            let operation = format!("change it to {value:?}");
            SettingError::Refused { operation, setting: setting.clone(), cause }.into()
        }
        _ => refusal,
    }
}

fn range(shell: &mut dyn Shell, setting: &SettingRef) -> Option<(i128, i128)> {
    let name = sysctl::name(setting).ok().filter(|name| name.starts_with("net/"))?;
    let search = Command::new("unshare", ["--net", "sh", "-c", SEARCH, "sh", &name]);
    let printed = shell.output(&search).ok()?;
    let (least, most) = printed.trim().split_once(' ')?;
    Some((least.parse().ok()?, most.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    fn explained_with(printed: &str, name: &str, value: &str) -> String {
        let setting: SettingRef = format!("sysctl.{name}").parse().unwrap();
        let path = name.replace('.', "/");
        let search = Command::new("unshare", ["--net", "sh", "-c", SEARCH, "sh", &path]);
        let mut shell = Scripted::default().prints(&search.typed(), printed);
        let refusal = RemoteError::Failed {
            host: "b".into(),
            command: "sysctl".into(),
            status: 1,
            said: "Invalid argument".into(),
        };
        explained(&mut shell, &setting, value, refusal).to_string()
    }

    #[test]
    fn a_number_outside_gets_the_range_and_all_else_stays_as_the_host_said() {
        let name = "net.ipv4.tcp_reordering";
        assert!(explained_with("1 300\n", name, "301").contains("takes 1 to 300"));
        for (printed, name, value) in [
            ("1 300\n", name, "300"),
            ("1 300\n", name, "many"),
            ("\n", name, "301"),
            ("1 300\n", "vm.swappiness", "301"),
        ] {
            let said = explained_with(printed, name, value);
            assert!(said.contains("Invalid argument"), "{printed} {name} {value}: {said}");
        }
    }
}
