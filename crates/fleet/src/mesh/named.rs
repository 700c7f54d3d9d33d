//! Tables with names, like `[site.a]`, in the order of the file, each with its place there.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use toml::Spanned;

/// The tables below one key.
#[derive(Debug)]
pub(super) struct Named<T>(pub Vec<(Spanned<String>, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(Tables(PhantomData))
    }
}

struct Tables<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Tables<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tables with names, like [site.a]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut tables: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(table) = tables.next_entry()? {
            all.push(table);
        }
        Ok(Named(all))
    }
}
