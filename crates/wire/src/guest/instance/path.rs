//! Answers requests for the whole instance document, a part of it, or one value.
//!
//! The rest of the path selects in the document: keys ignore case, numbers index lists. JSON is for objects and
//! lists; a single value as JSON is refused, as in Azure. As text, an object or a list is rendered as its keys or
//! indexes, one per line, with `/` after those that have children.

use serde_json::Value;

use super::document::document;
use super::{Instance, InstanceVersion};
use crate::guest::error::{Category, GuestError};

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON, the default.
    Json,
    /// Plain text.
    Text,
}

impl Format {
    /// Parses the query's `format`; JSON if there is none.
    pub fn parse(text: Option<&str>) -> Result<Format, GuestError> {
        match text {
            None => Ok(Format::Json),
            Some(text) if text.eq_ignore_ascii_case("json") => Ok(Format::Json),
            Some(text) if text.eq_ignore_ascii_case("text") => Ok(Format::Text),
            Some(_) => Err(GuestError::Format(Category::Instance)),
        }
    }
}

/// Renders the part of the instance document at a path.
pub fn answer<'a>(
    instance: &Instance,
    version: InstanceVersion,
    path: impl IntoIterator<Item = &'a str>,
    format: Format,
) -> Result<String, GuestError> {
    let whole = document(instance, version);
    let mut at = &whole;
    for element in path {
        at = step(at, element).ok_or(GuestError::NotFound)?;
    }
    match (at, format) {
        (Value::Object(_) | Value::Array(_), Format::Json) => Ok(at.to_string()),
        (Value::Object(fields), Format::Text) => {
            Ok(listing(fields.iter().map(|(key, value)| (key.clone(), value))))
        }
        (Value::Array(items), Format::Text) => {
            Ok(listing(items.iter().enumerate().map(|(index, value)| (index.to_string(), value))))
        }
        (Value::String(text), Format::Text) => Ok(text.clone()),
        (Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null, Format::Json) => {
            Err(GuestError::LeafNeedsText)
        }
        (Value::Number(_) | Value::Bool(_) | Value::Null, Format::Text) => Ok(at.to_string()),
    }
}

fn step<'a>(value: &'a Value, element: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => {
            fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(element)).map(|(_, value)| value)
        }
        Value::Array(items) if element.bytes().all(|byte| byte.is_ascii_digit()) => {
            items.get(element.parse::<usize>().ok()?)
        }
        Value::Array(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => None,
    }
}

fn listing<'a>(entries: impl Iterator<Item = (String, &'a Value)>) -> String {
    let lines: Vec<String> = entries
        .map(|(key, value)| if value.is_object() || value.is_array() { format!("{key}/") } else { key })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::{Interface, IpAddress};
    use super::*;

    fn ask(path: &str, format: Format) -> Result<String, GuestError> {
        let instance = Instance {
            name: "web-0".into(),
            interfaces: vec![Interface {
                ipv4: vec![IpAddress { private: "10.0.0.10".into(), public: "".into() }],
                ..Interface::default()
            }],
            ..Instance::default()
        };
        let version = InstanceVersion::parse("2017-04-02").unwrap();
        answer(&instance, version, path.split('/').filter(|part| !part.is_empty()), format)
    }

    #[test]
    fn paths_select_parts_and_values() {
        let compute = "location\nname\noffer\nosType\nplatformFaultDomain\nplatformUpdateDomain\npublisher\nsku\nversion\nvmId\nvmSize";
        for (path, format, expected) in [
            ("", Format::Text, Ok("compute/\nnetwork/")),
            ("compute", Format::Text, Ok(compute)),
            ("compute/name", Format::Text, Ok("web-0")),
            ("Compute/NAME", Format::Text, Ok("web-0")),
            ("compute/vmSize", Format::Text, Ok("")),
            ("compute/name", Format::Json, Err(GuestError::LeafNeedsText)),
            ("compute/zone", Format::Text, Err(GuestError::NotFound)),
            ("compute/name/x", Format::Text, Err(GuestError::NotFound)),
            ("network/interface", Format::Text, Ok("0/")),
            ("network/interface/0", Format::Text, Ok("ipv4/\nipv6/\nmacAddress")),
            ("network/interface/1", Format::Text, Err(GuestError::NotFound)),
            ("network/interface/+0", Format::Text, Err(GuestError::NotFound)),
            ("network/interface/99999999999999999999", Format::Text, Err(GuestError::NotFound)),
            ("network/interface/0/ipv4/ipAddress/0/privateIpAddress", Format::Text, Ok("10.0.0.10")),
            (
                "network/interface/0/ipv4/ipAddress",
                Format::Json,
                Ok(r#"[{"privateIpAddress":"10.0.0.10","publicIpAddress":""}]"#),
            ),
            ("network/interface/0/ipv6", Format::Json, Ok(r#"{"ipAddress":[]}"#)),
        ] {
            assert_eq!(ask(path, format), expected.map(str::to_owned), "{path}");
        }
    }

    #[test]
    fn formats_are_json_and_text() {
        assert_eq!(Format::parse(None), Ok(Format::Json));
        assert_eq!(Format::parse(Some("JSON")), Ok(Format::Json));
        assert_eq!(Format::parse(Some("text")), Ok(Format::Text));
        assert_eq!(Format::parse(Some("")), Err(GuestError::Format(Category::Instance)));
        assert_eq!(Format::parse(Some("xml")), Err(GuestError::Format(Category::Instance)));
    }
}
