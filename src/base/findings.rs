//! Checks that end at their first finding, as the server's, or that collect all of them, as those of the signature doctor.
//!
//! A check is written once, over a [`Findings`], and compiled for each.

/// Receives the findings of a check.
pub trait Findings<F> {
    /// Takes a finding.
    ///
    /// # Errors
    /// The finding, if it ends the check.
    fn add(&mut self, finding: F) -> Result<(), F>;

    /// Takes the result of a step: its value, or `None` where its finding does not end the check.
    ///
    /// # Errors
    /// As [`Findings::add`].
    #[inline(always)]
    fn take<T>(&mut self, step: Result<T, F>) -> Result<Option<T>, F> {
        match step {
            Ok(value) => Ok(Some(value)),
            Err(finding) => self.add(finding).map(|()| None),
        }
    }
}

/// Ends a check at its first finding.
#[derive(Debug, Clone, Copy)]
pub struct First;

impl<F> Findings<F> for First {
    #[inline(always)]
    fn add(&mut self, finding: F) -> Result<(), F> {
        Err(finding)
    }
}

impl<F> Findings<F> for Vec<F> {
    fn add(&mut self, finding: F) -> Result<(), F> {
        self.push(finding);
        Ok(())
    }
}
