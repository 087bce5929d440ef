//! Another service that many callers need at once: few requests to it run at a time, and each one goes on to its end when
//! its caller gives up. So callers who make things up can neither occupy the service nor delay what is in use.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, request};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use zeroize::Zeroizing;

use super::{OutboundError, RemoteService};

/// The most requests at once for what was not known before, and for what was: a small pool of processes serves them.
pub const MAX_REQUESTS: usize = 8;

/// A service, and its limits.
#[derive(Debug)]
pub struct SharedService {
    service: RemoteService,
    path: String,
    timeout: Duration,
    /// For what was not known before, and for what was.
    permits: [Arc<Semaphore>; 2],
}

impl SharedService {
    /// Asks `service` at this path. A request may take this time, all in all.
    pub fn new(service: RemoteService, path: String, timeout: Duration) -> Self {
        Self {
            service,
            path,
            timeout,
            permits: [(); 2].map(|()| Arc::new(Semaphore::new(MAX_REQUESTS))),
        }
    }

    /// Begins a request for [`Self::ask`].
    pub fn request(&self, method: Method) -> request::Builder {
        self.service.request(method, &self.path)
    }

    /// The status of the response, and the body of a 200. `is_refresh`: it is asked for something that was known: no
    /// unauthenticated caller has made it up.
    ///
    /// # Errors
    /// [`OutboundError`]
    ///
    /// # Cancel safety
    /// The request goes on to its end.
    pub async fn ask(
        self: &Arc<Self>,
        request: http::Result<Request<Bytes>>,
        is_refresh: bool,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), OutboundError> {
        let invalid = |_| OutboundError::Unreachable(io::ErrorKind::InvalidInput.into());
        let request = request.map_err(invalid)?;
        let deadline = Instant::now() + self.timeout;
        let permits = Arc::clone(&self.permits[usize::from(is_refresh)]);
        let permit = timeout_at(deadline, permits.acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(OutboundError::Busy);
        };
        let shared = Arc::clone(self);
        // The service works on a request even if its caller no longer waits.
        let sent = tokio::spawn(async move {
            let _permit = permit;
            let (status, body) = shared.service.ask(request, deadline).await?;
            Ok((status, Zeroizing::new(body)))
        });
        sent.await.unwrap_or(Err(OutboundError::TooSlow))
    }
}
