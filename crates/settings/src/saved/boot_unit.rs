//! A systemd unit that sets at boot what no file of the system itself can express (systemd.service(5)).

use std::path::Path;

use super::contents::Assignment;

/// Its path.
pub const FILE: &str = "/etc/systemd/system/goodput-settings.service";
/// The link that `systemctl enable` would create, which starts the unit at boot (systemd.unit(5), WantedBy=).
pub const WANTED: &str = "/etc/systemd/system/multi-user.target.wants/goodput-settings.service";

/// The lines of a unit that runs goodput, for each of these values. `program` is goodput.
pub fn lines(keeps: &[Assignment], program: &Path) -> String {
    let set = |(setting, value): &Assignment| {
        let assignment = quoted(&format!("{setting}={value}"));
        format!("{} settings set {assignment}", quoted(&program.to_string_lossy()))
    };
    unit(keeps.iter().map(set))
}

/// The lines of a unit that runs these lines of a shell, for a host without goodput.
pub fn lines_of_shell<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    unit(lines.into_iter().map(|line| format!("{SHELL}{}", quoted(line))))
}

/// Begins the command of a unit that runs a line of a shell.
const SHELL: &str = "/bin/sh -c ";

/// The lines of a shell that a unit with this text runs, in order: those that were given to [`lines_of_shell`].
pub fn shell_lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(COMMAND)?.strip_prefix(SHELL));
    lines.filter_map(unquoted).collect()
}

/// Begins a command of a unit. If a value can't be set because its device is gone, the others are still set (`-`).
const COMMAND: &str = "ExecStart=-";

fn unit(commands: impl Iterator<Item = String>) -> String {
    let commands: Vec<String> = commands.map(|command| format!("{COMMAND}{command}")).collect();
    format!(
        "[Unit]\nDescription=Settings that goodput keeps\nWants=network-online.target\n\
         After=network-online.target\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n{}\n\n\
         [Install]\nWantedBy=multi-user.target",
        commands.join("\n")
    )
}

/// One word of a systemd command line, where `%` begins a specifier and `$` a variable.
fn quoted(word: &str) -> String {
    let mut out = String::from('"');
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' | '$' => out.extend([c, c]),
            c => out.push(c),
        }
    }
    out + "\""
}

/// The word that [`quoted`] has quoted; `None` if it would quote no word so.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let (mut out, mut rest) = (String::new(), inner.chars());
    while let Some(c) = rest.next() {
        out.push(match c {
            '\\' => rest.next()?,
            '%' | '$' => rest.next().filter(|second| *second == c)?,
            '"' => return None,
            c => c,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_a_command_of_its_own() {
        let keeps = [
            ("qdisc.kind@eth0".parse().unwrap(), "fq".into()),
            ("sysctl.net.ipv4.tcp_rmem".parse().unwrap(), "1 2 3".into()),
        ];
        let text = lines(&keeps, Path::new("/usr/bin/goodput"));
        let first = "ExecStart=-\"/usr/bin/goodput\" settings set \"qdisc.kind@eth0=fq\"\n";
        assert!(
            text.contains(first) && text.contains("\"sysctl.net.ipv4.tcp_rmem=1 2 3\""),
            "{text}"
        );
        assert_eq!(quoted("a\"b%c$d"), "\"a\\\"b%%c$$d\"");
        let text = lines_of_shell(["'ip' 'link' 'set' \"$1\""]);
        let line = "\nExecStart=-/bin/sh -c \"'ip' 'link' 'set' \\\"$$1\\\"\"\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn the_lines_of_a_unit_are_read_as_they_were_written() {
        let lines =
            ["'ip' 'route' 'replace' \"$(ip route | sed 's/\\. %/x/')\"", "printf '%s' \\n", ""];
        assert_eq!(shell_lines(&lines_of_shell(lines)), lines);
        for odd in
            ["ExecStart=-/bin/sh -c a", "ExecStart=-/bin/sh -c \"%i\"", "ExecStart=/bin/true"]
        {
            assert!(shell_lines(odd).is_empty(), "{odd}");
        }
    }
}
