//! The `countersign` program; everything it does is in the library beside it.

#![allow(
    unsafe_code,
    reason = "an allocator is unsafe by its nature; this one only wipes what it frees"
)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    hint::black_box,
    process::ExitCode,
};

use countersign::secret::PasswordInTransit;

fn main() -> ExitCode {
    countersign::cli::main()
}

#[global_allocator]
static ALLOCATOR: Wiping = Wiping;

/// The system's allocator. While a password passes through the buffers of the HTTP and TLS libraries, which do not wipe
/// them, this wipes what is given back.
struct Wiping;

impl Wiping {
    fn wipes(layout: Layout) -> bool {
        layout.size() >= BUFFER_BYTES && PasswordInTransit::is_any()
    }
}

/// Buffers are at least so large, in bytes, and hardly anything else is.
const BUFFER_BYTES: usize = 4096;

// SAFETY: every call goes to the system's allocator with the arguments it has to have; `realloc` is an allocation, a copy of
// what both pieces have room for, and a deallocation.
unsafe impl GlobalAlloc for Wiping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if Self::wipes(layout) {
            unsafe { memory.write_bytes(0, layout.size()) };
            // Nobody reads it any more, and the compiler must not conclude that it need not be written.
            black_box(memory);
        }
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !Self::wipes(layout) {
            return unsafe { System.realloc(memory, layout, size) };
        }
        unsafe {
            let moved = System.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}
