//! Reads untrusted JSON: a bounded number of values, with every text made plain as it arrives.
//!
//! One reader handles all JSON, so no field of any message can be forgotten. Control characters, escape sequences and
//! direction marks never become part of a value (`plain.rs`). The count of values bounds the memory: a value of two
//! bytes, `0,`, can take 32 bytes or more of memory.

use std::cell::Cell;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use crate::plain;

/// Values that even the shortest message may have: twice the CPUs that a plan can name.
const MIN_VALUES: usize = 16 * 1024;

/// Beyond that, the least average size of a value in bytes of JSON, its key included. Counters of flows have about 20,
/// facts about 40.
const BYTES_PER_VALUE: usize = 8;

/// Reads untrusted JSON, and makes every text plain.
///
/// Errors: not JSON, not the requested type, nested deeper than 128, or too many values for its length.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    read_with(json, plain::text)
}

/// The same with unchanged texts, for a caller that must still split them into lines.
pub fn read_lines<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    read_with(json, str::to_owned)
}

fn read_with<T: DeserializeOwned>(
    json: &[u8],
    text: fn(&str) -> String,
) -> Result<T, serde_json::Error> {
    let left = Cell::new(MIN_VALUES + json.len() / BYTES_PER_VALUE);
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(Guard { inner: &mut reader, left: &left, text })?;
    reader.end()?;
    Ok(value)
}

/// Wraps serde's types, and inspects every value that passes.
struct Guard<'a, T> {
    inner: T,
    /// Values that may still come.
    left: &'a Cell<usize>,
    /// The conversion of each text.
    text: fn(&str) -> String,
}

impl<'a, T> Guard<'a, T> {
    fn on<U>(&self, inner: U) -> Guard<'a, U> {
        Guard { inner, left: self.left, text: self.text }
    }

    /// Counts a value.
    fn count<E: Error>(&self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or_else(|| E::custom("more values than a message has"))?);
        Ok(())
    }
}

macro_rules! hand_on {
    ($($method:ident($($name:ident: $kind:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.on(visitor);
            self.inner.$method($($name,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Guard<'_, D> {
    type Error = D::Error;

    hand_on! {
        deserialize_any(); deserialize_bool(); deserialize_char(); deserialize_str();
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64(); deserialize_i128();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64(); deserialize_string(); deserialize_bytes();
        deserialize_byte_buf(); deserialize_option(); deserialize_unit(); deserialize_seq();
        deserialize_map(); deserialize_identifier(); deserialize_ignored_any();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! pass {
    ($($method:ident: $kind:ty;)*) => {
        $(fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Guard<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.inner.expecting(f)
    }

    pass! {
        visit_bool: bool; visit_i64: i64; visit_i128: i128; visit_u64: u64; visit_u128: u128;
        visit_f64: f64; visit_bytes: &[u8]; visit_byte_buf: Vec<u8>;
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.inner.visit_string((self.text)(text))
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inside: D) -> Result<V::Value, D::Error> {
        let inside = self.on(inside);
        self.inner.visit_some(inside)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inside: D) -> Result<V::Value, D::Error> {
        let inside = self.on(inside);
        self.inner.visit_newtype_struct(inside)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<V::Value, A::Error> {
        let values = self.on(values);
        self.inner.visit_seq(values)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        let members = self.on(members);
        self.inner.visit_map(members)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        let variant = self.on(variant);
        self.inner.visit_enum(variant)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Guard<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inside: D) -> Result<S::Value, D::Error> {
        self.count()?;
        let inside = self.on(inside);
        self.inner.deserialize(inside)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Guard<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let seed = self.on(seed);
        self.inner.next_element_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Guard<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        // A key counts with its value.
        self.left.set(self.left.get() + 1);
        let seed = self.on(seed);
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.on(seed);
        self.inner.next_value_seed(seed)
    }
}

impl<'de, 'a, A: EnumAccess<'de>> EnumAccess<'de> for Guard<'a, A> {
    type Error = A::Error;
    type Variant = Guard<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let Guard { left, text, .. } = self;
        let (value, inner) = self.inner.variant_seed(Guard { inner: seed, left, text })?;
        Ok((value, Guard { inner, left, text }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Guard<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.on(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.on(visitor);
        self.inner.tuple_variant(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.on(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn texts_and_keys_are_made_plain_and_all_else_stays() {
        let json = b"{\"a\\u001b[2J\":[\"x\\ny\",{\"\\u202e\":null}],\"n\":[-1,1.5,true,18446744073709551615]}";
        let read: Value = read(json).unwrap();
        let wanted = serde_json::json!({
            "a\u{fffd}[2J": ["x y", {"\u{fffd}": null}], "n": [-1, 1.5, true, u64::MAX]
        });
        assert_eq!(read, wanted);
    }

    #[test]
    fn many_tiny_values_and_a_deep_nesting_are_errors() {
        let many = format!("[{}0]", "0,".repeat(100_000));
        assert!(read::<Value>(many.as_bytes()).unwrap_err().to_string().contains("more values"));
        let empty = format!("[{}[]]", "[],".repeat(100_000));
        assert!(read::<Value>(empty.as_bytes()).unwrap_err().to_string().contains("more values"));
        let deep = "[".repeat(100_000);
        assert!(read::<Value>(deep.as_bytes()).unwrap_err().to_string().contains("recursion"));
        assert!(read::<Value>(b"1 2").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_serde_reads_them(text in "[\\[\\]{}:,\"a1.e-]{0,40}") {
            let ours: Result<Value, _> = read(text.as_bytes());
            let theirs: Result<Value, _> = serde_json::from_slice(text.as_bytes());
            prop_assert_eq!(ours.ok(), theirs.ok());
        }
    }
}
