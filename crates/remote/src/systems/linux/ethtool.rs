//! Settings of a device's driver, as ethtool(8) prints and accepts them: offloads, rings, channels, coalescing,
//! pause frames.

use super::row::{At, Row};
use crate::command::{Command, Condition};
use crate::error::RemoteError;
use crate::shell::Shell;
use goodput_model::{EndName, SettingRef};
use goodput_settings::value;

/// One value of one of ethtool's reports.
pub(super) struct Report {
    /// The setting.
    pub(super) id: &'static str,
    /// The options that print it and change it.
    options: [&'static str; 2],
    /// The line that it follows, if it is not the first with its label.
    section: Option<&'static str>,
    /// The beginning of its line.
    label: &'static str,
    /// Its name in a change.
    word: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Switch,
}

const CURRENT: Option<&str> = Some("Current hardware settings:");

const fn feature_row(id: &'static str, name: &'static str, label: &'static str) -> Report {
    let options = ["-k", "-K"];
    Report { id, options, section: None, label, word: name, kind: Kind::Switch }
}

const fn ring(id: &'static str, label: &'static str, word: &'static str) -> Report {
    let options = ["-g", "-G"];
    Report { id, options, section: CURRENT, label, word, kind: Kind::Number }
}

const fn channels(id: &'static str, label: &'static str, word: &'static str) -> Report {
    Report { options: ["-l", "-L"], ..ring(id, label, word) }
}

const fn times(id: &'static str, label: &'static str, word: &'static str) -> Report {
    Report { options: ["-c", "-C"], section: None, ..ring(id, label, word) }
}

const fn pause(id: &'static str, label: &'static str, word: &'static str) -> Report {
    Report { options: ["-a", "-A"], kind: Kind::Switch, ..times(id, label, word) }
}

/// Names and labels: ethtool.c, `off_flag_def` and the `dump_` functions of netlink/ in ethtool 6.
pub(super) static ROWS: [Report; 28] = [
    feature_row("offload.tso", "tso", "tcp-segmentation-offload:"),
    feature_row("offload.gso", "gso", "generic-segmentation-offload:"),
    feature_row("offload.gro", "gro", "generic-receive-offload:"),
    feature_row("offload.lro", "lro", "large-receive-offload:"),
    feature_row("offload.tx-checksum", "tx", "tx-checksumming:"),
    feature_row("offload.rx-checksum", "rx", "rx-checksumming:"),
    feature_row("offload.sg", "sg", "scatter-gather:"),
    feature_row("offload.tx-udp-segmentation", "tx-udp-segmentation", "tx-udp-segmentation:"),
    feature_row("offload.rx-udp-gro-forwarding", "rx-udp-gro-forwarding", "rx-udp-gro-forwarding:"),
    feature_row("offload.rx-gro-list", "rx-gro-list", "rx-gro-list:"),
    feature_row("offload.rx-gro-hw", "rx-gro-hw", "rx-gro-hw:"),
    feature_row(
        "offload.tx-tunnel-segmentation",
        "tx-udp_tnl-segmentation",
        "tx-udp_tnl-segmentation:",
    ),
    feature_row("offload.rx-hash", "rxhash", "receive-hashing:"),
    feature_row("offload.ntuple", "ntuple", "ntuple-filters:"),
    ring("ring.rx", "RX:", "rx"),
    ring("ring.tx", "TX:", "tx"),
    Report {
        kind: Kind::Switch,
        ..ring("ring.tcp_data_split", "TCP data split:", "tcp-data-split")
    },
    ring("ring.hds_thresh", "HDS thresh:", "hds-thresh"),
    channels("channels.rx", "RX:", "rx"),
    channels("channels.tx", "TX:", "tx"),
    channels("channels.combined", "Combined:", "combined"),
    times("coalescing.rx_usecs", "rx-usecs:", "rx-usecs"),
    times("coalescing.tx_usecs", "tx-usecs:", "tx-usecs"),
    Report { kind: Kind::Switch, ..times("coalescing.adaptive_rx", "Adaptive RX:", "adaptive-rx") },
    pause("pause.rx", "RX:", "rx"),
    pause("pause.tx", "TX:", "tx"),
    times("coalescing.rx_frames", "rx-frames:", "rx-frames"),
    times("coalescing.tx_frames", "tx-frames:", "tx-frames"),
];

/// A row of a feature, named as in ethtool.
macro_rules! feature {
    ($name:literal) => {
        feature_row(concat!("feature.", $name), $name, concat!($name, ":"))
    };
}

/// Features that are parts of one of the offloads above; they are put back one by one.
static FEATURES: [Report; 11] = [
    feature!("tx-tcp-mangleid-segmentation"),
    feature!("tx-tcp-accecn-segmentation"),
    feature!("tx-checksum-ipv4"),
    feature!("tx-checksum-ipv6"),
    feature!("tx-checksum-ip-generic"),
    feature!("tx-checksum-sctp"),
    feature!("tx-scatter-gather"),
    feature!("tx-scatter-gather-fraglist"),
    feature!("tx-tcp-segmentation"),
    feature!("tx-tcp-ecn-segmentation"),
    feature!("tx-tcp6-segmentation"),
];

/// The part of an offload with this name.
pub(super) fn feature(name: &str) -> Option<&'static Report> {
    FEATURES.iter().find(|row| row.id == name)
}

