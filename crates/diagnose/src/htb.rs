//! The htb class that the measured flows went through, judged by the growth of its counters.

use goodput_model::Missing;

use crate::names::CLASS_DEFAULT;
use crate::view::Side;

/// Share of all bytes sent through leaf classes at which a class is the flows' own.
const MIN_OWN_CLASS_BYTES_SHARE: f64 = 0.8;

/// A leaf class.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf<'a> {
    /// Its handle as tc(8) writes it.
    pub id: &'a str,
    /// The effective rate limit: the lowest ceil from here to the root, bits per second.
    pub ceil: f64,
    /// The smaller of its two bursts that applies at that rate, bytes.
    pub burst: f64,
    /// Whether packets that no filter classifies go here.
    pub is_default: bool,
    /// Bytes sent through it during the measurement.
    pub sent: f64,
}

/// All leaf classes, the busiest first.
pub fn leaves<'a>(side: &Side<'a>) -> Result<Vec<Leaf<'a>>, Missing> {
    let default = side.text(CLASS_DEFAULT);
    let ids = side
        .end()?
        .before
        .facts
        .keys()
        .filter_map(|name| name.strip_prefix("class.")?.strip_suffix(".sent_bytes"));
    let mut leaves = Vec::new();
    for id in ids {
        let fact = |what: &str| side.count(&format!("class.{id}.{what}"));
        if fact("level")? > 0.0 {
            continue;
        }
        let (rate, own) = (fact("rate_bits_per_s")?, fact("ceil_bits_per_s")?);
        let bursts = [fact("burst_bytes")?, fact("cburst_bytes")?];
        leaves.push(Leaf {
            id,
            ceil: lowest_ceil(side, id)?,
            // Above its rate a class depends on what its parent lends, and only cburst counts
            // (net/sched/sch_htb.c, `htb_class_mode`).
            burst: if own > rate { bursts[1] } else { bursts[0].min(bursts[1]) },
            is_default: default == Ok(id),
            sent: side.grown(&format!("class.{id}.sent_bytes"))? as f64,
        });
    }
    if leaves.is_empty() {
        return Err(Missing::because("no class of htb is known"));
    }
    leaves.sort_by(|a, b| b.sent.total_cmp(&a.sent));
    Ok(leaves)
}

/// The class that nearly all sent bytes went through.
pub fn used<'a>(leaves: &[Leaf<'a>]) -> Result<Leaf<'a>, Missing> {
    let all: f64 = leaves.iter().map(|leaf| leaf.sent).sum();
    let busiest = leaves
        .first()
        .filter(|leaf| leaf.sent > 0.0 && leaf.sent >= MIN_OWN_CLASS_BYTES_SHARE * all);
    busiest.cloned().ok_or_else(|| Missing::because("no class of htb sent most of the bytes"))
}

fn lowest_ceil(side: &Side, leaf: &str) -> Result<f64, Missing> {
    let (mut id, mut lowest) = (leaf.to_string(), f64::INFINITY);
    // A class is at most 8 levels below the root (`TC_HTB_MAXDEPTH`).
    for _ in 0..8 {
        match side.count(&format!("class.{id}.ceil_bits_per_s")) {
            Ok(ceil) => lowest = lowest.min(ceil),
            Err(why) if lowest.is_infinite() => return Err(why),
            Err(_) => break,
        }
        match side.text(&format!("class.{id}.parent")) {
            Ok(parent) => id = parent.to_string(),
            Err(_) => break,
        }
    }
    Ok(lowest)
}
