//! Options of the search for the highest rate without loss.

use clap::Args;
use goodput_model::Bytes;

use super::measure::positive_bytes;

/// `--find-rate` and what belongs to it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Highest rate without loss")]
pub struct FindRateArgs {
    /// Search the highest rate of datagrams whose loss is under --max-loss, from the highest that the
    /// sender reaches, or --rate, downwards; a trial takes --time [default: 2 s], and the last one three
    /// times as long
    #[arg(long, requires = "udp", conflicts_with_all = ["both", "attach", "bytes", "omit", "latency",
          "format", "probe", "no_observe", "chunk"])]
    pub find_rate: bool,
    /// Share of the datagrams that may be lost
    #[arg(long, value_name = "PERCENT", requires = "find_rate", default_value = "0.1%",
          value_parser = percent)]
    pub max_loss: f64,
    /// Search for datagrams of each of these sizes [default: 1472, over IPv6 1452]
    #[arg(long, value_name = "BYTES,…", requires = "find_rate", value_delimiter = ',',
          value_parser = positive_bytes)]
    pub sizes: Vec<Bytes>,
}

/// A share in percent, below 100; the sign may be left out.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("write a share from 0 to below 100 percent, like 0.1% or 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_read_with_and_without_its_sign() {
        assert_eq!(percent("0.1%"), Ok(0.1));
        assert_eq!(percent("0"), Ok(0.0));
        assert_eq!(percent("5 %"), Ok(5.0));
        for nonsense in ["", "%", "-1%", "100%", "nan", "much"] {
            assert!(percent(nonsense).is_err(), "{nonsense}");
        }
    }
}
