//! An API that speaks HTTP/2; the path of a request selects its behaviour.

use std::{
    collections::HashSet,
    future::poll_fn,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use h2::{Reason, RecvStream, server::SendResponse};
use http::{HeaderMap, HeaderValue, Request, Response, request::Parts};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::support::{proxy::Builder, until};

/// The most requests at once on one connection.
pub(crate) const STREAMS: u32 = 50;

#[derive(Default)]
struct Record {
    heads: Mutex<Vec<Parts>>,
    /// The result of each body, in the order of the ends.
    bodies: Mutex<Vec<Result<Vec<u8>, ()>>>,
    asked: Mutex<HashSet<String>>,
    connections: AtomicUsize,
    open: AtomicUsize,
    resets: AtomicUsize,
}

/// A running API.
pub(crate) struct Api {
    url: String,
    record: Arc<Record>,
}

impl Api {
    pub(crate) fn start() -> Self {
        Self::run("http://127.0.0.1", None)
    }

    pub(crate) fn over_tls(config: Arc<ServerConfig>) -> Self {
        Self::run("https://localhost", Some(config))
    }

    fn run(origin: &str, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let record = Arc::new(Record::default());
        let shared = Arc::clone(&record);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (shared, tls) = (Arc::clone(&shared), tls.clone());
                    tokio::spawn(async move {
                        match tls {
                            None => serve(stream, shared).await,
                            Some(config) => {
                                if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                                    serve(stream, shared).await;
                                }
                            }
                        }
                    });
                }
            });
        });
        Self {
            url: format!("{origin}:{}", address.port()),
            record,
        }
    }

    /// A proxy with one worker in front of it.
    pub(crate) fn behind(&self) -> Builder {
        Builder::in_front_of_url(&self.url).config("upstream.http2 = true\nlisten.workers = 1")
    }

    /// The heads of all requests so far.
    pub(crate) fn heads(&self) -> Vec<Parts> {
        self.record.heads.lock().unwrap().clone()
    }

    /// The number of requests for a path.
    pub(crate) fn count(&self, path: &str) -> usize {
        let heads = self.record.heads.lock().unwrap();
        heads.iter().filter(|head| head.uri.path() == path).count()
    }

    /// The bodies that ended so far; those that broke off are errors.
    pub(crate) fn bodies(&self) -> Vec<Result<Vec<u8>, ()>> {
        self.record.bodies.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.record.connections.load(Ordering::SeqCst)
    }

    /// Waits until this many requests in all have been reset.
    pub(crate) fn resets_become(&self, count: usize) {
        let resets = &self.record.resets;
        until("the stream is reset", || {
            resets.load(Ordering::SeqCst) == count
        });
    }

    /// Waits until this many connections are open.
    pub(crate) fn open_becomes(&self, count: usize) {
        let open = &self.record.open;
        until("connections are closed", || {
            open.load(Ordering::SeqCst) == count
        });
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, record: Arc<Record>) {
    record.connections.fetch_add(1, Ordering::SeqCst);
    record.open.fetch_add(1, Ordering::SeqCst);
    // Requests may come before the SETTINGS that say how many are taken.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(STREAMS);
    if let Ok(mut connection) = builder.handshake(stream).await {
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let (head, body) = request.into_parts();
            record.heads.lock().unwrap().push(head.clone());
            let path = head.uri.path().to_owned();
            let first = record.asked.lock().unwrap().insert(path.clone());
            match path.as_str() {
                "/hang-up" if first => break,
                "/freeze" if first => std::future::pending().await,
                "/refused" if first => respond.send_reset(Reason::REFUSED_STREAM),
                "/goaway" => {
                    tokio::spawn(answer(
                        Request::from_parts(head, body),
                        respond,
                        record.clone(),
                    ));
                    connection.graceful_shutdown();
                }
                _ => {
                    tokio::spawn(answer(
                        Request::from_parts(head, body),
                        respond,
                        record.clone(),
                    ));
                }
            }
        }
    }
    record.open.fetch_sub(1, Ordering::SeqCst);
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    record: Arc<Record>,
) {
    let (head, mut body) = request.into_parts();
    let ok = || Response::new(());
    match head.uri.path() {
        "/silent" => {
            let _ = poll_fn(|context| respond.poll_reset(context)).await;
            record.resets.fetch_add(1, Ordering::SeqCst);
        }
        "/internal-error" => respond.send_reset(Reason::INTERNAL_ERROR),
        "/half" | "/cut" => {
            let mut send = respond.send_response(ok(), false).unwrap();
            send.send_data(Bytes::from_static(b"half"), false).unwrap();
            if head.uri.path() == "/cut" {
                tokio::time::sleep(Duration::from_millis(300)).await;
                send.send_reset(Reason::INTERNAL_ERROR);
            } else {
                let _ = poll_fn(|context| send.poll_reset(context)).await;
                record.resets.fetch_add(1, Ordering::SeqCst);
            }
        }
        "/grpc" => {
            let mut send = respond.send_response(ok(), false).unwrap();
            while let Some(Ok(message)) = body.data().await {
                body.flow_control().release_capacity(message.len()).unwrap();
                send.send_data(message, false).unwrap();
            }
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            send.send_trailers(trailers).unwrap();
        }
        "/grpc-error" => {
            let mut response = ok();
            let fields = response.headers_mut();
            fields.insert("grpc-status", HeaderValue::from_static("5"));
            drop(respond.send_response(response, true));
        }
        // Answers before the body has come, and reads none of it.
        "/early" => {
            let mut send = respond.send_response(ok(), false).unwrap();
            send.send_data(Bytes::from_static(b"early"), true).unwrap();
        }
        path => {
            if path == "/slow" {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            let mut whole = Vec::new();
            while let Some(data) = body.data().await {
                let Ok(data) = data else {
                    record.bodies.lock().unwrap().push(Err(()));
                    return;
                };
                body.flow_control().release_capacity(data.len()).unwrap();
                whole.extend_from_slice(&data);
            }
            record.bodies.lock().unwrap().push(Ok(whole.clone()));
            let mut response = ok();
            let length = HeaderValue::from(whole.len());
            response.headers_mut().insert("content-length", length);
            let Ok(mut send) = respond.send_response(response, whole.is_empty()) else {
                return;
            };
            if !whole.is_empty() {
                drop(send.send_data(whole.into(), true));
            }
        }
    }
}
