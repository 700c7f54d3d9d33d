//! The parts of the account, by the names that rules call them.

use goodput_model::Limiter::{
    Application, CongestionWindow, Host, PathRate, ReceiveWindow, Recovery, SendBuffer, Startup,
};

use crate::account::Part;
use crate::account::Seat::{Path, Receiver, Sender};

/// The sending program had nothing to send.
pub const SENDING_PROGRAM: Part = (Application, Sender);
/// The receiving program took nothing.
pub const RECEIVING_PROGRAM: Part = (Application, Receiver);
/// The send buffer held too little.
pub const SEND_BUFFER: Part = (SendBuffer, Sender);
/// The receiver's window was full.
pub const RECEIVE_WINDOW: Part = (ReceiveWindow, Receiver);
/// The congestion window was full, after something had cut it.
pub const CUT_WINDOW: Part = (CongestionWindow, Path);
/// The connection recovered from losses.
pub const RECOVERY: Part = (Recovery, Path);
/// The path, or a shaper on it, was busy.
pub const PATH_RATE: Part = (PathRate, Path);
/// Nothing had cut slow start yet.
pub const STARTUP: Part = (Startup, Path);
/// The sender's CPU.
pub const SENDING_HOST: Part = (Host, Sender);
/// The receiver's CPU.
pub const RECEIVING_HOST: Part = (Host, Receiver);

/// What losses cost: the recovery itself, and the smaller window after it.
pub const LOSSES: &[Part] = &[CUT_WINDOW, RECOVERY];
/// What a limit of the path costs that drops packets instead of delaying them: to a congestion control that models the
/// path, it is a rate.
pub const DROPPING_LIMIT: &[Part] = &[CUT_WINDOW, RECOVERY, PATH_RATE];
/// Everything between the two hosts.
pub const PATH: &[Part] = &[CUT_WINDOW, RECOVERY, PATH_RATE, STARTUP];
/// Everything else: what both ends limit themselves.
pub const OWN_LIMITS: &[Part] = &[
    SENDING_PROGRAM,
    RECEIVING_PROGRAM,
    SEND_BUFFER,
    RECEIVE_WINDOW,
    SENDING_HOST,
    RECEIVING_HOST,
];
/// What may be in flight, as the sockets of both ends allow.
pub const WINDOWS: &[Part] = &[RECEIVE_WINDOW, SEND_BUFFER];
/// The CPU of either end.
pub const HOSTS: &[Part] = &[SENDING_HOST, RECEIVING_HOST];
