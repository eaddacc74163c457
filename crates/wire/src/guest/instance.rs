//! Instance metadata: what a VM can read about itself at `/metadata/instance`.
//!
//! [`Instance`] holds the known facts about a VM and is stored in this form: empty fields take no bytes, unknown
//! fields are refused. [`document`] renders it at an [`InstanceVersion`]. [`path`] answers requests for all of it,
//! a part, or one value.

pub mod document;
pub mod path;
mod version;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use version::{InstanceVersion, versions_body};

/// The known facts about a VM. Unknown ones are empty, and an empty string in the document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Instance {
    /// The VM's name, as in Resources of events.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The VM's id; never reused.
    #[serde(skip_serializing_if = "Uuid::is_nil")]
    pub vm_id: Uuid,
    /// The cloud it runs in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// The region it runs in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub location: String,
    /// The availability zone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The physical zone of the availability zone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub physical_zone: String,
    /// The subscription's id or name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subscription_id: String,
    /// The resource group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_group_name: String,
    /// Its size.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vm_size: String,
    /// The update domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_update_domain: Option<u32>,
    /// The fault domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_fault_domain: Option<u32>,
    /// The placement group of its scale set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub placement_group_id: String,
    /// The scope's name, if another VM of the group has the same name; makes the resource id unique.
    #[serde(skip)]
    pub namesake_scope: String,
    /// The name of its scale set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vm_scale_set_name: String,
    /// The resource id of its scale set, for flexible scale sets.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub virtual_machine_scale_set_id: String,
    /// Whether it can be evicted.
    #[serde(skip_serializing_if = "Priority::is_regular")]
    pub priority: Priority,
    /// What an eviction does: `Deallocate` or `Delete`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub eviction_policy: String,
    /// `Linux` or `Windows`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os_type: String,
    /// The image's offer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub offer: String,
    /// The image's publisher.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub publisher: String,
    /// The image's SKU.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sku: String,
    /// The image's version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The host it runs on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_id: String,
    /// The host name in the operating system.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub computer_name: String,
    /// The account name of the administrator.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub admin_username: String,
    /// Names and values, in the order in which they are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// User data, in Base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_data: String,
    /// Custom data, the older form of user data, in Base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub custom_data: String,
    /// The network interfaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
}

/// Whether a VM can be evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// A regular VM.
    #[default]
    Regular,
    /// A Spot VM.
    Spot,
}

impl Priority {
    const fn as_str(self) -> &'static str {
        match self {
            Priority::Regular => "Regular",
            Priority::Spot => "Spot",
        }
    }

    fn is_regular(&self) -> bool {
        *self == Priority::Regular
    }
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Interface {
    /// Twelve upper-case hexadecimal digits, without separators.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
    /// The IPv4 addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ipv4: Vec<IpAddress>,
    /// The IPv4 subnets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
    /// The IPv6 addresses; only the private ones are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ipv6: Vec<IpAddress>,
}

/// A private address and the public address in front of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct IpAddress {
    /// The address on the VM's interface.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub private: String,
    /// The public address, if any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub public: String,
}

/// An IPv4 subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Subnet {
    /// Its first address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The prefix length in bits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_metadata_is_omitted_and_unknown_keys_refused() {
        assert_eq!(serde_json::to_string(&Instance::default()).unwrap(), "{}");
        let spot = Instance {
            name: "batch_0".to_owned(),
            priority: Priority::Spot,
            tags: vec![("team".to_owned(), "shop".to_owned())],
            interfaces: vec![Interface::default()],
            ..Instance::default()
        };
        let stored = r#"{"name":"batch_0","priority":"spot","tags":[["team","shop"]],"interfaces":[{}]}"#;
        assert_eq!(serde_json::to_string(&spot).unwrap(), stored);
        assert_eq!(serde_json::from_str::<Instance>(stored).unwrap(), spot);
        assert!(serde_json::from_str::<Instance>(r#"{"nmae":"x"}"#).is_err());
    }
}
