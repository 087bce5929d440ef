//! The double quotes of CSV, which its reader does not check: after the end of a quoted cell it takes further text for a
//! part of it.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{self, Read},
    rc::Rc,
};

/// The places of bytes that should not be there.
pub(super) type Misquoted = Rc<RefCell<VecDeque<u64>>>;

/// Passes CSV on, and notes the bytes that follow the end of a quoted cell. RFC 4180 §2.7: "If double-quotes are used to enclose
/// fields, then a double-quote appearing inside a field must be escaped by preceding it with another double quote".
pub(super) struct Quotes<R> {
    input: R,
    delimiter: u8,
    place: Place,
    /// The number of bytes that were read.
    bytes: u64,
    pub(super) misquoted: Misquoted,
}

/// A place in a row of CSV.
#[derive(Clone, Copy)]
enum Place {
    Begin,
    Plain,
    Quoted,
    /// After a quote inside a quoted cell: its end, or half of a quote.
    Quote,
}

impl<R> Quotes<R> {
    pub(super) fn new(input: R, delimiter: u8) -> Self {
        Self {
            input,
            delimiter,
            place: Place::Begin,
            bytes: 0,
            misquoted: Misquoted::default(),
        }
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if read == 0 && matches!(self.place, Place::Quoted) && self.bytes > 0 {
            // The last cell has no end.
            self.misquoted.borrow_mut().push_back(self.bytes - 1);
        }
        for &byte in &buffer[..read] {
            self.place = match (self.place, byte) {
                (Place::Begin | Place::Quote, b'"') => Place::Quoted,
                (Place::Quoted, b'"') => Place::Quote,
                (Place::Quoted, _) => Place::Quoted,
                (_, b'\n' | b'\r') => Place::Begin,
                (_, byte) if byte == self.delimiter => Place::Begin,
                (Place::Quote, _) => {
                    self.misquoted.borrow_mut().push_back(self.bytes);
                    Place::Plain
                }
                (Place::Begin | Place::Plain, _) => Place::Plain,
            };
            self.bytes += 1;
        }
        Ok(read)
    }
}
