//! The field lines of a head, as spans of its bytes.

use std::{
    cell::RefCell,
    ops::{Deref, DerefMut},
};

use crate::http1::{name::Name, pool::Buffer, write};

/// A span of the head's bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "heads are bounded far below 4 GiB"
    )]
    pub(super) const fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

/// A line, and once it was read a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldSpan {
    pub(super) known: Name,
    pub(super) name: Span,
    /// The whole line, until it was read.
    pub(super) value: Span,
}

/// The lines of a head, in memory that its thread lends and takes back.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<FieldSpan>);

/// One field line.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// The name, if it is one the proxy knows.
    pub known: Name,
    /// The name as sent.
    pub name: &'a [u8],
    /// The value without the white space around it.
    pub value: &'a [u8],
}

/// The field lines of a head, in the order they came.
#[derive(Debug)]
pub struct Fields {
    bytes: Buffer,
    spans: Spans,
    /// A bit for each known name that is there.
    present: u32,
}

thread_local! {
    static FREE_SPANS: RefCell<Vec<Vec<FieldSpan>>> = const { RefCell::new(Vec::new()) };
}

/// How many a worker keeps at most.
const MAX_KEPT: usize = 512;
/// Room for more lines is given back to the allocator rather than kept.
const MAX_KEPT_LINES: usize = 256;

impl Spans {
    /// Adds a line.
    pub(super) fn push(&mut self, line: Span) {
        if self.0.capacity() == 0 {
            let kept = FREE_SPANS.with_borrow_mut(Vec::pop);
            self.0 = kept.unwrap_or_else(|| Vec::with_capacity(24));
        }
        self.0.push(FieldSpan {
            known: Name::Other,
            name: Span::default(),
            value: line,
        });
    }
}

impl Deref for Spans {
    type Target = [FieldSpan];

    fn deref(&self) -> &[FieldSpan] {
        &self.0
    }
}

impl DerefMut for Spans {
    fn deref_mut(&mut self) -> &mut [FieldSpan] {
        &mut self.0
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        if self.0.capacity() == 0 || self.0.capacity() > MAX_KEPT_LINES {
            return;
        }
        let mut spans = std::mem::take(&mut self.0);
        spans.clear();
        let _ = FREE_SPANS.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MAX_KEPT {
                free.push(spans);
            }
        });
    }
}

/// What becomes of a field where a head is sent on.
#[derive(Debug)]
pub enum Fate {
    /// It goes on as it is.
    Stays,
    /// It does not go on.
    Goes,
    /// It goes on with another value.
    Becomes(Vec<u8>),
}

const fn bit(name: Name) -> u32 {
    1 << name as u32
}

impl Fields {
    /// The fields that were read in `bytes`.
    pub(super) fn new(bytes: Buffer, spans: Spans) -> Self {
        let present = spans.iter().fold(0, |bits, span| bits | bit(span.known));
        Self {
            bytes,
            spans,
            present,
        }
    }

    /// All bytes of the head.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends the fields to `out`, each as `fate` has it and with a single space in front of its value.
    pub fn send_on(&self, out: &mut Vec<u8>, mut fate: impl FnMut(&Field<'_>) -> Fate) {
        // Lines that stand one behind the other and stay as they are, are copied together.
        let mut lines = Span::default();
        for span in &*self.spans {
            let field = self.field(span);
            match fate(&field) {
                Fate::Goes => {}
                Fate::Stays => match self.usual_line(span) {
                    Some(line) if line.start == lines.end => lines.end = line.end,
                    Some(line) => {
                        out.extend_from_slice(lines.of(&self.bytes));
                        lines = line;
                    }
                    None => {
                        out.extend_from_slice(lines.of(&self.bytes));
                        lines = Span::default();
                        write::field(out, field.name, field.value);
                    }
                },
                Fate::Becomes(value) => {
                    out.extend_from_slice(lines.of(&self.bytes));
                    lines = Span::default();
                    write::field(out, field.name, &value);
                }
            }
        }
        out.extend_from_slice(lines.of(&self.bytes));
    }

    /// The whole line of a field with its CRLF, if it came in the way that [`write::field`] has it.
    #[inline(always)]
    fn usual_line(&self, span: &FieldSpan) -> Option<Span> {
        let space = span.name.end as usize + 1;
        let usual = span.value.start as usize == space + 1
            && self.bytes[space] == b' '
            && self.bytes[span.value.end as usize] == b'\r';
        usual.then_some(Span {
            start: span.name.start,
            end: span.value.end + 2,
        })
    }

    #[inline(always)]
    fn field(&self, span: &FieldSpan) -> Field<'_> {
        Field {
            known: span.known,
            name: span.name.of(&self.bytes),
            value: span.value.of(&self.bytes),
        }
    }

    /// All field lines.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.spans.iter().map(|span| self.field(span))
    }

    /// The values of all lines of a known name.
    pub fn all(&self, name: Name) -> impl Iterator<Item = &[u8]> {
        let spans: &[FieldSpan] = if self.has(name) { &self.spans } else { &[] };
        spans
            .iter()
            .filter(move |span| span.known == name)
            .map(|span| span.value.of(&self.bytes))
    }

    /// The value of the only line of a known name.
    ///
    /// # Errors
    /// [`Repeated`] if there are several lines.
    pub fn single(&self, name: Name) -> Result<Option<&[u8]>, Repeated> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            Err(Repeated)
        } else {
            Ok(first)
        }
    }

    /// Whether there is a line of a known name.
    #[must_use]
    pub fn has(&self, name: Name) -> bool {
        self.present & bit(name) != 0
    }
}

/// A field that may stand once stands twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;
