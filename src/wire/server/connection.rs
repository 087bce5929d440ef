//! One caller's connection: the version of HTTP that the caller speaks.

pub(in crate::wire::server) mod http1;
pub(in crate::wire::server) mod http2;

use std::rc::Rc;

use bytes::Bytes;
use tokio::{
    io::AsyncReadExt as _,
    time::{Instant, sleep},
};

use super::handler::{ConnectionEvent, Handler, LAST_REQUEST};
use crate::{
    base::network::peer::Peer,
    wire::{
        frames::PREFACE,
        server::caller::connection_table::{ConnectionEntry, Stage},
        watched::WatchedStream,
    },
};

/// Serves the requests of a connection, in the version of HTTP that the caller speaks.
pub async fn serve<H: Handler>(
    mut wire: WatchedStream,
    peer: Peer,
    handler: Rc<H>,
    entry: &Rc<ConnectionEntry>,
) {
    handler.note(ConnectionEvent::Opened);
    let _open = Open(Rc::clone(&handler));
    let since = Instant::now();
    let speaks_http2 = match (handler.limits().streams, wire.alpn_http2()) {
        (None, _) => false,
        (Some(_), Some(agreed)) => agreed,
        (Some(_), None) => match begins_with_preface(&mut wire, &*handler, entry).await {
            Some(begins) => begins,
            None => return,
        },
    };
    // Boxed: the future of HTTP/1.1, the usual one, stays small.
    if speaks_http2 {
        Box::pin(http2::serve(wire, peer, handler, entry)).await;
    } else {
        http1::serve(wire, peer, since, handler, entry).await;
    }
}

/// Whether a connection without TLS begins with HTTP/2's preface (RFC 9113 §3.3); `None` if nothing comes.
async fn begins_with_preface<H: Handler>(
    wire: &mut WatchedStream,
    handler: &H,
    entry: &ConnectionEntry,
) -> Option<bool> {
    let mut first = [0; PREFACE.len()];
    let mut length = 0;
    let read = async {
        while PREFACE.starts_with(&first[..length]) && length < PREFACE.len() {
            if length > 0 {
                entry.enter(Stage::Arriving, Instant::now());
            }
            let read = wire.read(&mut first[length..]).await.ok();
            length += read.filter(|&read| read > 0)?;
        }
        Some(())
    };
    let draining = async {
        handler.draining().await;
        sleep(LAST_REQUEST).await;
    };
    tokio::select! {
        biased;
        read = read => read?,
        () = draining => return None,
        () = sleep(handler.limits().head_timeout) => return None,
    }
    wire.unread(Bytes::copy_from_slice(&first[..length]));
    Some(first == *PREFACE)
}

/// Informs the handler of the end of a connection.
struct Open<H: Handler>(Rc<H>);

impl<H: Handler> Drop for Open<H> {
    fn drop(&mut self) {
        self.0.note(ConnectionEvent::Closed);
    }
}
