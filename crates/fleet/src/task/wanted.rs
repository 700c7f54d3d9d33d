//! A test that someone asks for in between.

use goodput_model::Direction;
use serde::{Deserialize, Serialize};

use super::language::{FORMAT, from_json, is_id, is_name, knows};
use super::single::{Task, no_length};
use super::turn::task_of;
use super::word::word;
use crate::mesh::{Mesh, neither_calls};

/// A test on demand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The id of its task.
    pub id: String,
    /// The site whose agent will say the outcome: who asks waits there.
    pub near: String,
    /// The site that sends.
    pub sender: String,
    /// The site that receives.
    pub receiver: String,
    /// Length of the test, seconds; absent: that of the mesh.
    pub length_s: Option<f64>,
}

/// Who wrote a wish.
const WHO_ASKS: &str = "who asks for a test";

/// The part that is read first.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// Why a wish is not read.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreadableWish {
    /// What is wrong with it, in words.
    pub why: String,
    /// What is not made, if the wish says as much: whoever asks waits for its outcome.
    pub unmade: Option<Box<Task>>,
}

/// The part that wishes of all versions have: where the answer is waited for.
#[derive(Deserialize)]
struct Asker {
    id: String,
    near: String,
    #[serde(default)]
    sender: String,
    #[serde(default)]
    receiver: String,
}

impl Asker {
    /// Nothing, if no place of the bus has such names.
    fn unmade(self) -> Option<Box<Task>> {
        let Self { id, near, sender, receiver } = self;
        let is_shown = |name: &String| name.is_empty() || is_name(name);
        let fits = is_id(&id)
            && word(&near).is_ok()
            && [&near, &sender, &receiver].into_iter().all(is_shown);
        let wanted = Wanted { format: FORMAT, id, near, sender, receiver, length_s: None };
        fits.then(|| Box::new(wanted.unmade()))
    }
}

impl Wanted {
    /// Reads a wish.
    ///
    /// # Errors
    /// It is none, or one of another format.
    pub fn read(json: &[u8]) -> Result<Self, UnreadableWish> {
        let version = from_json(json).and_then(|Version { format }| knows(format, WHO_ASKS));
        let read = version.and_then(|()| from_json(json));
        read.and_then(|wanted: Self| wanted.check().map(|()| wanted)).map_err(|why| {
            let asker: Option<Asker> = serde_json::from_slice(json).ok();
            UnreadableWish { why, unmade: asker.and_then(Asker::unmade) }
        })
    }

    /// Checks that it can be a task, in whatever mesh.
    ///
    /// # Errors
    /// What is wrong with it: its format, its id, a name that is no word of the bus, its length.
    pub fn check(&self) -> Result<(), String> {
        knows(self.format, WHO_ASKS)?;
        if !is_id(&self.id) {
            return Err("its id is no id".into());
        }
        for name in [&self.near, &self.sender, &self.receiver] {
            if !is_name(name) {
                return Err("a name is empty, too long or not printable".into());
            }
            word(name)?;
        }
        self.length_s.and_then(no_length).map_or(Ok(()), Err)
    }

    /// Its task in this mesh.
    ///
    /// # Errors
    /// Why the mesh has no such test.
    pub fn task(&self, mesh: &Mesh) -> Result<Task, String> {
        let task = task_between(mesh, &self.id, &self.sender, &self.receiver)?;
        Ok(Task { length_s: self.length_s.unwrap_or(task.length_s), ..task })
    }

    /// A task that has its names and is not to be made: for the reason why it is not.
    pub fn unmade(&self) -> Task {
        let Self { id, near, sender, receiver, .. } = self.clone();
        let sends = near == sender;
        Task {
            format: FORMAT,
            id,
            near,
            far: if sends { receiver } else { sender },
            target: String::new(),
            by_ssh: None,
            direction: if sends { Direction::Send } else { Direction::Reverse },
            length_s: self.length_s.unwrap_or_default(),
            rate: None,
            rate_limit_of: None,
            expires_s: 0.0,
            token: 0,
        }
    }
}

