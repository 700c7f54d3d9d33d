//! Invented records: 2 s, 1 MB/s a flow, samples each half second.

use goodput_model::{Direction, EndName, FlowPlan, Plan, Record, Role, Transport};
use serde_json::{Value, json};

use crate::formats::{Context, Style};

/// What is known about the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Far {
    /// Everything, as goodput reports it.
    Seen,
    /// Totals, as other programs report them.
    Reported,
    /// Nothing.
    Silent,
}

/// A kind of record.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    pub transport: Transport,
    pub direction: Direction,
    pub flows: u16,
    pub far: Far,
    pub samples: bool,
}

/// Every kind.
pub fn all_kinds() -> Vec<Made> {
    let mut all = Vec::new();
    for transport in [Transport::Tcp, Transport::Udp] {
        for direction in [Direction::Send, Direction::Reverse, Direction::Both] {
            for flows in [1, 3] {
                for far in [Far::Seen, Far::Reported, Far::Silent] {
                    for samples in [true, false] {
                        all.push(Made { transport, direction, flows, far, samples });
                    }
                }
            }
        }
    }
    all
}

impl Made {
    /// One TCP flow sent to another goodput.
    pub fn plain() -> Self {
        let (transport, direction) = (Transport::Tcp, Direction::Send);
        Self { transport, direction, flows: 1, far: Far::Seen, samples: true }
    }

    pub fn plan(&self) -> Plan {
        Plan {
            transport: self.transport,
            direction: self.direction,
            flows: self.flows,
            length: goodput_model::Length::Seconds(2.0),
            chunk_bytes: self.transport.standard_chunk(),
            ..Plan::standard()
        }
    }

    pub fn context(&self) -> Context {
        Context {
            plan: self.plan(),
            target: "192.0.2.7:6201".into(),
            started: "2026-01-02T03:04:05Z".into(),
            served: None,
            served_flows: 0,
            style: Style::default(),
        }
    }

    pub fn record(&self) -> Record {
        let missing = || json!({ "missing": "made up" });
        let cpu = |percent: Value| {
            json!({
                "cpu_percent": percent, "host_cpu_percent": missing(),
                "softirq_percent": missing(), "steal_percent": missing(),
            })
        };
        let far_cpu = if self.far == Far::Seen { json!(20.25) } else { missing() };
        let far = if self.far == Far::Seen { self.end(EndName::Far) } else { missing() };
        let mut record = json!({
            "format": 1, "kind": "test", "started": "2026-01-02T03:04:05Z",
            "target": "192.0.2.7:6201", "plan": self.plan(),
            "ends": { "near": self.end(EndName::Near), "far": far },
            "connections": self.connections(),
            "intervals": self.intervals(),
            "result": {
                "goodput_bits_per_s": 8e6 * f64::from(self.flows), "duration_s": 2.0,
                "precision_percent": missing(), "ceiling_bits_per_s": missing(),
                "directions": self.directions(), "near": cpu(json!(40.5)), "far": cpu(far_cpu),
            },
            "verdict": {
                "limit": "none", "end": "near", "share_percent": missing(), "summary": "made up",
                "sender": "near",
            },
            "findings": [], "undecided": [], "doubts": [],
        });
        if self.far == Far::Reported {
            record["far_totals"] = json!({
                "program": "made up 1.0", "cpu_percent": 12.5, "flows": self.reported_flows(),
                "cpu_user_percent": 2.5, "cpu_system_percent": 10.0, "congestion": "cubic",
                "cookie": "to6orkg3aukzfrx3ka2w4iqdn6fkb3iztjdq",
            });
        }
        serde_json::from_value(record).unwrap()
    }

    fn flow_plans(&self) -> Vec<FlowPlan> {
        self.plan().flow_plans()
    }

    fn connections(&self) -> Value {
        let one = |flow: &FlowPlan| {
            json!({
                "flow": flow.id, "local": format!("192.0.2.1:{}", 40000 + flow.id),
                "remote": "192.0.2.7:6201",
            })
        };
        if self.samples { self.flow_plans().iter().map(one).collect() } else { json!([]) }
    }

    fn end(&self, name: EndName) -> Value {
        let snapshot = |us: u64| {
            json!({
                "facts": {
                    "process.user_us": us, "process.system_us": 3 * us,
                    "sysctl.net.ipv4.tcp_congestion_control": "cubic",
                },
                "missing": {},
            })
        };
        let samples: Vec<_> = match self.samples {
            true => (0..=4).map(|half| self.sample(name, half)).collect(),
            false => Vec::new(),
        };
        json!({
            "host": { "name": "made-up", "kernel": "Linux 6.1.0", "goodput": "0.1.0", "cpus": 2 },
            "before": snapshot(0), "after": snapshot(1000), "samples": samples,
        })
    }

