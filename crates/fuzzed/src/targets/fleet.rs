//! What agents and the coordinator of a fleet read from the bus, which others may write to, and the mesh file.

use goodput_fleet::{
    Announcement, Answer, Call, FORMAT, Mesh, Outcome, Role, Sealed, Task, Turn, Wanted, fitted,
    tasks, word,
};

/// A time at which a seed's task may be begun.
const NOW_S: f64 = 1000.0;

/// Takes any bytes.
pub fn run(data: &[u8]) {
    if let Ok(sealed) = Sealed::read(data) {
        assert_eq!(sealed.format, FORMAT);
        assert!(sealed.check(|_, _| false).is_err(), "nobody has signed it");
        taken(sealed.task.as_bytes());
    }
    taken(data);
    if let Ok(outcome) = Outcome::read(data) {
        let again = serde_json::to_vec(&outcome).expect("what was read can be written");
        assert!(Outcome::read(&again).is_ok());
    }
    if let Ok(agent) = Announcement::read(data) {
        assert_eq!(agent.format, FORMAT);
        let _ = word(&agent.site);
    }
    let _ = (Call::read(data), Answer::read(data));
    turn(data);
    mesh(data);
}

/// A mesh file that can be read has pairs that can be tested; of any other, the reason is said.
fn mesh(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mesh = match Mesh::parse("mesh.toml", text) {
        Ok(mesh) => mesh,
        Err(why) => return assert!(!why.problem.is_empty() && !why.to_string().contains('\n')),
    };
    assert!(mesh.sites.len() >= 2 && mesh.length_s > 0.0 && mesh.length_s <= 3600.0);
    for pair in &mesh.pairs {
        let [one, two] = pair.sites.map(|site| &mesh.sites[site]);
        assert!(one.can_call(two) || two.can_call(one));
        assert!(pair.rate.is_none_or(|rate| rate.0 > 0.0 && rate.0.is_finite()));
    }
}

/// Only a task for this site and this time is taken.
fn taken(data: &[u8]) {
    let Ok(task) = Task::read(data, Role::Near, "a", NOW_S) else { return };
    assert!(task.near == "a" && task.far != "a" && task.expires_s >= NOW_S);
    assert!(task.length_s > 0.0 && task.length_s <= 3600.0);
    assert_eq!(fitted(&task, &[]), task);
    let _ = task.most_bytes();
}

/// A turn whose mesh can be read has tasks, and agents read each of them.
fn turn(data: &[u8]) {
    if let Some(turn) = Turn::read(data)
        && let Ok(mesh) = Mesh::parse("turn", &turn.mesh)
        && mesh.sites.len() < 20
    {
        for task in tasks(&mesh, &turn).rounds().flatten().flatten() {
            let task = Task { expires_s: NOW_S, ..task };
            let json = serde_json::to_vec(&task).expect("a task can be written");
            let read = Task::read(&json, Role::Near, &task.near, NOW_S);
            // The file allows other names than a task.
            assert!(read.err().is_none_or(|refused| !refused.why.is_empty()));
        }
        if let Ok(wanted) = Wanted::read(data) {
            let _ = wanted.task(&mesh);
        }
    }
    if let Ok(wanted) = Wanted::read(data) {
        asked(&wanted);
    }
}

/// A wish has a place on the bus, and a length that can be waited for.
fn asked(wanted: &Wanted) {
    let task = wanted.unmade();
    assert_eq!(task.id, wanted.id);
    assert!(word(&task.near).is_ok() && word(&task.far).is_ok());
    let is_length = |length_s| length_s > 0.0 && length_s <= 3600.0;
    assert!(wanted.length_s.is_none_or(is_length));
}
