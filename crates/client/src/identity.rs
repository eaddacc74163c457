//! Who this VM is, among the names that stand in an event's resources.

/// This VM's name, and the ways in which the platform may spell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    name: String,
}

impl Identity {
    /// A VM that is called exactly this, without regard to case.
    pub fn named(name: impl Into<String>) -> Self {
        Identity { name: name.into() }
    }

    /// Whether a name in an event's resources is this VM's.
    pub fn is(&self, resource: &str) -> bool {
        self.name.eq_ignore_ascii_case(resource)
    }

    /// The name, as a person would say it.
    pub fn name(&self) -> &str {
        &self.name
    }
}
