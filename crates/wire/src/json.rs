//! A JSON value that keeps the order of its keys. What is shown to people and programs is made from it, so that one
//! writer is compiled for each type, which writes compact JSON, and not one for each form.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Error, Value};

/// A JSON value; objects keep the order of their keys.
#[derive(Debug)]
pub enum Ordered {
    /// Neither an array nor an object.
    Scalar(Value),
    List(Vec<Ordered>),
    Map(Vec<(String, Ordered)>),
}

impl Ordered {
    /// The JSON form of a value.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        Self::parse(&serde_json::to_vec(value)?)
    }

    fn parse(json: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(json)
    }

    /// Indented JSON, without a line end.
    pub fn pretty(&self) -> Result<String, Error> {
        serde_json::to_string_pretty(self)
    }
}

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Ordered::Scalar(value) => value.serialize(serializer),
            Ordered::List(items) => serializer.collect_seq(items),
            Ordered::Map(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedVisitor)
    }
}

struct OrderedVisitor;

impl<'de> Visitor<'de> for OrderedVisitor {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Ordered::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Ordered, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Ordered::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_json_is_that_of_the_type() {
        #[derive(serde::Serialize)]
        struct All {
            z: Option<u8>,
            list: Vec<i64>,
            empty: Vec<u8>,
            a: (bool, f64, &'static str),
            none: Option<u8>,
            none_of: std::collections::BTreeMap<u8, u8>,
        }
        let all = All {
            z: Some(1),
            list: vec![-1, i64::MAX],
            empty: Vec::new(),
            a: (true, 1.5, "\"\u{1b}ä"),
            none: None,
            none_of: Default::default(),
        };
        assert_eq!(Ordered::of(&all).unwrap().pretty().unwrap(), serde_json::to_string_pretty(&all).unwrap());
    }
}
