//! Another service that many callers need at once: few requests to it run at a time, and each one goes on to its end when
//! its caller gives up. So callers who make things up can neither occupy the service nor delay what is in use.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
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

/// A request to it. Its response is asked for as JSON.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method.
    pub method: Method,
    /// The type of the body, if there is one.
    pub content_type: Option<&'static str>,
    /// The field that proves who asks.
    pub authorization: Option<HeaderValue>,
    /// The body.
    pub body: Bytes,
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

    /// The status of the response, and the body of a 200. `is_refresh`: it is about something that was known before, so no
    /// unauthenticated caller has made it up.
    ///
    /// # Errors
    /// [`OutboundError`]
    ///
    /// # Cancel safety
    /// The request goes on to its end.
    pub async fn ask(
        self: &Arc<Self>,
        asked: Asked,
        is_refresh: bool,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), OutboundError> {
        let deadline = Instant::now() + self.timeout;
        let permits = Arc::clone(&self.permits[usize::from(is_refresh)]);
        let permit = timeout_at(deadline, permits.acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(OutboundError::Busy);
        };
        let service = Arc::clone(self);
        // The service works on a request even if its caller no longer waits.
        let sent = tokio::spawn(async move {
            let _permit = permit;
            service.send(asked, deadline).await
        });
        sent.await.unwrap_or(Err(OutboundError::TooSlow))
    }

    async fn send(
        &self,
        asked: Asked,
        deadline: Instant,
    ) -> Result<(StatusCode, Zeroizing<Vec<u8>>), OutboundError> {
        let invalid = |_| OutboundError::Unreachable(io::ErrorKind::InvalidInput.into());
        let content_type = asked.content_type.map(HeaderValue::from_static);
        let fields = [
            (header::CONTENT_TYPE, content_type),
            (header::AUTHORIZATION, asked.authorization),
        ];
        let mut request = Request::builder()
            .method(asked.method)
            .uri(&self.path)
            .header(header::HOST, self.service.host())
            .header(header::USER_AGENT, "countersign")
            .header(header::ACCEPT, "application/json")
            .header(header::CONNECTION, "close");
        for (name, value) in fields {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let request = request.body(asked.body).map_err(invalid)?;
        let (status, body) = self.service.ask(request, deadline).await?;
        Ok((status, Zeroizing::new(body)))
    }
}
