//! The certificates that this process shows: their dates, and when their files have changed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustls::pki_types::CertificateDer;
use x509_parser::parse_x509_certificate;

use crate::{
    clock::UnixTime,
    config::Config,
    telemetry::conditions::{Condition, Conditions},
    tls,
};

const DAY: u64 = 86_400;

/// Days before the end from which on the process is degraded.
const EXPIRING: u64 = 7;

/// The first certificate of a file of `listen.tls.certificate`, or of `upstream.tls.certificate`.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The key of the configuration.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The certificate itself.
    pub der: CertificateDer<'static>,
    /// The first second in which it is valid.
    pub not_before: UnixTime,
    /// The last second in which it is valid.
    pub not_after: UnixTime,
}

impl Certificate {
    /// Those that the configuration names. A file that cannot be read is skipped: the part that needs it reports it.
    #[must_use]
    pub fn of(config: &Config) -> Vec<Self> {
        let served = config.listen.tls.certificate.iter();
        let served = served.map(|path| ("listen.tls.certificate", path));
        let shown = config.upstream.tls.certificate.iter();
        let shown = shown.map(|path| ("upstream.tls.certificate", path));
        let read = |(key, path): (&'static str, &PathBuf)| {
            let der = tls::certificates(path).ok()?.into_iter().next()?;
            let (_, parsed) = parse_x509_certificate(&der).ok()?;
            let at = |time: x509_parser::time::ASN1Time| {
                UnixTime(u64::try_from(time.timestamp()).unwrap_or(0))
            };
            let validity = parsed.validity();
            let (not_before, not_after) = (at(validity.not_before), at(validity.not_after));
            let path = path.clone();
            Some(Self {
                key,
                path,
                not_before,
                not_after,
                der,
            })
        };
        served.chain(shown).filter_map(read).collect()
    }

    /// Seconds until it ends, 0 from then on.
    #[must_use]
    pub const fn seconds_left(&self, now: UnixTime) -> u64 {
        (self.not_after.0 + 1).saturating_sub(now.0)
    }

    /// Whole days until it ends.
    #[must_use]
    pub const fn days_left(&self, now: UnixTime) -> u64 {
        self.seconds_left(now) / DAY
    }

    /// Why it is valid at no time at all, if that is so.
    #[must_use]
    pub fn never_valid(&self) -> Option<String> {
        let Self {
            key,
            path,
            not_before,
            not_after,
            ..
        } = self;
        (not_after < not_before).then(|| {
            let path = path.display();
            format!("{key}: {path} ends at {not_after}, before it begins at {not_before}; issue it again")
        })
    }

    /// Why callers reject it at `now`, if they do.
    #[must_use]
    pub fn problem(&self, now: UnixTime) -> Option<String> {
        let (key, path) = (self.key, self.path.display());
        self.never_valid().or_else(|| match (self.not_before, self.not_after) {
            (_, end) if end < now => Some(format!("{key}: {path} expired at {end}; renew it")),
            (begin, _) if now < begin => Some(format!(
                "{key}: {path} is not valid before {begin}; set the clock of this machine, or name the certificate of \
                 today"
            )),
            _ => None,
        })
    }

    /// Why `new` may not take the place of `shown` at `now`: a certificate that callers reject replaces none that they
    /// accept.
    ///
    /// # Errors
    /// The problem of the first certificate that is not valid and was not shown before.
    pub fn may_replace(new: &[Self], shown: &[Self], now: UnixTime) -> Result<(), String> {
        let is_shown = |one: &&Self| shown.iter().any(|known| known.der == one.der);
        let mut others = new.iter().filter(|one| !is_shown(one));
        others.find_map(|one| one.problem(now)).map_or(Ok(()), Err)
    }
}

