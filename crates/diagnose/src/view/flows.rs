//! What the flows of one side counted between the two ends of the window.

use std::collections::HashMap;

use goodput_model::{FlowSample, Missing, Role, TcpInfo};

use super::Side;
use super::{mean, median, positive};

impl<'a> Side<'a> {
    /// Seconds between the samples that the deltas are taken from, more than zero.
    pub fn elapsed_s(&self) -> Result<f64, Missing> {
        let (first, last) = self.edges()?;
        positive(last.at_s - first.at_s, "the time between the samples")
    }

    /// Each flow of this side at the two ends of the window; never empty.
    fn pairs(&self) -> Result<Vec<(&'a FlowSample, &'a FlowSample)>, Missing> {
        let (first, last) = self.edges()?;
        let mine = |f: &&FlowSample| f.role == self.role;
        // Looked up, because many rules ask, and there may be a thousand flows.
        let before: HashMap<u16, &FlowSample> =
            first.flows.iter().filter(mine).map(|flow| (flow.flow, flow)).collect();
        let pairs: Vec<_> = last
            .flows
            .iter()
            .filter(mine)
            .filter_map(|later| Some((*before.get(&later.flow)?, later)))
            .collect();
        if pairs.is_empty() {
            let role = if self.role == Role::Sender { "sending" } else { "receiving" };
            return Err(Missing::because(format!("no {role} flow was sampled twice")));
        }
        Ok(pairs)
    }

    /// How far each flow's counter moved within the window.
    fn deltas(
        &self,
        what: &str,
        read: impl Fn(&FlowSample) -> Result<u64, Missing>,
    ) -> Result<Vec<f64>, Missing> {
        let ran_back = || Missing::because(format!("{what} ran backwards during the measurement"));
        let delta = |(from, to): (&FlowSample, &FlowSample)| {
            read(to)?.checked_sub(read(from)?).map(|d| d as f64).ok_or_else(ran_back)
        };
        self.pairs()?.into_iter().map(delta).collect()
    }

    /// How far the counter moved, all flows together.
    pub(super) fn delta_sum(
        &self,
        what: &str,
        read: impl Fn(&FlowSample) -> Result<u64, Missing>,
    ) -> Result<f64, Missing> {
        Ok(self.deltas(what, read)?.iter().sum())
    }

    /// A counter of microseconds as a share of the window, the mean of all flows.
    pub(super) fn share(
        &self,
        what: &str,
        read: impl Fn(&FlowSample) -> Result<u64, Missing>,
    ) -> Result<f64, Missing> {
        Ok(mean(&self.deltas(what, read)?, what)? / 1e6 / self.elapsed_s()?)
    }

    /// CPU time of the busiest flow's thread as a share of the window.
    pub fn thread_cpu_share(&self) -> Result<f64, Missing> {
        let each = self.deltas("CPU time of a flow's thread", |f| f.cpu_us.get().copied())?;
        Ok(each.into_iter().fold(0.0, f64::max) / 1e6 / self.elapsed_s()?)
    }

    /// Share of the window in which this side's thread was ready to run and waited for a CPU, the
    /// mean of all flows.
    pub fn cpu_wait_share(&self) -> Result<f64, Missing> {
        self.share("the wait for a CPU", |f| f.cpu_wait_us.get().copied())
    }

    /// Share of the window in which this side's thread ran or waited for a CPU, the mean of all
    /// flows.
    pub fn cpu_wanted_share(&self) -> Result<f64, Missing> {
        let ran = self.share("CPU time of a flow's thread", |f| f.cpu_us.get().copied())?;
        Ok(ran + self.cpu_wait_share()?)
    }

    /// Share of the window in which this side's thread was in the calls that read its source, the
    /// mean of all flows.
    pub fn source_share(&self) -> Result<f64, Missing> {
        self.share("the time in the source", |f| f.source_us.get().copied())
    }

    /// Share of the window in which this side's thread was in the calls that write to its sink, the
    /// mean of all flows.
    pub fn sink_share(&self) -> Result<f64, Missing> {
        self.share("the time in the sink", |f| f.sink_us.get().copied())
    }

