//! Round-trip times before the flows began and while they ran: a line for each way to time them.

use goodput_model::{IdleAndLoaded, Known, Latency, RoundTrips, Seconds};

/// Labels and texts.
pub fn lines(latency: &Latency) -> Vec<(&'static str, String)> {
    let ways = [
        ("connect", &latency.tcp_connect),
        ("echo", &latency.udp_echo),
        ("tcp rtt", &latency.tcp_rtt),
    ];
    let mut lines = Vec::new();
    let mut label = "latency";
    for (name, way) in ways {
        lines.push((label, format!("{name:8} {}", way_text(way))));
        label = "";
    }
    let unsent = match &latency.unsent {
        Known::Missing(why) => format!("unknown: {why}"),
        known => phase(known),
    };
    lines.push(("", format!("{:8} {unsent}", "unsent")));
    lines.push(("responsive", responsiveness(latency)));
    lines
}

fn way_text(way: &IdleAndLoaded) -> String {
    match (&way.idle, &way.loaded) {
        // One reason is enough if both are the same.
        (Known::Missing(idle), Known::Missing(loaded)) if idle == loaded => {
            format!("unknown: {idle}")
        }
        (idle, loaded) => format!("idle {} → loaded {}", phase(idle), phase(loaded)),
    }
}

fn phase(phase: &Known<RoundTrips>) -> String {
    match phase {
        Known::Value(seen) => {
            let lost = match seen.lost {
                Known::Value(lost) if lost > 0 => format!(", {lost} lost"),
                _ => String::new(),
            };
            format!(
                "{} (p99 {}, n {}{lost})",
                Seconds::of_us(seen.p50_us),
                Seconds::of_us(seen.p99_us),
                seen.n
            )
        }
        Known::Missing(why) => format!("unknown ({why})"),
    }
}

fn responsiveness(latency: &Latency) -> String {
    let rpm = |known: &Known<f64>| match known {
        Known::Value(rpm) => Some(format!("{rpm:.0}")),
        Known::Missing(_) => None,
    };
    match (rpm(&latency.loaded_rpm), rpm(&latency.idle_rpm), &latency.loaded_rpm) {
        (Some(loaded), Some(idle), _) => {
            format!("{loaded} round trips per minute under load, {idle} idle")
        }
        (Some(loaded), None, _) => format!("{loaded} round trips per minute under load"),
        (None, _, Known::Missing(why)) => format!("unknown: {why}"),
        (None, ..) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{examples, labelled::line};
    use super::*;
    use goodput_model::Missing;

    fn trips(p50_us: f64, lost: Known<u64>) -> Known<RoundTrips> {
        let (p90_us, p99_us, max_us) = (p50_us * 2.0, p50_us * 3.0, p50_us * 4.0);
        Known::Value(RoundTrips {
            n: 50,
            lost,
            min_us: 1.0,
            p50_us,
            p90_us,
            p99_us,
            max_us,
            of_every: None,
        })
    }

    #[test]
    fn each_way_has_its_line_and_a_reason_is_reported_once() {
        let why = Missing::because("the flows are UDP");
        let latency = Latency {
            tcp_connect: IdleAndLoaded {
                idle: trips(200.0, Known::Value(0)),
                loaded: trips(40_000.0, Known::Value(2)),
            },
            udp_echo: IdleAndLoaded {
                idle: trips(210.0, Known::Value(0)),
                loaded: Known::missing("none of 7 requests was answered within 3 s"),
            },
            tcp_rtt: IdleAndLoaded::missing(&why),
            unsent: trips(9_000.0, Known::missing("samples")),
            loaded_rpm: Known::Value(1499.6),
            idle_rpm: Known::Value(290_000.0),
        };
        let texts: Vec<_> = lines(&latency).into_iter().map(|(_, text)| text).collect();
        assert_eq!(
            texts,
            [
                "connect  idle 200 µs (p99 600 µs, n 50) → loaded 40 ms (p99 120 ms, n 50, 2 lost)",
                "echo     idle 210 µs (p99 630 µs, n 50) → loaded unknown (none of 7 requests was \
                 answered within 3 s)",
                "tcp rtt  unknown: the flows are UDP",
                "unsent   9 ms (p99 27 ms, n 50)",
                "1500 round trips per minute under load, 290000 idle",
            ]
        );
    }

    #[test]
    fn the_page_shows_it_as_it_is_printed() {
        let trips = |n, p50_us, p99_us| {
            let (p90_us, max_us) = (p99_us, p99_us);
            let lost = Known::Value(0);
            let (min_us, of_every) = (p50_us, None);
            Known::Value(RoundTrips { n, lost, min_us, p50_us, p90_us, p99_us, max_us, of_every })
        };
        let why = Missing::because("the flows are UDP");
        let latency = Latency {
            tcp_connect: IdleAndLoaded {
                idle: trips(51, 72.0, 202.0),
                loaded: trips(101, 16_700.0, 22_400.0),
            },
            udp_echo: IdleAndLoaded {
                idle: trips(50, 132.0, 3_990.0),
                loaded: trips(100, 16_500.0, 22_300.0),
            },
            tcp_rtt: IdleAndLoaded::missing(&why),
            unsent: Known::Missing(why),
            loaded_rpm: Known::Value(3706.0),
            idle_rpm: Known::Value(463_154.0),
        };
        let mut report = String::new();
        lines(&latency).iter().for_each(|(label, text)| line(&mut report, label, text));
        examples::assert_shown("docs/latency.md", "goodput test HOST --udp --latency", &report);
    }
}
