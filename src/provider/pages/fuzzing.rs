//! The parsers of what browsers send, for the fuzz targets alone.

use http::HeaderMap;

use super::Form;
use crate::provider::pages::{browser::cookies, form::return_to};

/// The values of the named fields of a form; `None` if it is unreadable.
pub fn form<'n>(body: &[u8], names: impl Iterator<Item = &'n str>) -> Option<Vec<Option<String>>> {
    let form = Form::parse(body)?;
    Some(
        names
            .map(|name| form.field(name).map(str::to_owned))
            .collect(),
    )
}

/// The value of the one good cookie of this name.
pub fn cookie(headers: &HeaderMap, name: &str) -> Option<Vec<u8>> {
    let id = cookies::read(headers, name).ok()?;
    id.map(|id| id.expose().to_vec())
}

/// The target of a direct login.
pub fn local_path(wanted: &str) -> Option<String> {
    return_to::local_path(wanted)
}
