//! Pairs of sites by their numbers: a mesh of a thousand sites can have half a million slow ones.

use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Pairs of a sender and a receiver, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    sites: Arc<[String]>,
    pairs: Vec<[u32; 2]>,
}

impl Pairs {
    /// These pairs, which stand row by row.
    pub(super) fn new(sites: &Arc<[String]>, pairs: impl IntoIterator<Item = [u32; 2]>) -> Self {
        Self { sites: Arc::clone(sites), pairs: pairs.into_iter().collect() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Their names: the sender and the receiver.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = [&str; 2]> {
        self.pairs.iter().map(|pair| pair.map(|site| self.sites[site as usize].as_str()))
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = [u32; 2]> {
        self.pairs.iter().copied()
    }

    pub(super) fn has(&self, pair: [u32; 2]) -> bool {
        self.pairs.binary_search(&pair).is_ok()
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}