    /// The sample after `half` half seconds.
    fn sample(&self, name: EndName, half: u64) -> Value {
        let flows: Vec<_> = self.flow_plans().iter().map(|f| self.flow(name, f, half)).collect();
        let bytes = half * 500_000 * u64::from(self.flows);
        json!({
            "at_s": half as f64 / 2.0, "sent_bytes": bytes, "received_bytes": bytes, "flows": flows,
        })
    }

    fn flow(&self, name: EndName, flow: &FlowPlan, half: u64) -> Value {
        let missing = json!({ "missing": "made up" });
        let sends = flow.sender == name;
        let mut sample = json!({
            "flow": flow.id, "role": if sends { Role::Sender } else { Role::Receiver },
            "bytes": half * 500_000, "blocked_us": 0, "paced_us": 0, "calls": half * 4,
            "cpu_us": 0, "tcp": missing, "memory": missing, "queued_bytes": missing,
        });
        if self.transport == Transport::Tcp {
            sample["tcp"] = json!({
                "length_bytes": 248, "total_retrans_segments": half, "snd_cwnd_segments": 10,
                "snd_mss_bytes": 1448, "snd_wnd_bytes": 65536, "rtt_us": 1000 + half,
                "rttvar_us": 10, "pmtu_bytes": 1500,
            });
            sample["memory"] = json!({
                "rmem_alloc_bytes": 0, "rcvbuf_bytes": 131072, "wmem_alloc_bytes": 0,
                "sndbuf_bytes": 16384, "wmem_queued_bytes": 0, "backlog_bytes": 0, "drops": 0,
            });
        } else {
            let lost = if sends { 0 } else { half };
            sample["datagrams"] = json!({
                "sent": if sends { half * 100 } else { 0 },
                "received": if sends { 0 } else { half * 99 },
                "lost": lost, "reordered": 0, "duplicated": 0, "jitter_us": 5.0,
            });
            sample["memory"] = json!({
                "rmem_alloc_bytes": 0, "rcvbuf_bytes": 212992, "wmem_alloc_bytes": 0,
                "sndbuf_bytes": 212992, "wmem_queued_bytes": 0, "backlog_bytes": 0, "drops": 0,
            });
        }
        sample
    }

    fn reported_flows(&self) -> Vec<Value> {
        let udp = self.transport == Transport::Udp;
        let known = |yes: bool, value: Value| match yes {
            true => value,
            false => json!({ "missing": "made up" }),
        };
        let plans = self.flow_plans();
        let one = |flow: &FlowPlan| {
            let sends = flow.sender == EndName::Far;
            json!({
                "flow": flow.id, "role": if sends { Role::Sender } else { Role::Receiver },
                "bytes": 2_000_000, "duration_s": 2.0,
                "retransmits": known(sends && !udp, json!(4)),
                "datagrams": known(udp, json!(400)), "lost": known(udp && !sends, json!(4)),
                "reordered": known(udp && !sends, json!(0)),
                "jitter_us": known(udp && !sends, json!(5.0)),
            })
        };
        plans.iter().map(one).collect()
    }

    fn senders(&self) -> Vec<EndName> {
        let mut senders: Vec<_> = self.flow_plans().iter().map(|flow| flow.sender).collect();
        senders.dedup();
        senders
    }

    fn intervals(&self) -> Value {
        let bytes = 1_000_000 * u64::from(self.flows);
        let one = |sender: EndName, from: f64| {
            json!({
                "sender": sender, "from_s": from, "to_s": from + 1.0, "received_bytes": bytes,
                "goodput_bits_per_s": bytes * 8,
            })
        };
        let times = if self.samples { vec![0.0, 1.0] } else { Vec::new() };
        let senders = self.senders();
        times.into_iter().flat_map(|from| senders.iter().map(move |s| one(*s, from))).collect()
    }

    fn directions(&self) -> Value {
        let known = self.far != Far::Silent;
        let bytes = |known: bool| match known {
            true => json!(2_000_000 * u64::from(self.flows)),
            false => json!({ "missing": "made up" }),
        };
        let one = |sender: &EndName| {
            let near = *sender == EndName::Near;
            json!({
                "sender": sender, "goodput_bits_per_s": 8e6 * f64::from(self.flows),
                "received_bytes": bytes(!near || known), "sent_bytes": bytes(near || known),
                "retransmitted_bytes": { "missing": "made up" },
                "retransmits": { "missing": "made up" }, "rtt_us": 1002.0, "min_rtt_us": 1000.0,
                "lost_percent": { "missing": "made up" }, "jitter_us": { "missing": "made up" },
            })
        };
        self.senders().iter().map(one).collect()
    }
}
