//! What a request matches of the operations.

use std::{collections::BTreeSet, net::IpAddr};

use super::operation::Operation;
use crate::request::policy::{
    PolicyRejection, UnmetRule, access::Access, path::AmbiguousPath, settings::OperationSettings,
};

/// The operation that a request matches.
#[derive(Debug)]
pub enum Found<'a> {
    /// This operation.
    Operation(&'a Operation),
    /// A listed path, but none of its methods: the operations of the others.
    OtherMethod(Vec<&'a Operation>),
    /// No listed path.
    Unlisted(Access),
    /// A path that some API takes for one of an operation, which it does not match.
    Similar {
        /// That operation.
        resembled: &'a Operation,
        /// Those whose pattern it matches, which is a wider one.
        matched: Vec<&'a Operation>,
    },
    /// A path that the API could read as another one, for this reason.
    Ambiguous {
        /// The path.
        path: &'a [u8],
        /// What can be read in more than one way.
        reason: AmbiguousPath,
    },
}

impl<'a> Found<'a> {
    /// The operation, if it is one.
    pub const fn operation(&self) -> Option<&'a Operation> {
        match self {
            Self::Operation(operation) => Some(operation),
            Self::OtherMethod(_)
            | Self::Unlisted(_)
            | Self::Similar { .. }
            | Self::Ambiguous { .. } => None,
        }
    }

    /// The rules of the operation, if it is one.
    pub fn rules(&self) -> Option<&'a OperationSettings> {
        self.operation().map(|operation| &operation.rules)
    }
}

impl Found<'_> {
    /// The kinds of caller that may call it; for another method, those that may use one of the listed ones.
    pub fn access(&self) -> Access {
        match self {
            Self::Operation(operation) => operation.access,
            Self::OtherMethod(others) => Access::any_of(others.iter().map(|it| it.access)),
            Self::Unlisted(access) => *access,
            Self::Similar { .. } | Self::Ambiguous { .. } => Access::NOBODY,
        }
    }

    /// The rule by which a caller at this address may not call it; for another method, none of the listed ones.
    #[must_use]
    pub fn unmet_by(&self, caller: Option<IpAddr>) -> Option<UnmetRule> {
        match self {
            Self::Operation(operation) => operation.unmet_by(caller),
            Self::OtherMethod(others) => {
                let unmet: Option<Vec<_>> = others.iter().map(|it| it.unmet_by(caller)).collect();
                unmet?.pop()
            }
            Self::Unlisted(_) | Self::Similar { .. } | Self::Ambiguous { .. } => None,
        }
    }

    /// Whether no credentials open it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Operation(_) => false,
            Self::OtherMethod(_) | Self::Similar { .. } | Self::Ambiguous { .. } => true,
            Self::Unlisted(access) => *access == Access::NOBODY,
        }
    }

    /// # Errors
    /// [`PolicyRejection::Path`] for a path that the API could read as another one.
    pub const fn check_path(&self) -> Result<(), PolicyRejection> {
        match self {
            Self::Ambiguous { reason, .. } => Err(PolicyRejection::Path(*reason)),
            Self::Operation(_)
            | Self::OtherMethod(_)
            | Self::Unlisted(_)
            | Self::Similar { .. } => Ok(()),
        }
    }

    /// # Errors
    /// [`PolicyRejection::MethodNotAllowed`] for a listed path that does not have the method.
    pub fn check_method(&self) -> Result<(), PolicyRejection> {
        match self {
            Self::OtherMethod(others) => Err(PolicyRejection::MethodNotAllowed {
                allow: allowed_methods(others),
            }),
            Self::Operation(_)
            | Self::Unlisted(_)
            | Self::Similar { .. }
            | Self::Ambiguous { .. } => Ok(()),
        }
    }
}

/// The value of `Allow` where these operations list the path.
pub fn allowed_methods(operations: &[&Operation]) -> String {
    let mut methods: BTreeSet<_> = operations.iter().flat_map(|it| it.methods()).collect();
    if methods.contains("GET") {
        methods.insert("HEAD");
    }
    Vec::from_iter(methods).join(", ")
}
