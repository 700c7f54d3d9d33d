//! Commands for a person to type, each with the place where it is typed if that is not here.

use goodput_model::{EndName, SettingRef};

use super::labelled::lines;
use super::style;

/// Maps an end to the address of the host that stands for it, if it is changed by SSH.
pub type Host<'a> = &'a dyn Fn(EndName) -> Option<String>;

/// The commands for who administrates a far end that does not let goodput give its settings these values.
pub fn at_the_far_end<'a>(
    out: &mut String,
    values: impl IntoIterator<Item = (&'a SettingRef, &'a str)>,
    host: Host<'_>,
) {
    let far = values.into_iter().filter(|(setting, _)| setting.end == EndName::Far);
    lines(out, "by hand", far.map(|(setting, value)| setting_command(setting, value, host)));
}

/// The command that gives a setting a value until the next boot.
pub fn setting_command(setting: &SettingRef, value: &str, host: Host<'_>) -> String {
    let host = host(setting.end);
    let command = goodput_settings::command_to_set(setting, value, host.as_deref());
    at_its_end(setting, host.as_deref(), &command)
}

/// A command, with the place where it is typed.
pub fn at_its_end(setting: &SettingRef, host: Option<&str>, command: &str) -> String {
    let command = style::strong(command);
    match (setting.end, host) {
        (EndName::Far, None) => format!("at the far end: {command}"),
        _ => command.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_the_far_end_are_for_its_administrator() {
        let [near, far] = ["sysctl.net.ipv4.tcp_sack", "far:sysctl.net.ipv4.tcp_sack"]
            .map(|name| name.parse().unwrap());
        let mut out = String::new();
        at_the_far_end(&mut out, [(&near, "0"), (&far, "0"), (&far, "1")], &|_| None);
        let said = anstream::adapter::strip_str(&out).to_string();
        let set = "at the far end: goodput settings set sysctl.net.ipv4.tcp_sack";
        assert_eq!(said, format!("by hand     {set}=0\n            {set}=1\n"));
    }
}
