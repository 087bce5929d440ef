//! Bodies much larger than the allowed memory, with a reader that is slower than the writer.
//!
//! Promise (HTTP): A stream of any length needs constant memory, also with a slow reader.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    faults::{load::Target, process::Process},
    support::{
        Call, Connection, PATIENCE, Proxy, Upstream, http::try_open, until, upstream::After, within,
    },
};

const BODY_BYTES: usize = 100 << 20;
const MAY_ADD: usize = 16 << 20;
const PIECE_BYTES: usize = 64 * 1024;

/// The piece of the body at this place: all pieces differ, so none can be lost, doubled or swapped unnoticed.
fn piece(number: usize) -> Vec<u8> {
    let mut piece = vec![0; PIECE_BYTES];
    for (at, word) in piece.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(number * PIECE_BYTES + at).to_le_bytes());
    }
    piece
}

/// Waits until `count` has stopped growing: the writer is blocked.
fn stands_still(count: &AtomicUsize) -> usize {
    let mut seen = (count.load(Ordering::SeqCst), 0);
    within(PATIENCE, "the writer is held back", || {
        let now = count.load(Ordering::SeqCst);
        seen = if now == seen.0 {
            (now, seen.1 + 1)
        } else {
            (now, 0)
        };
        (seen.1 > 30).then_some(now)
    })
}

#[test]
fn response_of_100_mib_takes_at_most_16_mib_for_a_slow_reader() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let api = Upstream::handling(move |exchange| {
        if exchange.seen.target == "/small" {
            exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
            return Ok(After::Keep);
        }
        let chunked = exchange.seen.target == "/chunked";
        if chunked {
            exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        } else {
            exchange.write(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
            ))?;
        }
        count.store(0, Ordering::SeqCst);
        for number in 0..BODY_BYTES / PIECE_BYTES {
            if chunked {
                exchange.write(format!("{PIECE_BYTES:x}\r\n"))?;
            }
            exchange.write(piece(number))?;
            if chunked {
                exchange.write("\r\n")?;
            }
            count.fetch_add(PIECE_BYTES, Ordering::SeqCst);
        }
        if chunked {
            exchange.write("0\r\n\r\n")?;
        }
        Ok(After::Keep)
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    proxy.send(Call::get("/small").of(&caller)).has_status(200);
    let process = Process::of(&proxy);
    for path in ["/length", "/chunked"] {
        let before = process.memory();
        process.forget_peak();
        let (method, wire) = target.wire(Call::get(path));
        let mut connection = proxy.connect();
        connection.send(&wire);
        // The reader reads nothing: the writer must stop far from the end.
        let held_back = stands_still(&written);
        assert!(
            held_back < BODY_BYTES / 2,
            "{path}: {held_back} bytes are under way"
        );
        let answer = connection.answer(&method);
        assert_eq!(answer.body.len(), BODY_BYTES, "{path}");
        let mut pieces = answer.body.chunks_exact(PIECE_BYTES).enumerate();
        assert!(
            pieces.all(|(number, bytes)| bytes == piece(number)),
            "{path}"
        );
        let added = process.peak_memory().saturating_sub(before);
        eprintln!(
            "100 MiB down ({path}): {} KiB more at most, writer held back after {held_back} bytes",
            added / 1024
        );
        assert!(added <= MAY_ADD, "{path}: {added} bytes");
    }
}

#[test]
fn request_of_100_mib_takes_at_most_16_mib_for_a_slow_api() {
    let go = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&go);
    let api = Upstream::handling(move |exchange| {
        if exchange.seen.target != "/small" {
            until("the API begins to read", || gate.load(Ordering::SeqCst));
        }
        exchange.whole_body()?;
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(After::Keep)
    });
    let proxy = Proxy::in_front_of(&api).start();
    let caller = proxy.somebody();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);
    proxy.send(Call::get("/small").of(&caller)).has_status(200);
    let process = Process::of(&proxy);
    for chunked in [false, true] {
        go.store(false, Ordering::SeqCst);
        let before = process.memory();
        process.forget_peak();
        let stream = try_open(target.address).unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let (_, wire) = target.wire(Call::post("/large").bytes(b""));
        let framing = if chunked {
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("Content-Length: {BODY_BYTES}")
        };
        let head = String::from_utf8(wire).unwrap();
        let head = head.replace("Content-Length: 0", &framing);
        let written = Arc::new(AtomicUsize::new(0));
        let (count, mut writer) = (Arc::clone(&written), stream.try_clone().unwrap());
        let writes = std::thread::spawn(move || {
            writer.write_all(head.as_bytes())?;
            for number in 0..BODY_BYTES / PIECE_BYTES {
                if chunked {
                    writer.write_all(format!("{PIECE_BYTES:x}\r\n").as_bytes())?;
                }
                writer.write_all(&piece(number))?;
                if chunked {
                    writer.write_all(b"\r\n")?;
                }
                count.fetch_add(PIECE_BYTES, Ordering::SeqCst);
            }
            if chunked {
                writer.write_all(b"0\r\n\r\n")?;
            }
            std::io::Result::Ok(())
        });
        let held_back = stands_still(&written);
        assert!(
            held_back < BODY_BYTES / 2,
            "{held_back} bytes are under way"
        );
        go.store(true, Ordering::SeqCst);
        writes.join().unwrap().unwrap();
        Connection::over(stream).answer("POST").has_status(200);
        let added = process.peak_memory().saturating_sub(before);
        eprintln!(
            "100 MiB up (chunked: {chunked}): {} KiB more at most, writer held back after {held_back} bytes",
            added / 1024
        );
        assert!(added <= MAY_ADD, "{added} bytes");
        let seen = api.last_request();
        assert_eq!(seen.body.len(), BODY_BYTES);
        let mut pieces = seen.body.chunks_exact(PIECE_BYTES).enumerate();
        assert!(pieces.all(|(number, bytes)| bytes == piece(number)));
    }
}
