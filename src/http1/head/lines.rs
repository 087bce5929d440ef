//! The lines of a head, found in bytes that arrive piece by piece.

use super::{
    HeadError, HeadLimits,
    fields::{Span, Spans},
};
use crate::scan::{BLOCK_BYTES, Block, padded};

/// The lines that have arrived of a head. Every byte is looked at once, however many pieces it comes in.
#[derive(Debug, Default)]
pub struct HeadLines {
    /// The first line, without its CRLF.
    pub(super) first: Option<Span>,
    /// The other lines, without theirs.
    pub(super) others: Spans,
    /// There is a control byte that neither ends a line nor is a tab.
    pub(super) has_control: bool,
    line_start: usize,
    searched: usize,
    returns: usize,
}

impl HeadLines {
    /// Where the head ends, its empty line included, or `None` if more must arrive. `bytes` has the bytes of the call
    /// before and more behind them.
    ///
    /// # Errors
    /// [`HeadError::LineEnd`] as soon as a line ends with LF alone, [`HeadError::TooLarge`] past `head_bytes`, and
    /// [`HeadError::TooManyFields`] past `head_fields`.
    pub fn find(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<Option<usize>, HeadError> {
        let (blocks, rest) = bytes.get(self.searched..).unwrap_or_default().as_chunks();
        let mut begin = self.searched;
        for block in blocks {
            if let Some(length) = self.note(controls(block), begin, bytes, limits)? {
                return Ok(Some(length));
            }
            begin += BLOCK_BYTES;
        }
        if let Some(length) = self.note(controls(&padded(rest, b' ')), begin, bytes, limits)? {
            return Ok(Some(length));
        }
        self.searched = bytes.len();
        if bytes.len() >= limits.head_bytes {
            Err(HeadError::TooLarge)
        } else {
            Ok(None)
        }
    }

    /// Takes note of the control bytes in the block that begins at `begin`; the head's length, if it ends there.
    #[inline(always)]
    fn note(
        &mut self,
        mut controls: u32,
        begin: usize,
        bytes: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<usize>, HeadError> {
        while controls != 0 {
            let at = begin + controls.trailing_zeros() as usize;
            controls &= controls - 1;
            match bytes[at] {
                b'\r' => self.returns += 1,
                b'\n' => {
                    if self.end_line(bytes, at, limits)? {
                        return Ok(Some(at + 1));
                    }
                }
                _ => self.has_control = true,
            }
        }
        Ok(None)
    }

    /// Takes note of the line whose LF stands `at`; whether it is the empty one that ends the head.
    #[inline(always)]
    fn end_line(
        &mut self,
        bytes: &[u8],
        at: usize,
        limits: &HeadLimits,
    ) -> Result<bool, HeadError> {
        let start = self.line_start;
        if at == start || bytes[at - 1] != b'\r' {
            return Err(HeadError::LineEnd);
        }
        self.returns -= 1;
        self.line_start = at + 1;
        let line = Span::new(start, at - 1);
        if start == at - 1 {
            // A CR that ended no line.
            self.has_control |= self.returns > 0;
            return if at < limits.head_bytes {
                Ok(true)
            } else {
                Err(HeadError::TooLarge)
            };
        }
        if self.first.is_none() {
            self.first = Some(line);
        } else if self.others.len() < limits.head_fields {
            self.others.push(line);
        } else {
            return Err(HeadError::TooManyFields);
        }
        Ok(false)
    }
}

/// A bit for each control byte but the tab.
#[inline(always)]
fn controls(block: &[u8; BLOCK_BYTES]) -> u32 {
    let block = Block::new(block);
    let low = block.within(0, 0x1f).except(block.equal(b'\t'));
    low.or(block.equal(0x7f)).bits()
}
