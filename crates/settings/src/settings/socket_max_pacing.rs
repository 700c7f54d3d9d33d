//! `socket.max_pacing`: the highest rate at which the kernel paces the data sockets.

use goodput_model::BitRate;

use crate::permanent::application;
use crate::setting::{Backend, Scope, Setting};
use crate::value;

/// The least that a socket can be paced at, bits per second: the kernel counts whole bytes.
const MIN_PACING_BITS_PER_S: f64 = 8.0;

/// The setting.
pub static SETTING: Setting = Setting {
    id: "socket.max_pacing",
    title: "highest pacing rate of the data sockets",
    why: "A cap above what the path carries has no effect, a cap below it is the limit; a cap just below a policer's rate avoids the losses.",
    scope: Scope::Plan,
    values: "a rate like 90mbit, or default for no cap",
    example: "socket.max_pacing=default,90mbit",
    unset: Some(value::DEFAULT),
    permanent: |_, value| {
        application(match value.parse::<BitRate>() {
            Ok(rate) => format!(
                "setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, {:.0}), in bytes per second",
                rate.bytes_in(1.0)
            ),
            Err(_) => "no setsockopt(SO_MAX_PACING_RATE)".into(),
        })
    },
    backend: Backend::Plan(|plan, setting, text| {
        let rate = value::or_default(text, |v| {
            let rate = v.parse::<BitRate>().map_err(|e| value::bad(setting, v, e.to_string()))?;
            let fits = rate.0.is_finite() && rate.0 >= MIN_PACING_BITS_PER_S;
            fits.then_some(rate).ok_or_else(|| value::bad(setting, v, "it must be a rate above 0"))
        })?;
        plan.socket.max_pacing_bits_per_s = rate;
        Ok(())
    }),
};
