//! A value, or the reason why it is missing. A missing value is not zero.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, UnitDeserializer};
use serde::de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Why a value is missing, in words that a user can act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The reason, as a phrase without a full stop: "no tcp_info: not a TCP socket".
    pub missing: Cow<'static, str>,
}

impl Missing {
    /// A missing value, because of `reason`.
    pub fn because(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { missing: reason.into() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.missing)
    }
}

/// A value, or the reason why it is missing. In JSON: the value itself, or `{"missing": "why"}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Known<T> {
    /// The value is missing, for this reason.
    Missing(Missing),
    /// The value.
    Value(T),
}

impl<T> Known<T> {
    /// A missing value, because of `reason`.
    pub fn missing(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Missing(Missing::because(reason))
    }

    /// The value, for `?`: a rule that needs a missing value "can't tell, because …".
    pub fn get(&self) -> Result<&T, Missing> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Missing(why) => Err(why.clone()),
        }
    }

    /// The value if it is known, for callers that do not need the reason.
    pub fn value(&self) -> Option<&T> {
        self.get().ok()
    }

    /// Applies `change` to a known value; a missing one keeps its reason.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Value(value) => Known::Value(change(value)),
            Self::Missing(why) => Known::Missing(why),
        }
    }
}

impl<T> From<Result<T, Missing>> for Known<T> {
    fn from(result: Result<T, Missing>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(why) => Self::Missing(why),
        }
    }
}

/// Reads the value as it arrives. A derived reader of an untagged enum would first hold the whole value in a form
/// that takes 16 times its JSON, and values come from untrusted peers.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Known<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KnownVisitor(PhantomData))
    }
}

struct KnownVisitor<T>(PhantomData<T>);

/// Passes a scalar on to the reader of the value.
macro_rules! scalars {
    ($($visit:ident: $scalar:ty,)*) => {
        $(fn $visit<E: serde::de::Error>(self, scalar: $scalar) -> Result<Self::Value, E> {
            T::deserialize(scalar.into_deserializer()).map(Known::Value)
        })*
    };
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for KnownVisitor<T> {
    type Value = Known<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value, or an object that says why it is missing")
    }

    scalars! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str, visit_string: String, }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        T::deserialize(UnitDeserializer::new()).map(Known::Value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Self::Value, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(values)).map(Known::Value)
    }

    /// The first key decides whether this is a value or a reason.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let first: Option<String> = members.next_key()?;
        if first.as_deref() != Some("missing") {
            let members = WithFirst { first, rest: members };
            return T::deserialize(MapAccessDeserializer::new(members)).map(Known::Value);
        }
        let missing = members.next_value::<String>()?.into();
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Known::Missing(Missing { missing }))
    }
}

/// The members of an object whose first key was already taken.
struct WithFirst<A> {
    first: Option<String>,
    rest: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithFirst<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(key) => seed.deserialize(key.into_deserializer()).map(Some),
            None => self.rest.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.rest.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Shape {
        Round,
        Square { side: u8 },
    }

    fn read<T: serde::de::DeserializeOwned>(json: &str) -> Known<T> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn every_shape_of_a_value_is_read_as_it_comes() {
        assert_eq!(read("7"), Known::Value(7.0));
        assert_eq!(read("-7"), Known::Value(-7));
        assert_eq!(read("1e3"), Known::Value(BitRate(1000.0)));
        assert_eq!(read("true"), Known::Value(true));
        assert_eq!(read(r#""warm""#), Known::Value(String::from("warm")));
        assert_eq!(read("[1,2]"), Known::Value(vec![1, 2]));
        assert_eq!(read(r#""round""#), Known::Value(Shape::Round));
        assert_eq!(read(r#"{"square":{"side":2}}"#), Known::Value(Shape::Square { side: 2 }));
        assert_eq!(read("{}"), Known::Value(std::collections::BTreeMap::<String, u8>::new()));
        assert_eq!(read::<u8>(r#"{"missing":"why","since":[1]}"#), Known::missing("why"));
    }

    #[test]
    fn what_is_neither_is_an_error() {
        for json in ["null", "300", r#"{"missing":7}"#, r#"{"lost":"why"}"#, "[", r#"{"missing""#] {
            assert!(serde_json::from_str::<Known<u8>>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_value_and_its_absence_survive_json() {
        let known: Known<u64> = Known::Value(0);
        let absent: Known<u64> = Known::missing("no such counter");
        assert_eq!(serde_json::to_string(&known).unwrap(), "0");
        assert_eq!(serde_json::to_string(&absent).unwrap(), r#"{"missing":"no such counter"}"#);
        let back: Known<u64> = serde_json::from_str(r#"{"missing":"no such counter"}"#).unwrap();
        assert_eq!(back, absent);
    }
}