/// The driver's maximum of the setting with this name, if the driver reports one.
pub(super) fn most(shell: &mut dyn Shell, name: &str, device: &str) -> Option<u32> {
    let row = ROWS.iter().find(|row| row.id == name)?;
    let scope = Some(device.into());
    let setting = &SettingRef { end: EndName::Near, name: name.into(), scope };
    row.most(&mut At { shell, setting })
}

/// Whether it stands for several parts, which define it exactly.
pub(super) fn is_whole(id: &str) -> bool {
    ["offload.tso", "offload.tx-checksum", "offload.sg"].contains(&id)
}

/// The parts of offloads that this device can switch.
pub(super) fn features(shell: &mut dyn Shell, device: &str) -> Result<Vec<String>, RemoteError> {
    let output = shell.run(&Command::new("ethtool", ["-k", device]))?;
    let switchable = |row: &&Report| {
        let mut lines = output.stdout.lines().map(str::trim);
        lines.any(|line| line.starts_with(row.label) && !line.ends_with("[fixed]"))
    };
    Ok(FEATURES.iter().filter(switchable).map(|row| row.id.to_owned()).collect())
}

/// The arguments with which ethtool sets the parts of a feature as requested in a report, where they are below the
/// feature, after a tab. `off [requested on]` is a part that the device can't do at the moment.
fn parts(printed: &str, label: &str) -> Vec<String> {
    let below = printed.lines().skip_while(|line| !line.starts_with(label)).skip(1);
    let parts = below.take_while(|line| line.starts_with('\t'));
    let asked = parts.filter(|line| !line.ends_with("[fixed]")).filter_map(|line| {
        let (name, state) = line.trim().split_once(": ")?;
        let on = state.ends_with("[requested on]")
            || state.starts_with("on") && !state.ends_with("[requested off]");
        Some([name.to_owned(), value::on_off(on).to_owned()])
    });
    asked.flatten().collect()
}

impl Report {
    fn show(&self, at: &At<'_>) -> Command {
        Command::new("ethtool", [self.options[0], at.scope()])
    }

    /// The text after the label.
    fn line(&self, at: &mut At<'_>, section: Option<&str>) -> Result<String, RemoteError> {
        let command = self.show(at);
        let printed = at.shell.output(&command)?;
        let mut lines = printed.lines().map(str::trim);
        if let Some(section) = section
            && !lines.by_ref().any(|line| line == section)
        {
            return Err(at.misread(&command, printed.trim(), section));
        }
        match lines.find_map(|line| line.strip_prefix(self.label)) {
            Some(rest) => Ok(rest.trim().to_owned()),
            None => Err(at.misread(&command, printed.trim(), &format!("a line {}", self.label))),
        }
    }

    /// The driver's maximum, if the driver reports it.
    fn most(&self, at: &mut At<'_>) -> Option<u32> {
        self.section?;
        let most = self.line(at, Some("Pre-set maximums:")).ok()?.parse().ok()?;
        (most > 0).then_some(most)
    }
}

impl Row for Report {
    fn read(&self, at: &mut At<'_>) -> Result<String, RemoteError> {
        let rest = self.line(at, self.section)?;
        let value = rest.split_whitespace().next().unwrap_or_default();
        let good = match self.kind {
            Kind::Switch => ["on", "off"].contains(&value),
            Kind::Number => value.parse::<u32>().is_ok(),
        };
        match value {
            "n/a" => Err(at.refused("the driver does not support it")),
            value if good => Ok(value.into()),
            _ => Err(at.misread(&self.show(at), &format!("{} {rest}", self.label), "its value")),
        }
    }

    fn normalise(&self, at: &mut At<'_>, value: &str) -> Result<String, RemoteError> {
        if self.line(at, self.section)?.ends_with("[fixed]") {
            return Err(at.refused("the driver does not let it be changed"));
        }
        if self.kind == Kind::Switch {
            return Ok(value::on_off(value::switch(at.setting, value)?).into());
        }
        let most = self.most(at).unwrap_or(u32::MAX);
        Ok(value::number(at.setting, value, &(0..=most))?.to_string())
    }

    /// For the present value: its parts as they are, some of which may be on and others off.
    fn write(&self, at: &mut At<'_>, value: &str) -> Result<Vec<Command>, RemoteError> {
        let command = Command::new("ethtool", [self.options[1], at.scope()]);
        let whole = command.clone().arg(self.word).arg(value);
        if self.options[0] != "-k" || self.read(at)? != value {
            return Ok(vec![whole]);
        }
        let printed = at.shell.output(&self.show(at))?;
        let parts = parts(&printed, self.label);
        Ok(vec![if parts.is_empty() { whole } else { command.args(parts) }])
    }