/// The task `id` between two sites of a mesh.
///
/// # Errors
/// Why there is none, in words.
pub fn task_between(mesh: &Mesh, id: &str, sender: &str, receiver: &str) -> Result<Task, String> {
    let index = |name: &str| {
        let found = mesh.sites.iter().position(|site| site.name == name);
        found.ok_or_else(|| format!("there is no site {name} in the mesh"))
    };
    let way @ [one, two] = [index(sender)?, index(receiver)?];
    if let Some(why) = neither_calls(way.map(|site| &mesh.sites[site])) {
        return Err(why);
    }
    let is_pair = mesh.pairs.iter().any(|pair| [[one, two], [two, one]].contains(&pair.sites));
    let task = task_of(mesh, id.to_owned(), way).filter(|_| is_pair);
    task.ok_or_else(|| format!("{sender} and {receiver} are no pair of the mesh"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wanted(sender: &str, receiver: &str) -> Wanted {
        let [near, sender, receiver] = ["c", sender, receiver].map(String::from);
        Wanted { format: FORMAT, id: "want-1".into(), near, sender, receiver, length_s: Some(3.0) }
    }

    #[test]
    fn a_wish_is_a_task_of_the_mesh_or_refused_in_words() {
        let mesh = Mesh::parse("x", "[site.a]\ntarget = \"a\"\n[site.b]\n[site.c]\n[[pair]]\nsites = [\"a\", \"b\"]\n[[pair]]\nsites = [\"a\", \"c\"]\n[test]\npairs = \"named\"\n").unwrap();
        let task = wanted("a", "c").task(&mesh).unwrap();
        assert_eq!((&*task.id, &*task.near, &*task.far, task.length_s), ("want-1", "c", "a", 3.0));
        for (sender, receiver, words) in
            [("a", "x", "no site x"), ("a", "a", "no pair"), ("b", "c", "b and c have no target")]
        {
            let why = wanted(sender, receiver).task(&mesh).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        let unmade = wanted("a", "c").unmade();
        assert_eq!((unmade.sender(), unmade.receiver()), ("a", "c"));
        let read = |wanted: &Wanted| Wanted::read(&serde_json::to_vec(wanted).unwrap());
        assert_eq!(read(&wanted("a", "c")), Ok(wanted("a", "c")));
        assert!(read(&Wanted { id: "a.b".into(), ..wanted("a", "c") }).is_err());
        assert!(read(&Wanted { format: 99, ..wanted("a", "c") }).is_err());
        assert!(read(&wanted("", "c")).is_err());
        for long in ["a".repeat(201), "ä".repeat(61)] {
            assert!(read(&wanted(&long, "c")).unwrap_err().why.contains("too long"), "{long}");
            assert!(read(&Wanted { near: long, ..wanted("a", "c") }).is_err());
        }
        for length_s in [-5.0, 0.0, 3601.0, 1e300] {
            let bad = Wanted { length_s: Some(length_s), ..wanted("a", "c") };
            let why = read(&bad).unwrap_err().why;
            assert!(why.contains("no length of a test"), "{why}");
        }
    }

    #[test]
    fn whoever_asks_in_another_version_is_told_where_he_waits() {
        let other = br#"{"format":99,"id":"want-9","near":"c","what":"both"}"#;
        let UnreadableWish { why, unmade } = Wanted::read(other).unwrap_err();
        let task = unmade.unwrap();
        assert_eq!((&*task.id, &*task.near), ("want-9", "c"));
        assert!(why.contains("version 99"), "{why}");
        let newer = Wanted { format: 99, ..wanted("a", "c") };
        let newer = Wanted::read(&serde_json::to_vec(&newer).unwrap()).unwrap_err();
        assert!(newer.why.contains("version 99"), "{newer:?}");
        assert_eq!(newer.unmade.unwrap().sender(), "a");
        for nobody in [&br#"{"id":"a.b","near":"c"}"#[..], br#"{"id":"w","near":""}"#, b"poison"] {
            assert_eq!(Wanted::read(nobody).unwrap_err().unmade, None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_wish_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Wanted::read(&bytes);
        }
    }
}
