//! Numbers of a link, as `ip -j link` prints them (ip-link(8)).

use serde_json::Value;

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::shell::Shell;
use goodput_settings::value;

/// One number.
pub(super) struct Number {
    /// The setting.
    pub(super) id: &'static str,
    /// Its key in JSON.
    key: &'static str,
    /// What it is called where it is changed.
    word: &'static str,
    least: u32,
}

/// The least MTU with which IPv6 keeps its addresses is 1280 (RFC 8200, 5); a queue of 0 would pass nothing in some
/// disciplines and everything in others.
pub(super) static ROWS: [Number; 2] = [
    Number { id: "link.mtu", key: "mtu", word: "mtu", least: 1280 },
    Number { id: "link.txqueuelen", key: "txqlen", word: "txqueuelen", least: 1 },
];

/// The devices but loopback, by their names.
pub(super) fn names(shell: &mut dyn Shell) -> Result<Vec<String>, RemoteError> {
    let command = Command::new("ip", ["-j", "link", "show"]);
    let links = json(shell, &command)?;
    let names = links.iter().filter_map(|link| link["ifname"].as_str());
    Ok(names.filter(|name| *name != "lo").map(str::to_owned).collect())
}

fn json(shell: &mut dyn Shell, command: &Command) -> Result<Vec<Value>, RemoteError> {
    let printed = shell.output(command)?;
    serde_json::from_str(&printed).map_err(|error| {
        let line = printed.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
        super::row::misread(shell.host(), command, line, &format!("a JSON array ({error})"))
    })
}

impl Number {
    fn show(&self, at: &At<'_>) -> Command {
        // Pretty, each member is on a line of its own.
        Command::new("ip", ["-j", "-p", "link", "show", "dev", at.scope()])
    }
}

impl Row for Number {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let command = self.show(at);
        let links = json(at.shell, &command)?;
        match &links[..] {
            [link] if link[self.key].as_u64().is_some() => Ok(link[self.key].to_string()),
            _ => Err(at.misread(
                &command,
                &Value::from(links).to_string(),
                &format!("one link with a number {:?}", self.key),
            )),
        }
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        // A value that we would not write could not be put back either.
        let now = self.read(at)?;
        let range = self.least..=i32::MAX as u32;
        value::number(at.setting, &now, &range)?;
        Ok(value::number(at.setting, value, &range)?.to_string())
    }

    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        Ok(vec![Command::new("ip", ["link", "set", "dev", at.scope(), self.word, value])])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let line =
            format!("[[:blank:]]*\"{}\": {},\\{{0,1\\}}", self.key, Condition::literal(value));
        Ok(Condition::line(self.show(at), line))
    }

    fn of_device(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    const SHOW: &str = "ip -j -p link show dev eth0";

    #[test]
    fn a_number_is_read_from_json_and_nothing_else() {
        let setting = "link.mtu@eth0".parse().unwrap();
        let read = |printed: &str| {
            let mut shell = Scripted::default().prints(SHOW, printed);
            ROWS[0].read(&mut At { shell: &mut shell, setting: &setting })
        };
        assert_eq!(read("[ {\n \"ifname\": \"eth0\",\n \"mtu\": 1500\n} ]\n").unwrap(), "1500");
        for wrong in ["", "2: eth0: mtu 1500", "[]", "[{\"mtu\":\"1500\"}]", "[{},{}]"] {
            assert!(matches!(read(wrong), Err(RemoteError::NotUnderstood { .. })), "{wrong}");
        }
    }
}
