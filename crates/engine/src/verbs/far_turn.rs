//! The turn to change a far host by its own goodput. Each run takes the hosts that it changes in one order, whichever ends they
//! stand for: in another order, each of two runs could keep the other from its second host.

use std::time::{Duration, Instant};

use goodput_wire::session::SettingRequest;

use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::near::client::Client;

/// How long another run there is waited for: as long as for the guard of an ended run, at this host or one reached by SSH.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same for one of many comparisons that share their time: as long as for another run at this host.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

/// Time between two questions. The server logs each.
const ASK_INTERVAL: Duration = Duration::from_secs(1);

/// The place of the far host in that order; `None` if it changes no settings for this client, or is too old to name it.
///
/// # Errors
/// If the conversation can't go on.
pub async fn place(client: &mut Client) -> Result<Option<Vec<String>>, EngineError> {
    if !client.far_end().changes_settings {
        return Ok(None);
    }
    match client.setting(SettingRequest::Place).await {
        Ok(words) => Ok(words_of(&words)),
        // The change itself says why it is not possible.
        Err(EngineError::FarSetting { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

fn words_of(place: &str) -> Option<Vec<String>> {
    let words: Vec<String> = place.split_whitespace().map(Into::into).collect();
    (!words.is_empty()).then_some(words)
}

/// How long a comparison waits for the far host, which may have to be given up at a certain time.
pub fn patience(given_up_at: Option<Instant>) -> Duration {
    if given_up_at.is_some() { SHORT_PATIENCE } else { PATIENCE }
}

/// Keeps other runs from changing the far host until everything is put back there. Waits while another run changes it, with
/// this patience.
///
/// # Errors
/// If that run is not done in time, or the conversation can't go on.
pub async fn hold(
    client: &mut Client,
    patience: Duration,
    listener: &mut Listener<'_>,
) -> Result<(), EngineError> {
    let began = Instant::now();
    let mut is_told = false;
    loop {
        let busy = match client.setting(SettingRequest::Hold).await {
            Err(busy @ EngineError::FarSetting { busy: true, .. }) => busy,
            // The change itself says why it is not possible.
            Ok(_) | Err(EngineError::FarSetting { .. }) => return Ok(()),
            Err(why) => return Err(why),
        };
        let left = patience.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(busy);
        }
        if !std::mem::replace(&mut is_told, true) {
            listener(Event::Note { text: waits(&client.target.text, left) });
        }
        tokio::time::sleep(ASK_INTERVAL.min(left)).await;
    }
}

/// What is waited for, in the words of a host reached by SSH.
fn waits(far: &str, left: Duration) -> String {
    let left_s = left.as_secs_f64().ceil();
    format!(
        "{far}: waiting for another goodput, which changes settings or puts them back (at most {left_s} s)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_server_names_no_place() {
        assert_eq!(words_of(""), None);
        let words = ["0b1c", "net:[4026531840]"].map(String::from);
        assert_eq!(words_of("0b1c net:[4026531840]"), Some(words.into()));
    }

    #[test]
    fn the_wait_is_said_with_its_end() {
        let said = waits("10.9.1.2", Duration::from_secs_f64(29.2));
        assert_eq!(
            said,
            "10.9.1.2: waiting for another goodput, which changes settings or puts them back (at most 30 s)"
        );
    }
}
