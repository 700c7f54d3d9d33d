//! Converts numbers in the old programs' notation to unambiguous ones for goodput: plain bytes, plain
//! bits per second, seconds.

/// A value that is passed on unchanged.
pub fn same(text: &str) -> Result<String, String> {
    Ok(text.into())
}

/// Bytes with a suffix for a power of 1024, small or capital (iperf3 units.c, unit_atof; ttcp and
/// nuttcp alike).
pub fn size(text: &str) -> Result<String, String> {
    bytes(text).map(|bytes| bytes.to_string())
}

/// The number behind [`size`].
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, suffix) = split(text)?;
    whole(number * binary(suffix).ok_or_else(|| not_a("size", text))?, text)
}

/// Bits per second with a suffix for a power of 1000, small or capital (iperf3 units.c,
/// unit_atof_rate).
pub fn decimal_rate(text: &str) -> Result<f64, String> {
    let (number, suffix) = split(text)?;
    decimal(suffix).map(|scale| number * scale).ok_or_else(|| not_a("rate", text))
}

/// [`decimal_rate`] as text.
pub fn decimal_rate_text(text: &str) -> Result<String, String> {
    decimal_rate(text).map(|rate| rate.to_string())
}

/// A number of iperf 2.1: small suffixes are powers of 1000, capitals of 1024 (its -h; `-b 10M` of
/// 2.1.8 paces at 10485760 bit/s).
pub fn mixed(text: &str) -> Result<f64, String> {
    let (number, suffix) = split(text)?;
    let capital = suffix.chars().all(|c| c.is_ascii_uppercase());
    let scale = if capital { binary(suffix) } else { decimal(suffix) };
    scale.map(|scale| number * scale).ok_or_else(|| not_a("number with k, m, g, K, M or G", text))
}

/// [`mixed`] as whole bytes.
pub fn mixed_size(text: &str) -> Result<String, String> {
    whole(mixed(text)?, text).map(|bytes| bytes.to_string())
}

/// [`mixed`] as text.
pub fn mixed_rate_text(text: &str) -> Result<String, String> {
    mixed(text).map(|rate| rate.to_string())
}

/// Seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    let (number, suffix) = split(text)?;
    if suffix.is_empty() { Ok(number) } else { Err(not_a("number of seconds", text)) }
}

/// Seconds of nuttcp, with m for minutes, h for hours and d for days (nuttcp-6.1.2.c, case 'T').
pub fn nuttcp_seconds(text: &str) -> Result<f64, String> {
    let (number, suffix) = split(text)?;
    let scale = match suffix.to_ascii_lowercase().as_str() {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(not_a("time like 10, 2m or 1h", text)),
    };
    Ok(number * scale)
}

/// A window of nuttcp, in KB unless it has a suffix (nuttcp-6.1.2.c, case 'w').
pub fn nuttcp_window(text: &str) -> Result<String, String> {
    let (number, suffix) = split(text)?;
    let scale = match suffix.to_ascii_lowercase().as_str() {
        "" => 1024.0,
        "b" => 1.0,
        other => binary(other).ok_or_else(|| not_a("window like 512, 4m or 65536b", text))?,
    };
    whole(number * scale, text).map(|bytes| bytes.to_string())
}

/// A rate in bits per second for `--rate`; for these programs 0 means no limit.
pub fn rate(bits_per_s: f64) -> String {
    if bits_per_s == 0.0 { "unlimited".into() } else { bits_per_s.to_string() }
}

/// A rate of nuttcp.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NuttcpRate {
    /// Bits per second; 0 for no limit.
    Bits(f64),
    /// Packets per second.
    Packets(f64),
}

/// Kbit/s, or m or g for powers of 1000; packets with p at the end (nuttcp-6.1.2.c, case 'R'). An i in
/// front demands the rate from packet to packet, as goodput does anyway.
pub fn nuttcp_rate(text: &str) -> Result<NuttcpRate, String> {
    let wrong = || not_a("rate like 500, 10m, i10m or 100p", text);
    let rate = match text.strip_prefix('i') {
        Some(rate) if rate.starts_with('s') => {
            return Err("goodput has no slow start of its own".into());
        }
        Some(rate) if rate.contains('/') => {
            return Err("goodput sends packets one by one; leave the burst out".into());
        }
        rate => rate.unwrap_or(text),
    };
    if rate == "u" {
        return Ok(NuttcpRate::Bits(0.0));
    }
    let (number, suffix) = split(rate)?;
    Ok(match suffix.to_ascii_lowercase().as_str() {
        "" | "k" => NuttcpRate::Bits(number * 1e3),
        "m" => NuttcpRate::Bits(number * 1e6),
        "g" => NuttcpRate::Bits(number * 1e9),
        "p" => NuttcpRate::Packets(number),
        "kp" => NuttcpRate::Packets(number * 1e3),
        "mp" => NuttcpRate::Packets(number * 1e6),
        _ => return Err(wrong()),
    })
}

/// Splits `HOST%DEVICE`.
pub fn host_and_device(text: &str) -> (&str, Option<&str>) {
    match text.split_once('%') {
        Some((host, device)) => (host, Some(device)),
        None => (text, None),
    }
}

