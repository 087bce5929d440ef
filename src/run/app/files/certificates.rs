//! The certificates that this process shows: their dates, and the detection of changed files.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustls::pki_types::CertificateDer;
use x509_cert::der::Decode as _;

use crate::{
    base::{clock::UnixTime, network::tls, text::counted},
    operator::admin::console::ShownCertificate,
    run::config::Config,
    telemetry::conditions::{Condition, Conditions},
};

const DAY: u64 = 86_400;

/// Days before the end of a certificate at which the log has a line.
const WARN_DAYS: [u64; 3] = [1, 7, 30];

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
    pub fn read(config: &Config) -> Vec<Self> {
        let served = config.listen_tls.certificate.iter();
        let served = served.map(|path| ("listen.tls.certificate", path));
        let shown = config.upstream_tls.certificate.iter();
        let shown = shown.map(|path| ("upstream.tls.certificate", path));
        let read = |(key, path): (&'static str, &PathBuf)| {
            let der = tls::certificates(path).ok()?.into_iter().next()?;
            let parsed = x509_cert::Certificate::from_der(&der).ok()?;
            let at = |time: x509_cert::time::Time| UnixTime(time.to_unix_duration().as_secs());
            let validity = parsed.tbs_certificate.validity;
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
    pub const fn seconds_left(&self, now: UnixTime) -> u64 {
        (self.not_after.0 + 1).saturating_sub(now.0)
    }

    /// Whole days until it ends.
    pub const fn days_left(&self, now: UnixTime) -> u64 {
        self.seconds_left(now) / DAY
    }

    /// Whether it ends so soon that somebody should renew it.
    pub fn ends_soon(&self, now: UnixTime) -> bool {
        WARN_DAYS.iter().any(|days| self.days_left(now) < *days)
    }

    /// As operators see it.
    pub(in crate::run::app) fn shown(&self, now: UnixTime) -> ShownCertificate {
        ShownCertificate {
            name: format!("{}: {}", self.key, self.path.display()),
            not_after: self.not_after,
            days_left: self.days_left(now),
            ends_soon: self.ends_soon(now),
            problem: self.problem(now),
        }
    }

    /// Why it is valid at no time at all, if that is so.
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

    /// Checks that `new` may replace `shown` at `now`: a certificate that callers reject does not replace one that they
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

/// Watches the dates of the certificates that are shown.
#[derive(Debug, Default)]
pub(in crate::run::app) struct Dates {
    /// The certificates that have passed one of [`WARN_DAYS`], by file and end, with the last one that they passed.
    passed: Vec<(PathBuf, UnixTime, u64)>,
}

impl Dates {
    /// Notes the conditions of the certificates that are `shown` at `now`, and logs each of [`WARN_DAYS`] once when it is passed.
    pub(in crate::run::app) fn note(
        &mut self,
        shown: &[Certificate],
        now: UnixTime,
        conditions: &Conditions,
    ) {
        let (mut expired, mut expiring, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        for one in shown {
            let (key, path, end) = (one.key, one.path.display(), one.not_after);
            let (days, left) = (one.days_left(now), one.seconds_left(now));
            if let Some(problem) = one.problem(now) {
                expired.push(problem);
                continue;
            }
            if left <= EXPIRING * DAY {
                expiring.push(format!(
                    "{key}: {path} ends at {end}, in {}; renew it",
                    counted(days, "day")
                ));
            }
            if let Some(&warned) = WARN_DAYS.iter().find(|&&days| left <= days * DAY) {
                let warned = (one.path.clone(), end, warned);
                if !self.passed.contains(&warned) {
                    tracing::warn!(key, file = %path, days_left = days, %end, "certificate ends soon; renew it");
                }
                passed.push(warned);
            }
        }
        self.passed = passed;
        let joined = |causes: Vec<String>| (!causes.is_empty()).then(|| causes.join("; "));
        conditions.set(Condition::CertificateExpired, joined(expired));
        conditions.set(Condition::CertificateExpiring, joined(expiring));
    }
}

/// The state of the files of both sides' TLS at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::run::app) struct Stamps(Vec<Option<FileStamp>>);

/// Device, inode, seconds and nanoseconds of the last change, and length. The time of the last change, unlike that of
/// the last modification, also reveals a file that was moved here with its old date, and a later change of rights.
type FileStamp = (u64, u64, i64, i64, u64);

impl Stamps {
    /// Looks at the files; to be called before they are read, so that a change in between is noticed the next time.
    pub(in crate::run::app) fn read(config: &Config) -> Self {
        let (listener, upstream) = (&config.listen_tls, &config.upstream_tls);
        let served = listener.certificate.iter().chain(&listener.key);
        let shown = upstream.certificate.iter().chain(&upstream.key);
        let files = served.chain(&listener.client_ca).chain(shown);
        Self(files.chain(&upstream.ca).map(stamp).collect())
    }
}

/// Links are followed: the target of a link may be replaced as a whole.
fn stamp(path: impl AsRef<Path>) -> Option<FileStamp> {
    let found = fs::metadata(path).ok()?;
    let (seconds, nanos) = (found.ctime(), found.ctime_nsec());
    Some((found.dev(), found.ino(), seconds, nanos, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{base::clock::Clock, telemetry::tests::logged};

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
            // A certificate that is shown already stays when something else is reloaded.
            let shown = std::slice::from_ref(new);
            assert!(Certificate::may_replace(shown, shown, NOW).is_ok());
        }
        assert!(inverted.never_valid().is_some() && expired.never_valid().is_none());
    }

    #[test]
    fn each_mark_is_logged_once_and_the_last_days_are_a_condition() {
        let conditions = Conditions::new(Clock::manual(NOW));
        let (mut dates, shown) = (Dates::default(), [certificate(-1, 31)]);
        let mut look = |day: u64, second: u64| {
            let now = UnixTime(NOW.0 + day * DAY + second);
            let lines = logged(|| dates.note(&shown, now, &conditions));
            let marks = lines.iter().filter(|line| line.contains("ends soon"));
            assert!(lines.iter().all(|line| line.contains("WARN")), "{lines:?}");
            (
                marks.count(),
                conditions.lasts(Condition::CertificateExpiring),
            )
        };
        for (day, is_logged, is_expiring) in [
            (0, false, false),
            (1, true, false),
            (2, false, false),
            (23, false, false),
            (24, true, true),
            (25, false, true),
            (29, false, true),
            (30, true, true),
        ] {
            let found = look(day, 1);
            assert_eq!(found, (is_logged.into(), is_expiring), "day {day}");
            for second in 2..5 {
                assert_eq!(look(day, second), (0, is_expiring), "day {day}");
            }
        }
        // A start in the last days logs the mark that was passed last, and so does a new certificate that ends soon.
        let mut dates = Dates::default();
        for (until, count) in [(20, 1), (20, 0), (5, 1), (5, 0), (6, 1)] {
            let lines = logged(|| dates.note(&[certificate(-1, until)], NOW, &conditions));
            let text = format!("days_left={until} ");
            let found = lines.iter().filter(|line| line.contains(&text)).count();
            assert_eq!(found, count, "{until} days");
        }
        dates.note(&[certificate(-9, -1)], NOW, &conditions);
        assert!(conditions.lasts(Condition::CertificateExpired));
        assert!(!conditions.lasts(Condition::CertificateExpiring));
    }
}
