//! Each sending connection over time, including slow start, which the measured window leaves out.

use std::collections::BTreeMap;

use goodput_model::{Missing, TcpInfo};

use super::{Episodes, Moment, Side, mean};

/// `TCP_CA_Recovery`; the only state above is `TCP_CA_Loss` (include/uapi/linux/tcp.h).
const CA_RECOVERY: u64 = 3;

impl<'a> Side<'a> {
    /// When the flows lost something, over the whole run, also before they were first sampled.
    ///
    /// # Errors
    /// If no flow reports what it sent again.
    pub fn episodes(&self) -> Result<&Episodes<'a>, Missing> {
        self.episodes_by(|| Episodes::of(self.moments(true)?))
    }

    /// Share of the samples, from the first loss, in which lost segments were being repaired. Losses of
    /// slow start count too, because their repair may take longer than slow start.
    pub fn recovering_share(&self) -> Result<f64, Missing> {
        let mut states = Vec::new();
        for connection in self.connections()? {
            let since_loss = |m: &&Moment| m.tcp.total_retrans_segments.is_some_and(|n| n > 0);
            for moment in connection.iter().filter(since_loss) {
                states.push(f64::from(u8::from(moment.tcp.ca_state()? >= CA_RECOVERY)));
            }
        }
        if states.is_empty() { Ok(0.0) } else { mean(&states, "tcp_info.ca_state") }
    }

    /// Whether losses began at most once within the measured window, and did not go on for most of it: else they are what
    /// limits. All connections together.
    pub fn hardly_loses(&self) -> Result<bool, Missing> {
        let (mut all, mut lossy, mut begins) = (0, 0, 0);
        for connection in self.connections()? {
            let mut goes_on = false;
            let measured = connection.iter().filter(|moment| moment.is_measured);
            let again = measured.map(|moment| moment.tcp.total_retrans_segments());
            let again: Vec<u64> = again.collect::<Result<_, _>>()?;
            for loses in again.windows(2).map(|pair| pair[1] > pair[0]) {
                all += 1;
                lossy += u32::from(loses);
                begins += u32::from(loses && !goes_on);
                goes_on = loses;
            }
        }
        Ok(begins <= 1 && 2 * lossy <= all)
    }

    /// The highest delivery rates that the connections saw, slow start included, all together, bits per second.
    pub fn best_delivery_rate(&self) -> Result<f64, Missing> {
        let best = |connection: Vec<Moment>| -> Result<u64, Missing> {
            let rates = connection.iter().map(|moment| moment.tcp.delivery_rate_bytes_per_s());
            rates.into_iter().try_fold(0, |best, rate| Ok(rate?.max(best)))
        };
        let bytes_per_s: u64 = self.connections()?.into_iter().map(best).sum::<Result<_, _>>()?;
        Ok(bytes_per_s as f64 * 8.0)
    }

    /// The first connection as it was sampled last.
    pub fn last_tcp(&self) -> Result<&'a TcpInfo, Missing> {
        let connections = self.connections()?;
        Ok(connections[0][connections[0].len() - 1].tcp)
    }

    /// Every connection of this side at every instant of its samples, oldest first; there is at least one
    /// connection, and none is empty.
    pub fn connections(&self) -> Result<Vec<Vec<Moment<'a>>>, Missing> {
        self.moments(false)
    }

    /// The same; if asked for, each connection that began unseen begins before its first sample.
    fn moments(&self, with_unseen: bool) -> Result<Vec<Vec<Moment<'a>>>, Missing> {
        let (mut all, mut reason) = (BTreeMap::<u16, Vec<_>>::new(), None);
        for sample in &self.end()?.samples {
            for flow in sample.flows.iter().filter(|flow| flow.role == self.role) {
                match flow.tcp.get() {
                    Ok(tcp) => {
                        let (at_s, is_measured) = (sample.at_s, self.is_measured(sample.at_s));
                        let moments = all.entry(flow.flow).or_default();
                        if with_unseen && moments.is_empty() {
                            moments.extend(self.unseen(sample, flow));
                        }
                        moments.push(Moment { at_s, is_measured, tcp });
                    }
                    Err(why) => reason = reason.or(Some(why)),
                }
            }
        }
        if all.is_empty() {
            return Err(reason.unwrap_or_else(|| Missing::because("no connection was sampled")));
        }
        Ok(all.into_values().collect())
    }
}
