//! Helpers that move rarely used code out of line, so that the code of a call that succeeds fits better into the caches of
//! a processor.

use std::pin::Pin;

/// Boxes a future that is rarely needed, so that neither its size nor its code is part of the future that awaits it.
#[cold]
#[inline(never)]
pub fn boxed<'f, T>(future: impl Future<Output = T> + 'f) -> Pin<Box<dyn Future<Output = T> + 'f>> {
    Box::pin(future)
}

/// Converts errors into another one out of line; a branch that leads there counts as rare.
macro_rules! cold_from {
    ($target:ty { $($source:ty as $error:ident => $value:expr),+ $(,)? }) => {
        $(impl From<$source> for $target {
            #[cold]
            #[inline(never)]
            fn from($error: $source) -> Self {
                $value
            }
        })+
    };
}
pub(crate) use cold_from;