    /// CPU time of the flows' threads, microseconds per 10^6 payload bytes.
    pub fn cpu_us_per_mb(&self) -> Result<f64, Missing> {
        let cpu = self.delta_sum("CPU time of a flow's thread", |f| f.cpu_us.get().copied())?;
        let bytes = self.delta_sum("payload", |f| Ok(f.bytes))?;
        Ok(cpu / positive(bytes, "the payload moved")? * 1e6)
    }

    /// Payload bytes per system call.
    pub fn bytes_per_call(&self) -> Result<f64, Missing> {
        let calls = self.delta_sum("system calls", |f| f.calls.get().copied())?;
        let bytes = self.delta_sum("payload", |f| Ok(f.bytes))?;
        Ok(bytes / positive(calls, "the number of system calls")?)
    }

    /// Payload that this side sent or received within the window, bits per second.
    pub fn payload_rate(&self) -> Result<f64, Missing> {
        Ok(self.delta_sum("payload", |f| Ok(f.bytes))? * 8.0 / self.elapsed_s()?)
    }

    /// Flows that moved payload on this side within the window.
    pub fn flow_count(&self) -> Result<f64, Missing> {
        Ok(self.pairs()?.len() as f64)
    }

    /// Every sample of every flow of this side within the window.
    pub(super) fn each(&self) -> Result<impl Iterator<Item = &'a FlowSample> + use<'a>, Missing> {
        let role = self.role;
        Ok(self.samples()?.flat_map(|s| &s.flows).filter(move |f| f.role == role))
    }

    /// A quantity of every sample in the window that has one; the reason if none has.
    pub(super) fn gauges(
        &self,
        read: impl Fn(&FlowSample) -> Result<f64, Missing>,
    ) -> Result<Vec<f64>, Missing> {
        let (mut values, mut reason) = (Vec::new(), None);
        for flow in self.each()? {
            match read(flow) {
                Ok(value) => values.push(value),
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        match reason {
            Some(why) if values.is_empty() => Err(why),
            _ => Ok(values),
        }
    }

    /// The same, of tcp_info.
    pub(super) fn tcp_gauges(
        &self,
        read: impl Fn(&TcpInfo) -> Result<u64, Missing>,
    ) -> Result<Vec<f64>, Missing> {
        self.gauges(|f| Ok(read(f.tcp.get()?)? as f64))
    }

    /// Median of a tcp_info gauge over the window.
    pub(super) fn tcp_median(
        &self,
        what: &str,
        read: impl Fn(&TcpInfo) -> Result<u64, Missing>,
    ) -> Result<f64, Missing> {
        median(self.tcp_gauges(read)?, what)
    }

    /// Median share of the socket's receive memory that waits for the reader.
    pub fn receive_queue_share(&self) -> Result<f64, Missing> {
        let share = |f: &FlowSample| {
            let room = f.memory.get()?.rcvbuf_bytes as f64;
            Ok(*f.queued_bytes.get()? as f64 / positive(room, "the receive buffer")?)
        };
        median(self.gauges(share)?, "the receive queue")
    }

    /// Median of the socket's send memory limit, bytes.
    pub fn send_buffer_bytes(&self) -> Result<f64, Missing> {
        median(self.gauges(|f| Ok(f.memory.get()?.sndbuf_bytes as f64))?, "the send buffer")
    }

    /// Median of the send memory in use, bytes.
    pub fn send_memory_bytes(&self) -> Result<f64, Missing> {
        median(self.gauges(|f| Ok(f.memory.get()?.wmem_queued_bytes as f64))?, "the send memory")
    }

    /// Median share of the send memory that is in use.
    pub fn send_buffer_fill(&self) -> Result<f64, Missing> {
        let share = |f: &FlowSample| {
            let memory = f.memory.get()?;
            let room = positive(memory.sndbuf_bytes as f64, "the send buffer")?;
            Ok(memory.wmem_queued_bytes as f64 / room)
        };
        median(self.gauges(share)?, "the send buffer")
    }

    /// Median of the socket's receive memory limit, bytes.
    pub fn receive_buffer_bytes(&self) -> Result<f64, Missing> {
        median(self.gauges(|f| Ok(f.memory.get()?.rcvbuf_bytes as f64))?, "the receive buffer")
    }
}
