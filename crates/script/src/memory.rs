//! How much memory a script has had. Where nothing is left for an error, the engine throws `null`, and only
//! this tells it from a script that does.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rquickjs::allocator::{Allocator, RustAllocator};

/// The most that was taken at once, in bytes.
#[derive(Clone, Default)]
pub(crate) struct Peak(Arc<AtomicUsize>);

impl Peak {
    /// Whether it has come as near to `limit` as it gets.
    pub(crate) fn reached(&self, limit: usize) -> bool {
        self.0.load(Ordering::Relaxed) >= limit - limit / 16
    }
}

/// Rust's own memory, counted.
pub(crate) struct Counted {
    held: usize,
    peak: Peak,
}

impl Counted {
    pub(crate) fn new(peak: &Peak) -> Self {
        Self { held: 0, peak: peak.clone() }
    }

    fn took(&mut self, bytes: *mut u8) -> *mut u8 {
        if !bytes.is_null() {
            // SAFETY: it was given out a line ago.
            self.held += unsafe { RustAllocator::usable_size(bytes) };
            self.peak.0.fetch_max(self.held, Ordering::Relaxed);
        }
        bytes
    }
}

// SAFETY: each answer is the one of an allocator that keeps the contract; beside it there is only counting.
unsafe impl Allocator for Counted {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        let bytes = RustAllocator.alloc(size);
        self.took(bytes)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if count.checked_mul(size).is_none() {
            return std::ptr::null_mut();
        }
        let bytes = RustAllocator.calloc(count, size);
        self.took(bytes)
    }

    unsafe fn dealloc(&mut self, bytes: *mut u8) {
        // SAFETY: the caller promises that it was given out here.
        unsafe {
            self.held = self.held.saturating_sub(RustAllocator::usable_size(bytes));
            RustAllocator.dealloc(bytes);
        }
    }

    unsafe fn realloc(&mut self, bytes: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that it was given out here; what cannot grow stays as it is.
        let (before, bytes) =
            unsafe { (RustAllocator::usable_size(bytes), RustAllocator.realloc(bytes, size)) };
        if !bytes.is_null() {
            self.held = self.held.saturating_sub(before);
        }
        self.took(bytes)
    }

    unsafe fn usable_size(bytes: *mut u8) -> usize {
        // SAFETY: as promised to us.
        unsafe { RustAllocator::usable_size(bytes) }
    }
}
