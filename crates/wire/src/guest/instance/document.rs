//! Renders the instance document at a version.
//!
//! A table lists each field of `compute`, the version that introduced it, and how to fill it. It is in alphabetical
//! order, like the keys in the response. Single values are strings; unknown values are empty strings. Further tables
//! of the same kind list the fields that later versions added to a profile.

use serde_json::{Map, Value, json};

use super::version::since;
use super::{Instance, InstanceVersion, Interface};

type Fill = fn(&Instance, InstanceVersion) -> Value;

/// A key, the version that introduced it, and its value.
type Field = (&'static str, InstanceVersion, Fill);

const COMPUTE: &[Field] = &[
    ("additionalCapabilities", since("2021-11-01"), |_, _| json!({ "hibernationEnabled": "false" })),
    ("azEnvironment", since("2018-10-01"), |it, _| text(&it.environment)),
    ("customData", since("2019-02-01"), |it, _| text(&it.custom_data)),
    ("evictionPolicy", since("2020-12-01"), |it, _| text(&it.eviction_policy)),
    ("extendedLocation", since("2021-03-01"), |_, _| json!({ "name": "", "type": "" })),
    ("host", since("2021-11-15"), |it, _| json!({ "id": it.host_id })),
    ("hostGroup", since("2021-11-15"), |_, _| json!({ "id": "" })),
    ("isHostCompatibilityLayerVm", since("2020-06-01"), |_, _| text("false")),
    ("licenseType", since("2020-09-01"), |_, _| text("")),
    ("location", since("2017-04-02"), |it, _| text(&it.location)),
    ("name", since("2017-04-02"), |it, _| text(&it.name)),
    ("offer", since("2017-04-02"), |it, _| text(&it.offer)),
    ("osProfile", since("2020-07-15"), |it, version| object(OS_PROFILE, it, version)),
    ("osType", since("2017-04-02"), |it, _| text(&it.os_type)),
    ("physicalZone", since("2023-11-15"), |it, _| text(&it.physical_zone)),
    ("placementGroupId", since("2017-08-01"), |it, _| text(&it.placement_group_id)),
    ("plan", since("2018-04-02"), |_, _| json!({ "name": "", "product": "", "publisher": "" })),
    ("platformFaultDomain", since("2017-04-02"), |it, _| number(it.platform_fault_domain)),
    ("platformSubFaultDomain", since("2021-10-01"), |_, _| text("")),
    ("platformUpdateDomain", since("2017-04-02"), |it, _| number(it.platform_update_domain)),
    ("priority", since("2020-12-01"), |it, _| text(it.priority.as_str())),
    ("provider", since("2018-10-01"), |_, _| text("Microsoft.Compute")),
    ("publicKeys", since("2018-04-02"), |_, _| json!([])),
    ("publisher", since("2017-04-02"), |it, _| text(&it.publisher)),
    ("resourceGroupName", since("2017-08-01"), |it, _| text(&it.resource_group_name)),
    ("resourceId", since("2019-03-11"), |it, _| Value::String(resource_id(it))),
    ("securityProfile", since("2020-06-01"), |it, version| object(SECURITY_PROFILE, it, version)),
    ("sku", since("2017-04-02"), |it, _| text(&it.sku)),
    ("storageProfile", since("2019-06-01"), |it, version| object(STORAGE_PROFILE, it, version)),
    ("subscriptionId", since("2017-08-01"), |it, _| text(&it.subscription_id)),
    ("tags", since("2017-08-01"), |it, _| Value::String(tags(it))),
    ("tagsList", since("2019-06-04"), |it, _| tags_list(it)),
    ("userData", since("2021-01-01"), |it, _| text(&it.user_data)),
    ("version", since("2017-04-02"), |it, _| text(&it.version)),
    ("virtualMachineScaleSet", since("2021-03-01"), |it, _| json!({ "id": it.virtual_machine_scale_set_id })),
    ("vmId", since("2017-04-02"), |it, _| vm_id(it)),
    ("vmScaleSetName", since("2017-12-01"), |it, _| text(&it.vm_scale_set_name)),
    ("vmSize", since("2017-04-02"), |it, _| text(&it.vm_size)),
    ("zone", since("2017-12-01"), |it, _| text(&it.zone)),
];

const OS_PROFILE: &[Field] = &[
    ("adminUsername", since("2020-07-15"), |it, _| text(&it.admin_username)),
    ("computerName", since("2020-07-15"), |it, _| text(&it.computer_name)),
    ("disablePasswordAuthentication", since("2020-10-01"), |_, _| text("")),
];

const SECURITY_PROFILE: &[Field] = &[
    ("encryptionAtHost", since("2021-11-01"), |_, _| text("")),
    ("secureBootEnabled", since("2020-06-01"), |_, _| text("")),
    ("securityType", since("2021-12-13"), |_, _| text("")),
    ("virtualTpmEnabled", since("2020-06-01"), |_, _| text("")),
];

const STORAGE_PROFILE: &[Field] = &[
    ("dataDisks", since("2019-06-01"), |_, _| json!([])),
    ("imageReference", since("2019-06-01"), |it, version| object(IMAGE_REFERENCE, it, version)),
    ("osDisk", since("2019-06-01"), |it, _| os_disk(it)),
    ("resourceDisk", since("2021-02-01"), |_, _| json!({ "size": "0" })),
];

const IMAGE_REFERENCE: &[Field] = &[
    ("communityGalleryImageId", since("2023-07-01"), |_, _| text("")),
    ("exactVersion", since("2023-07-01"), |_, _| text("")),
    ("id", since("2019-06-01"), |_, _| text("")),
    ("offer", since("2019-06-01"), |it, _| text(&it.offer)),
    ("publisher", since("2019-06-01"), |it, _| text(&it.publisher)),
    ("sharedGalleryImageId", since("2023-07-01"), |_, _| text("")),
    ("sku", since("2019-06-01"), |it, _| text(&it.sku)),
    ("version", since("2019-06-01"), |it, _| text(&it.version)),
];

/// The whole document of a version.
pub fn document(instance: &Instance, version: InstanceVersion) -> Value {
    let interfaces: Vec<Value> = instance.interfaces.iter().map(interface).collect();
    json!({
        "compute": object(COMPUTE, instance, version),
        "network": { "interface": interfaces },
    })
}

fn object(fields: &[Field], instance: &Instance, version: InstanceVersion) -> Value {
    let present = fields.iter().filter(|(_, since, _)| *since <= version);
    Value::Object(
        present.map(|(key, _, fill)| ((*key).to_owned(), fill(instance, version))).collect::<Map<_, _>>(),
    )
}

fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

fn number(value: Option<u32>) -> Value {
    Value::String(value.map(|number| number.to_string()).unwrap_or_default())
}

fn vm_id(instance: &Instance) -> Value {
    if instance.vm_id.is_nil() { text("") } else { Value::String(instance.vm_id.to_string()) }
}

/// `name:value` pairs separated by semicolons. The format is ambiguous; `tagsList` is not.
fn tags(instance: &Instance) -> String {
    let pairs: Vec<String> = instance.tags.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    pairs.join(";")
}

fn tags_list(instance: &Instance) -> Value {
    instance.tags.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

/// The VM's resource id, unique in its subscription. Members of a uniform scale set (name: the set's and a number)
/// are resources of the set. In Azure a name is unique in its group. Here two scopes of a group may have the same
/// name; then the id has `scope~name`, which no VM name can contain.
fn resource_id(instance: &Instance) -> String {
    let Instance { subscription_id, resource_group_name, name, vm_scale_set_name, .. } = instance;
    if subscription_id.is_empty() || resource_group_name.is_empty() || name.is_empty() {
        return String::new();
    }
    let group = format!(
        "/subscriptions/{subscription_id}/resourceGroups/{resource_group_name}/providers/Microsoft.Compute"
    );
    let scope = match instance.namesake_scope.as_str() {
        "" => String::new(),
        scope => format!("{scope}~"),
    };
    match set_and_number(name) {
        Some((set, number)) if set == vm_scale_set_name => {
            format!("{group}/virtualMachineScaleSets/{set}/virtualMachines/{scope}{number}")
        }
        Some(_) | None => format!("{group}/virtualMachines/{scope}{name}"),
    }
}

/// Splits the name of a member of a uniform scale set into set and number: `batch_3` into `batch` and `3`.
pub fn set_and_number(name: &str) -> Option<(&str, &str)> {
    let (set, number) = name.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !set.is_empty()).then_some((set, number))
}

fn os_disk(instance: &Instance) -> Value {
    json!({
        "caching": "",
        "createOption": "",
        "diffDiskSettings": { "option": "" },
        "diskSizeGB": "",
        "encryptionSettings": { "enabled": "" },
        "image": { "uri": "" },
        "managedDisk": { "id": "", "storageAccountType": "" },
        "name": "",
        "osType": instance.os_type,
        "vhd": { "uri": "" },
        "writeAcceleratorEnabled": "",
    })
}

fn interface(interface: &Interface) -> Value {
    let ipv4: Value = (interface.ipv4.iter())
        .map(|address| json!({ "privateIpAddress": address.private, "publicIpAddress": address.public }))
        .collect();
    let subnets: Value = (interface.subnets.iter())
        .map(|subnet| json!({ "address": subnet.address, "prefix": subnet.prefix }))
        .collect();
    let ipv6: Value =
        (interface.ipv6.iter()).map(|address| json!({ "privateIpAddress": address.private })).collect();
    json!({
        "ipv4": { "ipAddress": ipv4, "subnet": subnets },
        "ipv6": { "ipAddress": ipv6 },
        "macAddress": interface.mac_address,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{IpAddress, Priority, Subnet};
    use super::*;

    fn at(date: &str) -> InstanceVersion {
        InstanceVersion::parse(date).unwrap()
    }

    #[test]
    fn tables_are_alphabetical_and_every_date_is_a_version() {
        for table in [COMPUTE, OS_PROFILE, SECURITY_PROFILE, STORAGE_PROFILE, IMAGE_REFERENCE] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
            for (key, since, _) in table {
                assert!(InstanceVersion::parse(since.as_str()).is_some(), "{key} since {since:?}");
            }
        }
    }

    #[test]
    fn the_captured_keys_of_2017_08_01_are_there_in_order() {
        let whole = document(&Instance::default(), at("2017-08-01"));
        let keys: Vec<&str> = whole["compute"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            keys.join(" "),
            "location name offer osType placementGroupId platformFaultDomain platformUpdateDomain publisher \
             resourceGroupName sku subscriptionId tags version vmId vmSize"
        );
    }

    #[test]
    fn every_single_value_is_a_string_at_every_version() {
        fn check(value: &Value) {
            match value {
                Value::String(_) => {}
                Value::Array(items) => items.iter().for_each(check),
                Value::Object(fields) => fields.values().for_each(check),
                Value::Null | Value::Bool(_) | Value::Number(_) => panic!("{value}"),
            }
        }
        for version in InstanceVersion::ALL {
            check(&document(&Instance::default(), version));
        }
    }

    #[test]
    fn resource_ids_have_azure_format_and_are_unique() {
        let id = |name: &str, set: &str, namesake_scope: &str| {
            let instance = Instance {
                name: name.to_owned(),
                subscription_id: "s".to_owned(),
                resource_group_name: "g".to_owned(),
                vm_scale_set_name: set.to_owned(),
                namesake_scope: namesake_scope.to_owned(),
                ..Instance::default()
            };
            let id = resource_id(&instance);
            id.strip_prefix("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/")
                .unwrap()
                .to_owned()
        };
        for (name, set, namesake_scope, expected) in [
            ("web-0", "", "", "virtualMachines/web-0"),
            ("web-0", "", "blue", "virtualMachines/blue~web-0"),
            ("batch_3", "batch", "", "virtualMachineScaleSets/batch/virtualMachines/3"),
            ("batch_3", "batch", "pg-2", "virtualMachineScaleSets/batch/virtualMachines/pg-2~3"),
            ("a_b_3", "a_b", "", "virtualMachineScaleSets/a_b/virtualMachines/3"),
            // Members of flexible sets are resources of the group.
            ("batch_3f", "batch", "", "virtualMachines/batch_3f"),
            ("batch_", "batch", "", "virtualMachines/batch_"),
            ("_3", "", "", "virtualMachines/_3"),
            ("node_3", "batch", "", "virtualMachines/node_3"),
        ] {
            assert_eq!(id(name, set, namesake_scope), expected);
        }
    }

    #[test]
    fn known_fields_are_rendered() {
        let instance = Instance {
            name: "batch_3".to_owned(),
            vm_id: uuid::Uuid::from_u128(0xABC),
            subscription_id: "s".to_owned(),
            resource_group_name: "g".to_owned(),
            vm_scale_set_name: "batch".to_owned(),
            platform_update_domain: Some(4),
            priority: Priority::Spot,
            tags: vec![("a".into(), "1".into()), ("b".into(), "2".into())],
            interfaces: vec![Interface {
                mac_address: "000D3A000001".into(),
                ipv4: vec![IpAddress { private: "10.0.0.4".into(), public: String::new() }],
                subnets: vec![Subnet { address: "10.0.0.0".into(), prefix: "24".into() }],
                ipv6: vec![IpAddress { private: "fd00::4".into(), public: String::new() }],
            }],
            ..Instance::default()
        };
        let whole = document(&instance, at("2025-04-07"));
        let compute = &whole["compute"];
        assert_eq!(compute["vmId"], "00000000-0000-0000-0000-000000000abc");
        assert_eq!(compute["platformUpdateDomain"], "4");
        assert_eq!(compute["platformFaultDomain"], "");
        assert_eq!(compute["priority"], "Spot");
        assert_eq!(compute["tags"], "a:1;b:2");
        assert_eq!(compute["tagsList"], json!([{"name":"a","value":"1"},{"name":"b","value":"2"}]));
        assert_eq!(
            compute["resourceId"],
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/batch/virtualMachines/3"
        );
        assert_eq!(
            whole["network"].to_string(),
            r#"{"interface":[{"ipv4":{"ipAddress":[{"privateIpAddress":"10.0.0.4","publicIpAddress":""}],"subnet":[{"address":"10.0.0.0","prefix":"24"}]},"ipv6":{"ipAddress":[{"privateIpAddress":"fd00::4"}]},"macAddress":"000D3A000001"}]}"#
        );
    }
}
