//! How much memory the tests of a thousand sites take at their coordinator. A program of its own, because the allocator counts
//! for all threads.

use goodput_fleet::{Mesh, Turn, tasks};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const SITES: usize = 1000;

/// Bytes at most: 100 MB are for the whole coordinator.
const MOST: usize = 80 << 20;

#[test]
fn the_million_tasks_of_a_thousand_sites_are_never_there_at_once() {
    let site = |number: usize| {
        format!(
            "[site.site-{number}]\ntarget = \"host-{number}.example\"\nuplink = \"line-{number}\"\n"
        )
    };
    let lines: Vec<_> = (0..SITES).map(|number| format!("\"line-{number}\"")).collect();
    let sites: String = (0..SITES).map(site).collect();
    let text = format!("uplinks = [{}]\n{sites}", lines.join(", "));
    let mesh = Mesh::parse("mesh", &text).unwrap();
    let turn = Turn { id: "t".into(), number: 0, mesh: text, began_s: 0.0, has_ended: false };
    let tasks = tasks(&mesh, &turn);
    let planned = MEMORY.peak_usage();
    assert_eq!(tasks.count(), SITES * (SITES - 1));
    let made: usize = tasks.rounds().flatten().map(|pair| pair.len()).sum();
    assert_eq!(made, tasks.count());
    let most = MEMORY.peak_usage();
    println!("planned {planned} bytes, then {} at most {most}", MEMORY.current_usage());
    assert!(most < MOST, "{most} bytes of {MOST}");
}
