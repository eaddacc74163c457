//! Locations of DHCP lease files.

use std::fs;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::lease;

/// A directory with the name pattern of its lease files.
struct LeaseLocation {
    directory: &'static str,
    begins: &'static str,
    ends: &'static [&'static str],
}

/// Current state before possible leftovers.
const LEASE_LOCATIONS: [LeaseLocation; 6] = [
    // systemd-networkd: one file per interface, by index.
    LeaseLocation { directory: "run/systemd/netif/leases", begins: "", ends: &[""] },
    // NetworkManager: device state, and leases of older versions and of its dhclient.
    LeaseLocation { directory: "run/NetworkManager/devices", begins: "", ends: &[""] },
    LeaseLocation { directory: "var/lib/NetworkManager", begins: "", ends: &[".lease", ".leases"] },
    // dhclient, alone or by ifupdown: on Debian and on other distributions.
    LeaseLocation { directory: "var/lib/dhcp", begins: "dhclient", ends: &[".lease", ".leases"] },
    LeaseLocation { directory: "run", begins: "dhclient", ends: &[".lease", ".leases"] },
    LeaseLocation { directory: "var/lib/dhclient", begins: "", ends: &[".lease", ".leases"] },
];

/// Most files read per directory. A VM has few interfaces.
const FILES_MAX: usize = 64;
/// Bytes read from the end of a file: years of leases.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The addresses in all lease files below a root, without duplicates, each with its file.
pub fn find_leases(root: &Path) -> Vec<(PathBuf, Ipv4Addr)> {
    let mut found: Vec<(PathBuf, Ipv4Addr)> = Vec::new();
    for file in LEASE_LOCATIONS.iter().flat_map(|place| files(root, place)) {
        for address in read_end(&file).map(|text| lease::addresses(&text)).unwrap_or_default() {
            if !found.iter().any(|(_, known)| *known == address) {
                found.push((file.clone(), address));
            }
        }
    }
    found
}

/// The files of a location, newest first.
fn files(root: &Path, place: &LeaseLocation) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join(place.directory)) else {
        return Vec::new();
    };
    let named = |entry: &fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(place.begins) && place.ends.iter().any(|end| name.ends_with(end))
    };
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(named)
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .take(FILES_MAX)
        .collect();
    files.sort();
    files.into_iter().rev().map(|(_, path)| path).collect()
}

fn read_end(path: &Path) -> std::io::Result<String> {
    use std::io::{Seek, SeekFrom};
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(FILE_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_found_where_clients_keep_them() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert!(find_leases(root.path()).is_empty());
        put("run/systemd/netif/leases/2", "ADDRESS=10.0.0.4\nOPTION_245=0a000001\n");
        put("var/lib/NetworkManager/internal-5d-eth0.lease", "OPTION_245=0a000002\n");
        put("var/lib/NetworkManager/dhclient-5d-eth0.lease", "option unknown-245 a:0:0:2;\n");
        put("run/NetworkManager/devices/2", "[dhcp4]\ndhcp4.private_245=0a:00:00:03\n");
        put("var/lib/dhcp/dhclient.eth0.leases", "option unknown-245 a:0:0:4;\n");
        put("run/dhclient.eth0.lease", "option unknown-245 a:0:0:5;\n");
        put("var/lib/dhclient/eth0.leases", "option unknown-245 a:0:0:6;\n");
        put("var/lib/dhcp/dhcpd.leases", "option unknown-245 a:0:0:7;\n");
        put("var/lib/dhcp/dhclient.conf", "option unknown-245 a:0:0:8;\n");
        let long = format!("option unknown-245 a:0:0:9;\n{}\n", "# \n".repeat(FILE_BYTES_MAX as usize / 3));
        put("var/lib/dhclient/long.leases", &long);
        let last: Vec<u8> = find_leases(root.path()).iter().map(|(_, address)| address.octets()[3]).collect();
        assert_eq!(last, [1, 3, 2, 4, 5, 6]);
    }
}
