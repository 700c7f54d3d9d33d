//! A task with the signature of its coordinator.

use serde::{Deserialize, Serialize};

use super::language::{FORMAT, from_json, knows};
use super::single::Task;

/// What is signed begins with this, so that a signature under something else is none under a task.
const WHAT: &str = "goodput fleet task\n";

/// A task as it goes over the bus. The signature is that of the text, to the last byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// [`FORMAT`].
    pub format: u32,
    /// The task as JSON.
    pub task: String,
    /// Signature of [`Sealed::signed_bytes`]; absent: nobody has signed it.
    #[serde(default)]
    pub signature: Option<String>,
}

impl Sealed {
    /// A task that nobody has signed yet.
    ///
    /// # Errors
    /// The task can't be written as JSON.
    pub fn of(task: &Task) -> Result<Self, String> {
        let task = serde_json::to_string(task).map_err(|why| why.to_string())?;
        Ok(Self { format: FORMAT, task, signature: None })
    }

    /// What a signature is about.
    pub fn signed_bytes(&self) -> Vec<u8> {
        [WHAT.as_bytes(), self.task.as_bytes()].concat()
    }

    /// Reads a sealed task; the task itself is not looked at.
    ///
    /// # Errors
    /// It is none, or one of another format.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let sealed: Self = from_json(json)?;
        knows(sealed.format, "the coordinator")?;
        Ok(sealed)
    }

    /// Checks the signature by `has_signed`, which takes bytes and their signature.
    ///
    /// # Errors
    /// There is none, or a wrong one.
    pub fn check(&self, has_signed: impl FnOnce(&[u8], &str) -> bool) -> Result<(), &'static str> {
        let signature = self.signature.as_deref().ok_or("it is not signed")?;
        let is_good = has_signed(&self.signed_bytes(), signature);
        is_good.then_some(()).ok_or("the coordinator that this agent trusts has not signed it")
    }
}

#[cfg(test)]
mod tests {
    use super::super::single::{Role, tests::task};
    use super::*;

    #[test]
    fn a_sealed_task_is_read_as_it_was_written() {
        let sealed = Sealed::of(&task()).unwrap();
        let read = Sealed::read(&serde_json::to_vec(&sealed).unwrap()).unwrap();
        assert_eq!(read, sealed);
        assert_eq!(Task::read(read.task.as_bytes(), Role::Near, "a", 999.0), Ok(task()));
        let newer = Sealed { format: 99, ..sealed };
        assert!(
            Sealed::read(&serde_json::to_vec(&newer).unwrap()).unwrap_err().contains("version 99")
        );
        assert!(Sealed::read(b"poison").is_err());
    }

    #[test]
    fn only_a_signature_under_this_text_counts() {
        let sealed = Sealed::of(&task()).unwrap();
        assert_eq!(sealed.check(|_, _| true), Err("it is not signed"));
        let sealed = Sealed { signature: Some("s".into()), ..sealed };
        let mut expected = b"goodput fleet task\n".to_vec();
        expected.extend(serde_json::to_vec(&task()).unwrap());
        assert_eq!(sealed.check(|bytes, of| bytes == expected && of == "s"), Ok(()));
        assert!(sealed.check(|_, _| false).unwrap_err().contains("trusts"));
    }
}
