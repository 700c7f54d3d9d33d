//! The vocabulary of goodput: what is planned, seen, found, changed and kept.
//!
//! Data only. Nothing here does I/O or reads a clock; every other crate speaks these words.
//! Types that leave the program (records, events) derive their JSON Schema from here.
#![forbid(unsafe_code)]
// A library returns its results. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod account;
pub mod answer;
pub mod arrivals;
pub mod burden;
pub mod capture;
pub mod ceiling;
pub mod certificate;
pub mod change;
pub mod changed_host;
pub mod check;
pub mod choice;
pub mod clocks;
pub mod comparison;
pub mod connection;
pub mod connections;
pub mod counted;
pub mod difference;
pub mod dscp;
pub mod effect;
pub mod end;
pub mod end_name;
pub mod estimate;
pub mod ethernet;
pub mod event;
pub mod evidence;
pub mod facts;
pub mod fetches;
pub mod file_parts;
pub mod finding;
mod finite;
pub mod heads;
pub mod held_to;
pub mod host_cpu;
pub mod host_limits;
pub mod kernel_settings;
pub mod known;
pub mod latency;
pub mod link_kind;
pub mod loss;
pub mod lost_flow;
pub mod mechanism;
pub mod median;
pub mod mount;
pub mod nearest;
pub mod nfs;
pub mod path_steps;
pub mod place;
pub mod placement;
pub mod plain;
pub mod plan;
pub mod rate_search;
pub mod receive_hash;
pub mod record;
mod record_json;
pub mod response;
pub mod sample;
pub mod setting;
pub mod shaper;
pub mod shaping;
pub mod shaping_class;
pub mod shell;
pub mod shown_run;
pub mod storage;
pub mod tcp_info;
pub mod thinned;
pub mod totals;
pub mod traffic_class;
pub mod transfers;
pub mod trial_pairs;
pub mod tuning;
pub mod units;
pub mod verdict;

pub use account::{Account, AccountPart, AccountShare, AccountSlice, AccountSpan, Limiter};
pub use answer::answer;
pub use arrivals::{Arrival, FlowArrivals, MAX_ARRIVALS};
pub use burden::Burden;
pub use capture::{CapturedPayload, PacketCapture, PacketSize};
pub use ceiling::{
    CeilingBound, CeilingFit, CeilingInputs, CeilingLine, CeilingPoint, CeilingReport,
    CeilingUnread,
};
pub use certificate::certificate_in_words;
pub use change::Change;
pub use changed_host::ChangedHost;
pub use check::CheckReport;
pub use choice::MoverChoice;
pub use clocks::{ClockRelation, Clocks, Exchange};
pub use comparison::{
    ArmResult, Comparison, DoseCurve, FactorEffect, FilesAlone, ResponseResult, Trial, WitnessCount,
};
pub use connection::Connection;
pub use connections::{
    ConnectionActivity, ConnectionGroup, ConnectionSummary, Connections, HeldBy, Program,
};
pub use counted::counted;
pub use difference::{Difference, thousands_apart};
pub use dscp::{dscp_named, dscp_typed};
pub use effect::{Effect, Judgement};
pub use end::{End, Host, OwnClock};
pub use end_name::EndName;
pub use estimate::{Estimate, percent_range};
pub use ethernet::{ETHERNET_CHECKSUM_BYTES, ETHERNET_HEADER_BYTES, ETHERNET_PAUSE_BYTES};
pub use event::{Decided, Event, Outlook};
pub use evidence::{Evidence, Measured};
pub use facts::{Fact, NOT_SET, Snapshot};
pub use fetches::{Fetch, FetchTimes, Fetches};
pub use file_parts::{FilePart, FileParts, PartRate};
pub use finding::{Confidence, Finding, Permanent, Undecided, Witness};
pub use heads::{FarHeads, MAX_HEAD_BYTES, MAX_HEADS_BYTES, PacketHead, PacketHeads};
pub use held_to::{HeldTo, RateLimit};
pub use host_cpu::{HostCpu, MAX_HOST_CPU, no_host_cpu};
pub use host_limits::{
    CpuGroup, CpuProfile, CpuShare, FunctionShare, HostLimits, HostWork, ProfileClock, WorkLimit,
};
pub use kernel_settings::KERNEL_SETTINGS;
pub use known::{Known, Missing};
pub use latency::{ArmLatency, IdleAndLoaded, Latency, LoadedTimes, RoundTrips};
pub use link_kind::{HARDWARE, SPEED_FROM_BELOW};
pub use loss::{Loss, LossCandidate, LossModel, LossParameter};
pub use lost_flow::LostFlow;
pub use mechanism::{AmountChange, LimitAmount, Mechanism};
pub use median::median;
pub use mount::{MountCalls, MountPlan, MountReach, MountUse};
pub use nearest::{meant, nearest};
pub use nfs::{NfsPlan, ReadArm, ReadTable, Rpcs};
pub use path_steps::{Step, StepName, StepUnit};
pub use place::Place;
pub use placement::{CpuList, FlowPlacement, Pin, Pins, Placement};
pub use plain::{is_plain, plain_char};
pub use plan::{Direction, Family, FlowPlan, Length, Plan, SocketOptions, Transport};
pub use rate_search::{RateOutcome, RateSearch, RateTrial};
pub use receive_hash::ReceiveHash;
pub use record::{DirectionResult, EndResult, Interval, Kind, Outcome, ProbeRun, Record, Sites};
pub use response::Response;
pub use sample::{DatagramCounts, FlowSample, Role, Sample, SocketMemory, no_storage};
pub use setting::SettingRef;
pub use shaper::{
    ArmRate, EnoughBucket, LocalShaper, NotProven, ShapingCause, ShapingProof, SinceLast,
    TimerLateness,
};
pub use shaping::{
    Confirmation, CountedLayer, CurvePoint, FlowSharing, GapBin, Gaps, LEAST_TCP_S,
    QueueDiscipline, REST_S, Rhythm, Shaping, ShapingKind, ShapingQueue, ShapingTest, WindowRates,
};
pub use shaping_class::{ClassAnswer, ShapingClass};
pub use shown_run::{ReceivedBy, ShownRun};
pub use storage::{Cache, Sink, Slowest, Source, Storage, StorageResult};
pub use tcp_info::TcpInfo;
pub use thinned::Thinned;
pub use totals::{FlowTotals, Totals};
pub use trial_pairs::TrialPair;
pub use tuning::{Purpose, Tuning, TuningOutcome, TuningStep};
pub use units::{BitRate, Bytes, Count, PAGE_BYTES, PacketBytes, Seconds};
pub use verdict::{Split, Verdict};
