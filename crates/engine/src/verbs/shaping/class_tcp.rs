//! TCP of each class while all of them send: its record, and its rate without the edges.

use goodput_experiment::steady;
use goodput_model::{EndName, Measured, Missing, Record};
use goodput_shaping::TcpRate;

use super::ShapingRequest;
use super::sender_facts::tcp_rate_of;
use super::together::missing;
use crate::result::conclude::conclude;
use crate::result::measurement::Measurement;

/// TCP of all classes, seconds.
pub(super) const TOGETHER_S: f64 = 4.0;
/// What is left out at both ends of TCP of all classes, seconds: they don't begin and end at exactly the same time, and a
/// class that does not send lends its rate to the others. Their beginnings may be this far apart.
const EDGE_S: f64 = 0.5;

/// TCP of each class beside the others: its record, and its rate without the edges.
pub(super) fn of_beside(
    requests: &[ShapingRequest],
    measured: Vec<Result<Measurement, Missing>>,
) -> Vec<Result<(Record, TcpRate), Missing>> {
    let began: Result<Vec<f64>, Missing> = measured.iter().flatten().map(began_s).collect();
    let together = began.and_then(|began| close(&began));
    let each = requests.iter().zip(measured).map(|(request, measured)| {
        let measured = measured?;
        together.clone()?;
        rate_beside(request, measured)
    });
    each.collect()
}

/// When the receiver's samples begin, seconds on this host's clock.
fn began_s(measurement: &Measurement) -> Result<f64, Missing> {
    let clock = measurement.near.clock.as_ref();
    let clock = clock.ok_or_else(|| Missing::because("this host does not know when it began"))?;
    let later_s = match receiver(measurement) {
        EndName::Far => -measurement.sender_later_s(EndName::Near),
        EndName::Near => 0.0,
    };
    Ok(clock.began_ns as f64 / 1e9 + later_s)
}

/// Checks that the classes began so close to each other that none sent alone between the edges.
fn close(began_s: &[f64]) -> Result<(), Missing> {
    let (first, last) = began_s
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(*at), high.max(*at)));
    match last - first > EDGE_S {
        true => Err(Missing::because(format!(
            "the classes began {:.1} s apart, so each was alone for a part of the time",
            last - first
        ))),
        false => Ok(()),
    }
}

fn receiver(measurement: &Measurement) -> EndName {
    measurement.senders().first().copied().unwrap_or(EndName::Near).other()
}

fn rate_beside(
    request: &ShapingRequest,
    measurement: Measurement,
) -> Result<(Record, TcpRate), Missing> {
    let measured = without_edges(&measurement)?;
    let concluded = conclude(measurement, &request.target.text, &request.started);
    let record = concluded.map_err(missing)?.record;
    let rate = tcp_rate_of(&record, measured.goodput, &measured.precision_percent)?;
    Ok((record, rate))
}

fn without_edges(measurement: &Measurement) -> Result<Measured, Missing> {
    let receiver = measurement.end(receiver(measurement));
    let receiver = receiver.ok_or_else(|| Missing::because("the receiver reports nothing"))?;
    let counted = receiver.samples.iter().map(|sample| (sample.at_s, sample.received_bytes));
    let counted: Vec<_> =
        counted.filter(|(at_s, _)| (EDGE_S..=TOGETHER_S - EDGE_S).contains(at_s)).collect();
    steady::measure(&counted, None, 0.0)
        .ok_or_else(|| Missing::because("the receiver reports too little"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_began_one_after_the_other_were_not_beside_each_other() {
        assert_eq!(close(&[7.0, 7.3, 7.4]), Ok(()));
        assert_eq!(close(&[]), Ok(()));
        let why = close(&[7.0, 7.3, 9.0]).unwrap_err().to_string();
        assert!(why.contains("began 2.0 s apart"), "{why}");
    }
}
