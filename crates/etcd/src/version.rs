//! Releases of etcd: those that are too old, and those with known faults.

/// The oldest release whose API has what this crate uses: fragments of watches, and the size in use.
const OLDEST: (u32, u32) = (3, 4);

/// Whether a version is older than this crate can use. A version that cannot be parsed is that of a fork; it is accepted.
pub(crate) fn is_too_old(version: &str) -> bool {
    parse(version).is_some_and(|(major, minor, _)| (major, minor) < OLDEST)
}

/// What an operator should know about a release of etcd; none if nothing is known.
pub fn version_warning(version: &str) -> Option<String> {
    let fault = match parse(version)? {
        (3, 5, 0..=2) => "a member that is killed under load can lose or diverge from committed data",
        (3, 5, 3..=5) => {
            "a member can diverge from committed data, with authentication or after defragmentation"
        }
        (3, 4, 20..=21) => "a member can diverge from committed data",
        _ => return None,
    };
    let (wanted, minor) = match version.starts_with("3.4") {
        true => ("3.4.22", "3.4"),
        false => ("3.5.6", "3.5"),
    };
    Some(format!("etcd {version} has a known fault: {fault}; upgrade etcd {minor} to {wanted} or later"))
}

/// Major, minor and patch. What follows the patch (`-rc.1`, `+git`) is ignored.
fn parse(version: &str) -> Option<(u32, u32, u32)> {
    let mut parts = version.splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    let patch = parts.next()?;
    let digits = patch.find(|character: char| !character.is_ascii_digit()).unwrap_or(patch.len());
    Some((major, minor, patch[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_with_known_faults_are_warned_of() {
        for version in ["3.5.0", "3.5.2", "3.5.3", "3.5.5", "3.4.20", "3.4.21", "3.5.0-rc.1", "3.5.4+git"] {
            let warning = version_warning(version).unwrap();
            assert!(warning.contains(version) && warning.contains("or later"), "{warning}");
        }
        for version in
            ["3.4.19", "3.4.22", "3.4.23", "3.5.6", "3.5.21", "3.6.0", "4.0.0", "", "3", "3.x.1", "3.5."]
        {
            assert_eq!(version_warning(version), None, "{version}");
        }
    }

    #[test]
    fn releases_before_3_4_are_too_old() {
        for (version, expected) in [
            ("3.3.27", true),
            ("2.3.8", true),
            ("3.4.0", false),
            ("3.6.1", false),
            ("4.0.0", false),
            ("x", false),
        ] {
            assert_eq!(is_too_old(version), expected, "{version}");
        }
    }
}