    fn holds(&self, at: &mut At<'_>, value: &str) -> Result<Condition, RemoteError> {
        let blank = "[[:blank:]]";
        let line = format!(
            "{blank}*{}{blank}*{}\\({blank}.*\\)\\{{0,1\\}}",
            Condition::literal(self.label),
            Condition::literal(value)
        );
        let condition = Condition::line(self.show(at), line);
        Ok(match self.section {
            Some(section) => condition.after(Condition::literal(section)),
            None => condition,
        })
    }

    fn of_device(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use std::process;

    const RINGS: &str = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t4096\n\
                         Current hardware settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t\tn/a\n";
    const FEATURE: &str = "Features for eth0:\ntcp-segmentation-offload: off\n\ttx-tcp-segmentation: off [requested on]\n\
                           \ttx-tcp6-segmentation: on\nlarge-receive-offload: off [fixed]\n";
    const TIMES: &str =
        "Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nrx-usecs:\t3\nrx-frames:\tn/a\n";

    fn at<T>(name: &str, act: impl Fn(&dyn Row, &mut At<'_>) -> T) -> T {
        let mut shell = Scripted::default()
            .prints("ethtool -g eth0", RINGS)
            .prints("ethtool -k eth0", FEATURE)
            .prints("ethtool -c eth0", TIMES);
        let setting = format!("{name}@eth0").parse().unwrap();
        let row = ROWS.iter().chain(&FEATURES).find(|row| row.id == name).unwrap();
        act(row, &mut At { shell: &mut shell, setting: &setting })
    }

    fn read(name: &str) -> Result<String, RemoteError> {
        at(name, |row, at| row.read(at))
    }

    #[test]
    fn the_value_is_that_of_the_right_section_and_line() {
        assert_eq!(read("ring.rx").unwrap(), "256");
        assert_eq!(read("offload.tso").unwrap(), "off");
        assert_eq!(read("feature.tx-tcp6-segmentation").unwrap(), "on");
        assert_eq!(read("coalescing.adaptive_rx").unwrap(), "off");
        assert_eq!(read("coalescing.rx_usecs").unwrap(), "3");
        assert!(read("ring.tx").unwrap_err().to_string().contains("does not support"));
        assert!(matches!(read("offload.gro"), Err(RemoteError::NotUnderstood { .. })));
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        let normalise = |name: &str, value: &str| at(name, |row, at| row.normalise(at, value));
        assert_eq!(normalise("ring.rx", "4096").unwrap(), "4096");
        assert!(normalise("ring.rx", "4097").unwrap_err().to_string().contains("4096"));
        assert!(normalise("offload.lro", "on").unwrap_err().to_string().contains("does not let"));
    }

    #[test]
    fn the_host_reports_the_value_by_the_same_line() {
        let holds = |name: &str, value: &str| {
            let condition = at(name, |row, at| row.holds(at, value)).unwrap().to_string();
            let report = [("-g", RINGS), ("-k", FEATURE), ("-c", TIMES)];
            let report = report.iter().find(|(option, _)| condition.contains(option)).unwrap().1;
            let script = format!("ethtool() {{ printf '%s' \"$REPORT\"; }}; {condition}");
            let shell =
                process::Command::new("sh").args(["-c", &script]).env("REPORT", report).status();
            shell.unwrap().success()
        };
        assert!(holds("ring.rx", "256") && !holds("ring.rx", "4096"));
        assert!(holds("offload.tso", "off") && !holds("offload.tso", "on"));
        assert!(holds("feature.tx-tcp-segmentation", "off"));
        assert!(holds("coalescing.adaptive_rx", "off") && !holds("coalescing.adaptive_rx", "on"));
        assert!(holds("coalescing.rx_usecs", "3") && !holds("coalescing.rx_usecs", "30"));
    }

    #[test]
    fn the_way_back_has_the_parts_as_they_were() {
        let write = |value: &str| at("offload.tso", |row, at| row.write(at, value)).unwrap();
        assert_eq!(write("on")[0].typed(), "ethtool -K eth0 tso on");
        let parts = "ethtool -K eth0 tx-tcp-segmentation on tx-tcp6-segmentation on";
        assert_eq!(write("off")[0].typed(), parts, "one is asked for, and off for now");
    }

    #[test]
    fn features_that_are_fixed_are_left_out() {
        let mut shell = Scripted::default().prints("ethtool -k eth0", FEATURE);
        let found = features(&mut shell, "eth0").unwrap();
        assert_eq!(found, ["feature.tx-tcp-segmentation", "feature.tx-tcp6-segmentation"]);
    }
}