/// Notes the conditions of the certificates that are `shown` at `now`.
pub(super) fn look(shown: &[Certificate], now: UnixTime, conditions: &Conditions) {
    let expiring = |one: &Certificate| {
        let (key, path, end) = (one.key, one.path.display(), one.not_after);
        let days = one.days_left(now);
        let ends_soon = one.problem(now).is_none() && one.seconds_left(now) <= EXPIRING * DAY;
        ends_soon.then(|| format!("{key}: {path} ends at {end}, in {days} days; renew it"))
    };
    let joined = |causes: Vec<String>| (!causes.is_empty()).then(|| causes.join("; "));
    let problems = shown.iter().filter_map(|one| one.problem(now)).collect();
    conditions.set(Condition::CertificateExpired, joined(problems));
    let causes = shown.iter().filter_map(expiring).collect();
    conditions.set(Condition::CertificateExpiring, joined(causes));
}

/// The state of the files of both sides' TLS at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamps(Vec<Option<FileStamp>>);

/// Which file it is, when anything about it changed last, and its length. The time of the last change, unlike that of the
/// last modification, also tells of a file that was moved here with its old date, and of rights given later.
#[derive(Debug, PartialEq, Eq)]
struct FileStamp {
    file: (u64, u64),
    changed: (i64, i64),
    length: u64,
}

impl Stamps {
    /// Looks at the files; to be called before they are read, so that a change in between is noticed the next time.
    pub(super) fn of(config: &Config) -> Self {
        let (listener, upstream) = (&config.listen.tls, &config.upstream.tls);
        let served = listener.certificate.iter().chain(&listener.key);
        let shown = upstream.certificate.iter().chain(&upstream.key);
        let files = served.chain(&listener.client_ca).chain(shown);
        Self(files.chain(&upstream.ca).map(stamp).collect())
    }
}

/// Links are followed: what they lead to may be swapped as a whole.
fn stamp(path: impl AsRef<Path>) -> Option<FileStamp> {
    let found = fs::metadata(path).ok()?;
    Some(FileStamp {
        file: (found.dev(), found.ino()),
        changed: (found.ctime(), found.ctime_nsec()),
        length: found.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const NOW: UnixTime = UnixTime(1_800_000_000);

    fn certificate(from_days: i64, until_days: i64) -> Certificate {
        let at = |days: i64| UnixTime(NOW.0.saturating_add_signed(days * DAY.cast_signed()));
        Certificate {
            key: "listen.tls.certificate",
            path: "server.pem".into(),
            der: CertificateDer::from(format!("{from_days} {until_days}").into_bytes()),
            not_before: at(from_days),
            not_after: at(until_days),
        }
    }

    #[test]
    fn no_invalid_certificate_replaces_a_valid_one() {
        let (valid, expired, early, inverted) = (
            certificate(-1, 60),
            certificate(-9, -1),
            certificate(1, 9),
            certificate(9, 1),
        );
        for (new, may) in [
            (&valid, true),
            (&expired, false),
            (&early, false),
            (&inverted, false),
        ] {
            let replaced = Certificate::may_replace(std::slice::from_ref(new), &[], NOW);
            assert_eq!(replaced.is_ok(), may, "{new:?}");
            // What is shown already stays when something else is reloaded.
            let shown = std::slice::from_ref(new);
            assert!(Certificate::may_replace(shown, shown, NOW).is_ok());
        }
        assert!(inverted.never_valid().is_some() && expired.never_valid().is_none());
    }

    #[test]
    fn the_last_days_are_a_condition() {
        let conditions = Conditions::new(Clock::manual(NOW));
        for (until, is_expiring) in [(31, false), (8, false), (7, true), (1, true)] {
            let one = certificate(-1, until);
            look(&[one], UnixTime(NOW.0 + 1), &conditions);
            let expiring = conditions.lasts(Condition::CertificateExpiring);
            assert_eq!(expiring, is_expiring, "{until} days");
        }
        look(&[certificate(-9, -1)], NOW, &conditions);
        assert!(conditions.lasts(Condition::CertificateExpired));
        assert!(!conditions.lasts(Condition::CertificateExpiring));
    }
}
