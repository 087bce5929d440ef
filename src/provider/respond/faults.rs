//! Faults for the log: whether one shows a condition that lasts, and whether its cause is logged elsewhere.

use super::Failure;
use crate::{
    records::{
        nonce::NonceFault,
        values::{StoreError, is_disk_full, is_logged_outage},
    },
    request::{forward::ForwardFault, verify::VerifyFault},
    telemetry::{
        conditions::{Condition, WINDOW_FULL},
        log::causes::causes,
    },
};

impl Failure {
    /// The condition that lasts and that the fault shows, with its text.
    pub fn condition(&self) -> Option<(Condition, String)> {
        let condition = match self {
            Self::Unverifiable(VerifyFault::Nonces(NonceFault::Full { .. })) => {
                return Some((Condition::NonceWindowFull, WINDOW_FULL.to_owned()));
            }
            Self::Store(error) | Self::Unverifiable(VerifyFault::Store(error)) => match error {
                StoreError::Unopened(_) => Condition::KeyMissing,
                error if is_disk_full(error) => Condition::DiskFull,
                _ => return None,
            },
            Self::Upstream(fault) if !matches!(fault, ForwardFault::Internal(_)) => {
                Condition::Upstream
            }
            _ => return None,
        };
        Some((condition, causes(self)))
    }

    /// Whether the log has the beginning and the end of its cause.
    pub fn is_logged_outage(&self) -> bool {
        match self {
            Self::Unverifiable(fault) => fault.is_logged_outage(),
            _ => is_logged_outage(self),
        }
    }
}
