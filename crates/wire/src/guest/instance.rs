//! Instance metadata: what a VM can read about itself at `/metadata/instance`.
//!
//! [`Instance`] is what is known of a VM, in our words, and is stored as it is: a field that is empty takes
//! no bytes, and an unknown one is refused. [`document`] turns it into the JSON of an [`InstanceVersion`],
//! and [`path`] answers a request for all of it, a part of it or one value.

pub mod document;
pub mod path;
mod version;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use version::{InstanceVersion, versions_body};

/// What is known of a VM. Whatever is unknown is empty, and reads as an empty string in the document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Instance {
    /// The VM's name, as the events' Resources have it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The VM's identity, never reused.
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
    /// The physical zone behind that.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub physical_zone: String,
    /// The subscription it belongs to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subscription_id: String,
    /// The group it belongs to.
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
    /// The scope's name, where another VM of the group has this VM's name; it keeps their resource ids apart.
    #[serde(skip)]
    pub namesake_scope: String,
    /// The name of its scale set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vm_scale_set_name: String,
    /// The resource id of its scale set, for flexible ones.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub virtual_machine_scale_set_id: String,
    /// Whether it can be evicted.
    #[serde(skip_serializing_if = "Priority::is_regular")]
    pub priority: Priority,
    /// What an eviction does to it: `Deallocate` or `Delete`.
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
    /// The name the operating system was given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub computer_name: String,
    /// The name of the administrator's account.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub admin_username: String,
    /// Names and values, in the order they are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// What the owner left for the guest, in base 64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_data: String,
    /// The older form of that.
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
    /// It cannot.
    #[default]
    Regular,
    /// It can, at short notice.
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
    /// The IPv6 addresses, of which only the private ones are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ipv6: Vec<IpAddress>,
}

/// An address and the public one that leads to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct IpAddress {
    /// The address the VM itself has.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub private: String,
    /// The address the outside sees.
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
    /// How many bits are the network's.
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
