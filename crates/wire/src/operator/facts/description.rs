//! The schema of facts: one for each type, chosen by `type`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::schema::{Discriminator, Object, OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::{Fact, FactDetail, Written};

/// A schema for each type of fact: the common fields, and the detail of this type.
fn schemas() -> Vec<(String, Object)> {
    let (RefOr::T(Schema::OneOf(union)), RefOr::T(Schema::Object(common))) =
        (FactDetail::schema(), Written::schema())
    else {
        return Vec::new();
    };
    let mut schemas = Vec::new();
    for item in union.items {
        let RefOr::T(Schema::Object(own)) = item else { continue };
        let Some(RefOr::T(Schema::Object(tag))) = own.properties.get("type") else { continue };
        let Some(kind) = tag.enum_values.iter().flatten().find_map(Value::as_str).map(str::to_owned) else {
            continue;
        };
        let mut object = common.clone();
        object.description = own.description;
        object.properties.remove("detail");
        object.properties.extend(own.properties);
        let more = own.required.into_iter().filter(|name| !common.required.contains(name));
        object.required.extend(more);
        schemas.push((kind, object));
    }
    schemas
}

fn schema_name(kind: &str) -> String {
    format!("Fact{kind}")
}

impl PartialSchema for Fact {
    fn schema() -> RefOr<Schema> {
        let mut union = OneOfBuilder::new().description(Some("One thing that happened; `type` says what."));
        let mut mapping = BTreeMap::new();
        for (kind, _) in schemas() {
            let schema = Ref::from_schema_name(schema_name(&kind));
            mapping.insert(kind, schema.ref_location.clone());
            union = union.item(schema);
        }
        union.discriminator(Some(Discriminator::with_mapping("type", mapping))).into()
    }
}

impl ToSchema for Fact {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Fact")
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.extend(schemas().into_iter().map(|(kind, object)| (schema_name(&kind), object.into())));
        Written::schemas(all);
        FactDetail::schemas(all);
    }
}
