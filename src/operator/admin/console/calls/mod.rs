//! Pages on calls: the overview, rejections, one call, and the check of a signature.

pub(super) mod call;
mod minute;
mod observed;
pub(super) mod overview;
pub(super) mod reasons;
pub(super) mod rejected;
mod rejections;
mod signature;