/// A target of goodput. A host with a scheme keeps it, so that any target is possible.
pub fn target(scheme: &str, host: &str, port: Option<&str>) -> String {
    if host.contains("://") {
        return host.into();
    }
    let bare = host.contains(':') && !host.starts_with('[');
    let host = if bare { format!("[{host}]") } else { host.into() };
    match port {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// Makes a server answer one protocol at one port, and nothing else: goodput's own port and the
/// protocol's usual one are both that port.
pub fn listen(protocol: &str, port: &str) -> [String; 2] {
    [format!("--port={port}"), format!("--protocols={protocol}={port}")]
}

/// A count of at least one.
pub fn count(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(not_a("count of at least 1", text)),
    }
}

/// Converts a decimal, octal or hexadecimal type of service to a differentiated services code point.
pub fn tos(text: &str) -> Result<String, String> {
    let tos =
        number(text).filter(|tos| *tos < 256).ok_or_else(|| not_a("type of service", text))?;
    match tos & 3 {
        0 => Ok((tos >> 2).to_string()),
        _ => {
            Err("its two lowest bits are congestion marks, which goodput leaves to the kernel"
                .into())
        }
    }
}

/// A code point, as a number or by the names of RFC 2474, 2597, 3246 and 8622.
pub fn dscp(text: &str) -> Result<String, String> {
    let named = goodput_model::dscp_named(text).map(u64::from);
    let point = named.or_else(|| number(text)).filter(|point| *point < 64);
    point.map(|point| point.to_string()).ok_or_else(|| not_a("code point", text))
}

/// [`dscp`] by name, else [`tos`], as `-S` of iperf 2 accepts it.
pub fn tos_or_dscp(text: &str) -> Result<String, String> {
    if number(text).is_some() { tos(text) } else { dscp(text) }
}

/// Decimal, octal with a leading 0, hexadecimal with 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

/// A number of at least zero, and the text after it.
fn split(text: &str) -> Result<(f64, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    match text[..end].parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((number, &text[end..])),
        _ => Err(not_a("number", text)),
    }
}

fn decimal(suffix: &str) -> Option<f64> {
    power(suffix).map(|power| 1000f64.powi(power))
}

fn binary(suffix: &str) -> Option<f64> {
    power(suffix).map(|power| 1024f64.powi(power))
}

fn power(suffix: &str) -> Option<i32> {
    let lower = suffix.to_ascii_lowercase();
    ["", "k", "m", "g", "t", "p"].iter().position(|s| *s == lower).map(|at| at as i32)
}

fn whole(bytes: f64, text: &str) -> Result<u64, String> {
    // 2^63: no transfer is larger, and a float can't count single bytes there.
    if bytes < 9.2e18 { Ok(bytes as u64) } else { Err(format!("{text:?} is too large")) }
}

fn not_a(what: &str, text: &str) -> String {
    format!("{text:?} is not a {what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_program_has_its_own_suffixes() {
        assert_eq!(size("128K").unwrap(), "131072");
        assert_eq!(size("1.5m").unwrap(), "1572864");
        assert_eq!(decimal_rate("10M").unwrap(), 1e7);
        assert_eq!(mixed("10M").unwrap(), 10_485_760.0);
        assert_eq!(mixed("10m").unwrap(), 1e7);
        assert_eq!(nuttcp_window("512").unwrap(), "524288");
        assert_eq!(nuttcp_window("65536b").unwrap(), "65536");
        assert_eq!(nuttcp_rate("500").unwrap(), NuttcpRate::Bits(5e5));
        assert_eq!(nuttcp_rate("i10m").unwrap(), NuttcpRate::Bits(1e7));
        assert_eq!(nuttcp_rate("u").unwrap(), NuttcpRate::Bits(0.0));
        assert_eq!(nuttcp_rate("1.5kp").unwrap(), NuttcpRate::Packets(1500.0));
        assert!(nuttcp_rate("i10m/5").is_err() && nuttcp_rate("is10m").is_err());
        assert_eq!(nuttcp_seconds("2m").unwrap(), 120.0);
    }

    #[test]
    fn code_points_have_names_and_three_bases() {
        assert_eq!(tos("0xb8").unwrap(), "46");
        assert_eq!(tos("0270").unwrap(), "46");
        assert_eq!(dscp("EF").unwrap(), "46");
        assert_eq!(dscp("af41").unwrap(), "34");
        assert_eq!(tos_or_dscp("cs1").unwrap(), "8");
        assert!(tos("1").unwrap_err().contains("congestion"));
        assert!(dscp("64").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_an_error(text in "[0-9.kKmMgGiupbx%/-]{0,12}|.{0,12}") {
            let _ = (size(&text), mixed_size(&text), nuttcp_rate(&text), nuttcp_window(&text));
            let _ = (decimal_rate(&text), seconds(&text), nuttcp_seconds(&text), count(&text));
            let _ = (tos(&text), dscp(&text), tos_or_dscp(&text));
        }
    }
}
