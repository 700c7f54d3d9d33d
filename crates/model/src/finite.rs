//! Finds numbers that JSON does not have: not a number, and infinite ones. `serde_json` writes them as `null`, which does
//! not read back as a number.
//!
//! It visits a value as a serializer does, and writes nothing: reading the JSON back would cost twice as much as writing
//! it.

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

/// Fails if a number of `value` would not read back from its JSON.
pub(crate) fn check(value: &impl Serialize) -> Result<(), Error> {
    value.serialize(Finite { may_be_null: false })
}

#[derive(Clone, Copy)]
struct Finite {
    /// Whether `null` reads back here, as a missing value.
    may_be_null: bool,
}

impl Finite {
    fn number(self, value: f64) -> Result<(), Error> {
        if value.is_finite() || self.may_be_null {
            return Ok(());
        }
        Err(Error::custom(format!("JSON has no number for {value}")))
    }

    fn part(value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        value.serialize(Self { may_be_null: false })
    }
}

/// Values that always read back.
macro_rules! fine {
    ($($name:ident($($value:ty),*))*) => {
        $(fn $name(self, $(_: $value),*) -> Result<(), Error> {
            Ok(())
        })*
    };
}

/// Values that have parts.
macro_rules! whole {
    ($($name:ident($($value:ty),*) -> $parts:ident)*) => {
        $(fn $name(self, $(_: $value),*) -> Result<Self, Error> {
            Ok(self)
        })*
        $(type $parts = Self;)*
    };
}

impl Serializer for Finite {
    type Ok = ();
    type Error = Error;

    fine! {
        serialize_bool(bool)
        serialize_i8(i8)
        serialize_i16(i16)
        serialize_i32(i32)
        serialize_i64(i64)
        serialize_u8(u8)
        serialize_u16(u16)
        serialize_u32(u32)
        serialize_u64(u64)
        serialize_char(char)
        serialize_str(&str)
        serialize_bytes(&[u8])
        serialize_none()
        serialize_unit()
        serialize_unit_struct(&'static str)
        serialize_unit_variant(&'static str, u32, &'static str)
    }

    whole! {
        serialize_seq(Option<usize>) -> SerializeSeq
        serialize_tuple(usize) -> SerializeTuple
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
        serialize_map(Option<usize>) -> SerializeMap
        serialize_struct(&'static str, usize) -> SerializeStruct
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.number(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(Self { may_be_null: true })
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        Self::part(value)
    }
}

/// The parts of a value, each of which is checked.
macro_rules! parts {
    ($($kind:ident: $name:ident($($key:ty)?))*) => {
        $(impl $kind for Finite {
            type Ok = ();
            type Error = Error;

            fn $name<T: Serialize + ?Sized>(&mut self, $(_: $key,)? value: &T) -> Result<(), Error> {
                Self::part(value)
            }

            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq: serialize_element()
    SerializeTuple: serialize_element()
    SerializeTupleStruct: serialize_field()
    SerializeTupleVariant: serialize_field()
    SerializeStruct: serialize_field(&'static str)
    SerializeStructVariant: serialize_field(&'static str)
}

impl SerializeMap for Finite {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        Self::part(value)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::units::BitRate;
    use crate::{Fact, Known};

    /// Every form that a value of a record has.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct Forms {
        plain: f64,
        short: f32,
        rate: BitRate,
        perhaps: Option<BitRate>,
        pair: [f64; 2],
        list: Vec<Known<f64>>,
        facts: BTreeMap<String, Fact>,
        variant: Variant,
        tagged: Tagged,
    }

    #[derive(Debug, Clone, Serialize, Deserialize)]
    enum Variant {
        Newtype(f64),
        Struct { number: f64 },
        Tuple(f64, f64),
        Unit,
    }

    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Some { number: f64 },
    }

    fn forms() -> Forms {
        Forms {
            plain: 1.0,
            short: 1.0,
            rate: BitRate(1.0),
            perhaps: None,
            pair: [1.0; 2],
            list: vec![Known::Value(1.0), Known::missing("it is not there")],
            facts: BTreeMap::from([("fact".into(), Fact::Real(1.0))]),
            variant: Variant::Unit,
            tagged: Tagged::Some { number: 1.0 },
        }
    }

    fn reads_back<T: Serialize + DeserializeOwned>(value: &T) -> bool {
        serde_json::from_str::<T>(&serde_json::to_string(value).unwrap()).is_ok()
    }

    #[test]
    fn what_is_refused_is_what_would_not_read_back() {
        let spoils: [fn(&mut Forms, f64); 12] = [
            |_, _| {},
            |forms, number| forms.plain = number,
            |forms, number| forms.short = number as f32,
            |forms, number| forms.rate = BitRate(number),
            |forms, number| forms.perhaps = Some(BitRate(number)),
            |forms, number| forms.pair[1] = number,
            |forms, number| forms.list[0] = Known::Value(number),
            |forms, number| drop(forms.facts.insert("other".into(), Fact::Real(number))),
            |forms, number| forms.variant = Variant::Newtype(number),
            |forms, number| forms.variant = Variant::Struct { number },
            |forms, number| forms.variant = Variant::Tuple(1.0, number),
            |forms, number| forms.tagged = Tagged::Some { number },
        ];
        let mut refused = 0;
        for spoil in spoils {
            for number in [2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let mut spoiled = forms();
                spoil(&mut spoiled, number);
                assert_eq!(check(&spoiled).is_ok(), reads_back(&spoiled), "{spoiled:?}");
                refused += usize::from(check(&spoiled).is_err());
            }
        }
        // All but the first, which spoils nothing, and the one that becomes a missing value.
        assert_eq!(refused, (spoils.len() - 2) * 3);
    }
}
