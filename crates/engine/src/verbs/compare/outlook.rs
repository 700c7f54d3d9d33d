//! How far a comparison has got, and how long it may take.

use goodput_experiment::{ArmAnalysis, Design, analyse};
use goodput_model::Judgement;

use super::book::RunLog;
use crate::events::{Decided, Outlook};

/// The outlook before `block` begins.
pub fn outlook(design: &Design, book: &RunLog, block: u32) -> Outlook {
    let arms = analyse(design, &book.trials);
    let candidates = || arms.iter().enumerate().skip(1);
    let open: Vec<_> = candidates().filter(|(_, arm)| arm.settled.is_none()).collect();
    let decided = candidates().filter_map(|(number, arm)| {
        let judgement = arm.settled.and_then(|_| judgement(arm))?;
        Some(Decided { values: book.values[number].clone(), judgement })
    });
    let looks = design.looks();
    // An arm that lost runs is judged later; this is the first look at any arm.
    let made = open.iter().map(|(_, arm)| arm.n as u32).max().unwrap_or(0);
    let warm_up = u32::from(block == 0);
    let blocks_until = |due: u32| due - made + warm_up;
    let runs_a_block = open.len() as u32 + 1;
    let time_s = |blocks: u32| book.pace.time_s(blocks * runs_a_block);
    let next = looks.next_after(made).map(blocks_until);
    let is_paced = book.knows_pace();
    let left_s = book.left().as_secs_f64();
    Outlook {
        block,
        judged_after_block: next.map(|blocks| block + blocks - 1),
        judged_in_s: next.map(time_s).filter(|look_s| is_paced && *look_s <= left_s),
        at_most_s: match is_paced {
            true => time_s(blocks_until(looks.last().max(made))).min(left_s),
            false => left_s,
        },
        open: open.len(),
        decided: decided.collect(),
    }
}

fn judgement(arm: &ArmAnalysis) -> Option<Judgement> {
    arm.responses.first()?.against.as_ref().map(|effect| effect.judgement)
}
