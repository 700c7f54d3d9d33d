//! How much memory the coordinator of a thousand sites needs: its plan, the results of a turn, and their matrix. A program of
//! its own, because the allocator counts for all threads.

use goodput_fleet::{
    CELL_VALUES, Cell, Matrix, Mesh, Observation, Part, Question, Tally, Task, Turn, tasks,
};
use goodput_model::{BitRate, Known};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SITES: usize = 1000;

/// Bytes at most, at any moment.
const MOST: usize = 100_000_000;

/// Sends slowly.
const SLOW: usize = 7;

fn text() -> String {
    let site = |number: usize| {
        format!(
            "[site.site-{number}]\ntarget = \"host-{number}.example\"\nuplink = \"line-{number}\"\n"
        )
    };
    let lines: Vec<_> = (0..SITES).map(|number| format!("\"line-{number}\"")).collect();
    let sites: String = (0..SITES).map(site).collect();
    format!("uplinks = [{}]\n{sites}", lines.join(", "))
}

fn number(site: &str) -> usize {
    site.strip_prefix("site-").expect("a site has a number").parse().expect("it has a number")
}

/// What a test finds: every fourth pair is slow for a reason of its own, and all pairs of one sender.
fn found(task: &Task, record: i64) -> Observation {
    let [sender, receiver] = [task.sender(), task.receiver()].map(number);
    let mixed = (sender * 7919 + receiver * 104_729) % 1009;
    let share = if mixed % 4 == 0 { 0.7 } else { 1.0 } * (1.0 - mixed as f64 / 20_000.0);
    let is_slow = sender == SLOW;
    Observation {
        record,
        sender: task.sender().into(),
        receiver: task.receiver().into(),
        at_s: 1.8e9 + record as f64,
        goodput: BitRate(9.4e8 * share * if is_slow { 0.3 } else { 1.0 }),
        rtt_us: Known::Value(20_000.0 + mixed as f64),
        limit: if is_slow { "sender-cpu" } else { "none" }.into(),
        limit_at: if is_slow { Part::Sender } else { Part::Path },
        share_of_limit: None,
        is_partial: false,
    }
}

/// All that can be printed of a cell.
fn shown(cell: &Cell<'_>) -> usize {
    let known = CELL_VALUES.map(|one| (one.shown)(cell, &str::to_owned).unwrap_or_default());
    known.iter().map(String::len).sum()
}

/// Makes all tests of a turn.
fn tested(mesh: &Mesh, turn: &Turn) -> Matrix {
    let tasks = tasks(mesh, turn);
    let planned = MEMORY.peak_usage();
    assert_eq!(tasks.count(), SITES * (SITES - 1));
    let mut tally = Tally::of_mesh(mesh);
    tally.expect(tasks.count());
    for (record, task) in tasks.rounds().flatten().flatten().enumerate() {
        tally.add(&found(&task, record as i64));
    }
    drop(tasks);
    let seen = MEMORY.current_usage();
    let matrix = tally.matrix(Question { now_s: 1.9e9, slow_percent: 10.0 });
    let explained = MEMORY.peak_usage();
    println!("planned {planned} bytes, seen {seen}, explained at most {explained}");
    matrix
}

/// All that can be printed of a matrix.
fn look_at(matrix: &Matrix) {
    assert_eq!((matrix.tested, matrix.pairs()), (SITES * (SITES - 1), SITES * (SITES - 1)));
    let explanation = matrix.explanation.get().expect("all pairs were tested");
    let slow = explanation.slow.len();
    assert!((200_000..300_000).contains(&slow), "{slow} pairs are slow");
    let causes: Vec<_> = explanation.causes.iter().map(|cause| cause.claim(slow)).collect();
    assert_eq!(causes, [format!("site-7's sending side explains 999 of {slow} slow pairs")]);
    assert_eq!(explanation.unexplained.len(), slow - 999, "one test is too few for a path");
    assert!(matrix.cells().map(|cell| shown(&cell)).sum::<usize>() > 10 * matrix.pairs());
    serde_json::to_writer(std::io::sink(), matrix).expect("nothing is wrong with it");
}

#[test]
fn a_coordinator_of_a_thousand_sites_needs_less_than_100_mb() {
    let text = text();
    let mesh = Mesh::parse("mesh", &text).unwrap();
    let mut turn = Turn { id: "t".into(), number: 0, mesh: text, began_s: 0.0, has_ended: false };
    drop(tested(&mesh, &turn));
    // What a turn leaves behind would meet the plan of the next one.
    turn.number += 1;
    look_at(&tested(&mesh, &turn));
    let most = MEMORY.peak_usage();
    println!("at most {most} bytes, then {}", MEMORY.current_usage());
    assert!(most < MOST, "{most} bytes of {MOST}");
}
