//! A chunked body is the model's, however it arrives; what is passed on as chunks is read as the same.

#![no_main]

use countersign::http1::{
    body::{Body, BodyError},
    framing::Framing,
    write,
};
use countersign_fuzz::http as model;
use libfuzzer_sys::fuzz_target;

/// Extensions and trailers beyond this are refused, which the model does not know.
const SHORT: usize = 16 * 1024;

/// What came of a body: its data, how many bytes it took, and whether it ended or was wrong.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    data: Vec<u8>,
    consumed: usize,
    end: Result<bool, BodyError>,
}

fuzz_target!(|input: &[u8]| {
    let Some((cuts, input)) = input.split_at_checked(2) else {
        return;
    };
    if input.len() > SHORT {
        return;
    }
    let whole = read([input].into_iter());
    let in_pieces = read(model::pieces(input, cuts).into_iter());
    assert_eq!((&whole.data, whole.end), (&in_pieces.data, in_pieces.end));

    match model::chunked(input) {
        model::Found::Wrong => assert!(whole.end.is_err()),
        model::Found::Incomplete => assert_eq!(whole.end, Ok(false)),
        model::Found::Whole((data, length)) => {
            assert_eq!((&whole.data, whole.consumed, whole.end), (&data, length, Ok(true)));
            assert_eq!(in_pieces.consumed, length);
            let mut written = Vec::new();
            for piece in model::pieces(&data, cuts) {
                write::chunk(&mut written, piece);
            }
            written.extend_from_slice(write::LAST_CHUNK);
            assert_eq!(model::chunked(&written), model::Found::Whole((data, written.len())));
        }
    }
});

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut body = Body::new(Framing::Chunked);
    let mut outcome = Outcome {
        data: Vec::new(),
        consumed: 0,
        end: Ok(false),
    };
    let mut unread: Vec<u8> = Vec::new();
    for arrived in pieces {
        unread.extend_from_slice(arrived);
        loop {
            let piece = match body.next(&unread) {
                Ok(piece) => piece,
                Err(error) => {
                    outcome.end = Err(error);
                    return outcome;
                }
            };
            assert!(piece.data.end <= piece.consumed && piece.consumed <= unread.len());
            outcome.data.extend_from_slice(&unread[piece.data]);
            outcome.consumed += piece.consumed;
            unread.drain(..piece.consumed);
            if piece.consumed == 0 {
                break;
            }
        }
        if body.is_done() {
            break;
        }
        assert!(unread.is_empty(), "all that has arrived of an unfinished body is taken");
    }
    outcome.end = Ok(body.is_done());
    assert_eq!(body.end_of_stream().is_ok(), outcome.end == Ok(true), "a cut body never looks whole");
    outcome
}
