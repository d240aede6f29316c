//! Types whose JSON form is an object and nothing else.
//!
//! Owns: the refusal of a list where an object is meant. By itself serde reads the fields of a struct
//! from a list too, in the order of the declaration: `{"options":[true]}` would be a dry run, and the
//! order of our fields a part of the protocol. Never: which fields there are.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Reads an object with `read`, and refuses everything else.
pub(crate) fn read_object<'de, D, T, F>(deserializer: D, read: F) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    F: ReadObject<'de, T>,
{
    deserializer.deserialize_map(ObjectVisitor {
        read,
        made: PhantomData,
    })
}

/// What reads the fields: a type's own derived function, whatever the source of the object.
pub(crate) trait ReadObject<'de, T> {
    /// Reads the fields.
    fn read<M: MapAccess<'de>>(self, map: MapAccessDeserializer<M>) -> Result<T, M::Error>;
}

struct ObjectVisitor<F, T> {
    read: F,
    made: PhantomData<T>,
}

impl<'de, T, F: ReadObject<'de, T>> Visitor<'de> for ObjectVisitor<F, T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<T, M::Error> {
        self.read.read(MapAccessDeserializer::new(map))
    }
}

/// Gives a type with `#[serde(remote = "Self")]`, whose derived functions are its own and no traits',
/// the two traits of serde: written as derived, read from an object only.
macro_rules! object_form {
    ($($name:ident),* $(,)?) => {
        $(impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> $crate::object::ReadObject<'de, $name> for Fields {
                    fn read<M: serde::de::MapAccess<'de>>(
                        self,
                        map: serde::de::value::MapAccessDeserializer<M>,
                    ) -> Result<$name, M::Error> {
                        $name::deserialize(map)
                    }
                }

                $crate::object::read_object(deserializer, Fields)
            }
        })*
    };
}

pub(crate) use object_form;
