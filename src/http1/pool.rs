//! Buffers that a worker lends out and takes back, so that an idle connection holds none and a busy one allocates none.

use std::{
    cell::RefCell,
    ops::{Deref, DerefMut},
};

/// The capacity of a fresh buffer, in bytes: one read of a usual request or answer.
pub const BUFFER_BYTES: usize = 16 * 1024;

/// A larger buffer is given back to the allocator rather than kept.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// How many buffers a worker keeps at most, 8 MiB of them.
const MAX_KEPT: usize = 512;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A byte buffer that returns to its thread's pool when dropped.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// Takes an empty buffer with room for at least [`BUFFER_BYTES`].
    #[must_use]
    pub fn take() -> Self {
        let kept = FREE.with_borrow_mut(Vec::pop);
        Self(kept.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES)))
    }

    /// A buffer that holds nothing and has allocated nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.0);
        if buffer.capacity() < BUFFER_BYTES || buffer.capacity() > MAX_KEPT_BYTES {
            return;
        }
        buffer.clear();
        // At thread exit the pool may be gone before the last buffer; then the allocator takes it.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MAX_KEPT {
                free.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_lent_again_and_empty() {
        let mut buffer = Buffer::take();
        buffer.extend_from_slice(b"secret");
        let address = buffer.as_ptr();
        drop(buffer);
        let again = Buffer::take();
        assert_eq!(again.as_ptr(), address);
        assert!(again.is_empty());
    }
}
