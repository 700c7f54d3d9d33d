//! Values of settings, as typed. Settings count times and bytes in units of their own, and print plain numbers; people
//! also write `50us` and `64K`.

use std::time::Duration;

use goodput_model::{Bytes, SettingRef, dscp_named, dscp_typed};
use goodput_settings::Unit;
use jiff::SignedDuration;

/// `typed` as `setting` prints it. What has no other spelling stays as it is; the setting refuses it if it is wrong.
///
/// # Errors
/// A sentence that says what to write instead.
pub fn spelled(setting: &SettingRef, typed: &str) -> Result<String, String> {
    let unit = goodput_settings::find_for(setting).ok().and_then(goodput_settings::Setting::unit);
    let number = match unit {
        Some(Unit::Time { step, word, example }) => time(typed)
            .map(|time| in_steps(time, step))
            .map(|steps| steps.ok_or_else(|| no_whole(typed, word, example)))
            .transpose()?,
        Some(Unit::Bytes) => typed.parse().ok().map(|Bytes(bytes)| u128::from(bytes)),
        // A name is shown as it is.
        Some(Unit::CodePoint) if dscp_named(typed).is_some() => return Ok(typed.to_lowercase()),
        Some(Unit::CodePoint) => dscp_typed(typed).map(u128::from),
        None => None,
    };
    Ok(number.map_or_else(|| typed.into(), |number| number.to_string()))
}

fn time(typed: &str) -> Option<Duration> {
    let time = typed.parse::<SignedDuration>().ok()?;
    Duration::try_from(time).ok()
}

fn in_steps(time: Duration, step: Duration) -> Option<u128> {
    let (time, step) = (time.as_nanos(), step.as_nanos());
    time.is_multiple_of(step).then_some(time / step)
}

fn no_whole(typed: &str, word: &str, example: &str) -> String {
    super::unfit(typed, &format!("a whole number of {word}"), format_args!("it like {example}"))
}

#[cfg(test)]
mod tests {
    fn spelled(setting: &str, typed: &str) -> Result<String, String> {
        super::spelled(&setting.parse().unwrap(), typed)
    }

    #[test]
    fn times_sizes_and_code_points_become_the_numbers_that_settings_print() {
        for (setting, typed, printed) in [
            ("coalescing.rx_usecs@eth0", "50us", "50"),
            ("coalescing.rx_usecs@eth0", "1ms", "1000"),
            ("coalescing.rx_usecs@eth0", "50", "50"),
            ("far:coalescing.rx_usecs@eth0", "50us", "50"),
            ("napi.gro_flush_timeout@eth0", "20us", "20000"),
            ("route.rto_min@default", "20ms", "20"),
            ("route.rto_min@default", "default", "default"),
            ("link.mtu@eth0", "9K", "9216"),
            ("socket.dscp", "AF41", "af41"),
            ("socket.dscp", "034", "34"),
            ("socket.dscp", "default", "default"),
            ("socket.sndbuf", "64K", "64K"),
            ("mover", "1ms", "1ms"),
            ("qdisc.fq.limit@eth0", "1ms", "1ms"),
            ("far:nothing.like.it", "1ms", "1ms"),
        ] {
            assert_eq!(spelled(setting, typed).as_deref(), Ok(printed), "{setting}={typed}");
        }
    }

    #[test]
    fn a_time_that_is_too_fine_is_refused_with_the_unit() {
        let why = spelled("coalescing.rx_usecs@eth0", "1ns").unwrap_err();
        assert_eq!(why, "\"1ns\" is not a whole number of microseconds; write it like 50us");
    }

    #[test]
    fn what_a_setting_prints_stays_as_it_is() {
        for setting in goodput_settings::settings::ALL.iter().filter(|known| known.unit().is_some())
        {
            let (name, values) = setting.example.split_once('=').unwrap();
            for value in values.split(',').filter(|value| value.bytes().all(|b| b.is_ascii_digit()))
            {
                assert_eq!(spelled(name, value).as_deref(), Ok(value), "{name}");
            }
        }
    }
}
