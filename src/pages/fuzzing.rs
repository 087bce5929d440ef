//! The parsers of what browsers send, for the fuzz targets alone.

use super::{
    cookies::{self, Cookie},
    fields::{self, Form},
    return_to,
};

/// The values of the named fields of a form; `None` if it is unreadable.
pub fn form<'n>(body: &[u8], names: impl Iterator<Item = &'n str>) -> Option<Vec<Option<String>>> {
    let form = Form::parse(body).ok()?;
    Some(
        names
            .map(|name| form.field(name).map(str::to_owned))
            .collect(),
    )
}

/// A parameter of a query; `None` if it is unreadable.
#[must_use]
pub fn parameter(query: &[u8], name: &str) -> Option<Option<String>> {
    fields::parameter(query, name).ok()
}

/// The value of the one good cookie of this name.
#[must_use]
pub fn cookie(fields: &[&[u8]], name: &str) -> Option<Vec<u8>> {
    match cookies::read(fields, name) {
        Cookie::One(secret) => Some(secret.expose().to_vec()),
        Cookie::None | Cookie::Invalid | Cookie::Several => None,
    }
}

/// Where a direct login leads.
#[must_use]
pub fn local_path(wanted: &str, origin: &str) -> Option<String> {
    return_to::local_path(wanted, origin)
}
