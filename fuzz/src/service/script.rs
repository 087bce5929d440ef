//! The actions of the caller and the API, read from the bytes of an input.

/// The byte that is followed by an action; every other one is sent as it is.
pub const MARK: u8 = 0xff;

/// The change that is made to a template before it is sent.
#[derive(Debug)]
pub struct Change {
    how: u8,
    at: usize,
    bytes: Vec<u8>,
}

impl Change {
    /// Overwrites, inserts, or removes.
    pub fn apply(&self, text: &mut Vec<u8>) {
        let at = self.at % (text.len() + 1);
        let end = (at + self.bytes.len()).min(text.len());
        match self.how % 3 {
            0 => drop(text.splice(at..end, self.bytes.iter().copied())),
            1 => drop(text.splice(at..at, self.bytes.iter().copied())),
            _ => drop(text.drain(at..end)),
        }
    }
}

#[derive(Debug)]
pub enum Action {
    /// These bytes are written.
    Write(Vec<u8>),
    /// A template is signed and written, in HTTP/1.1 or as frames.
    Template {
        kind: usize,
        http2: bool,
        changes: Vec<Change>,
    },
    /// A request of the session.
    Session,
    /// A template is signed, and a proxy in front describes it in one of three ways to the listener for forward-auth.
    Describe {
        kind: usize,
        way: u8,
        changes: Vec<Change>,
    },
    /// The last template once more, or an earlier one.
    Replay(usize),
    /// This many quarters of a second pass.
    Wait(u8),
    /// The caller ends its half.
    Finish,
    /// The API's action for the request whose turn it is.
    Api(u8),
    /// The API answers with these bytes.
    Answer(Vec<u8>),
    /// The caller stops reading, or goes on.
    Read(bool),
    /// Another connection; the earlier ones stay as they are.
    Connect,
    /// The caller closes the connection.
    Leave,
    /// The process begins to drain.
    Drain,
    /// Unused connections to the API are looked through.
    Tidy,
}

/// At most this many actions are carried out.
const MOST: usize = 96;

/// Reads the actions.
pub fn read(mut input: &[u8]) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut literal = Vec::new();
    let mut changes = Vec::new();
    while !input.is_empty() && actions.len() < MOST {
        let byte = take(&mut input);
        if byte != MARK {
            literal.push(byte);
            continue;
        }
        let code = take(&mut input);
        let action = match code {
            MARK => {
                literal.push(MARK);
                continue;
            }
            0x00..=0x1f | 0x20..=0x3f => Action::Template {
                kind: usize::from(code & 0x1f),
                http2: code >= 0x20,
                changes: std::mem::take(&mut changes),
            },
            0x40 => {
                let (how, at) = (
                    take(&mut input),
                    usize::from(take(&mut input)) << 8 | usize::from(take(&mut input)),
                );
                let bytes = some(&mut input);
                changes.push(Change { how, at, bytes });
                continue;
            }
            0x41 => Action::Replay(0),
            0x42 => Action::Replay(usize::from(take(&mut input))),
            0x43 => Action::Wait(take(&mut input)),
            0x44 => Action::Wait(0),
            0x45 => Action::Finish,
            0x46 => Action::Api(take(&mut input)),
            0x47 => Action::Answer(some(&mut input)),
            0x48 => Action::Read(false),
            0x49 => Action::Read(true),
            0x4a => Action::Connect,
            0x4b => Action::Leave,
            0x4c => Action::Drain,
            0x4d => Action::Tidy,
            0x4e => {
                let byte = take(&mut input);
                let length = usize::from(take(&mut input)) * 64;
                literal.extend(std::iter::repeat_n(byte, length));
                continue;
            }
            0x4f => {
                // The preface and empty SETTINGS.
                literal.extend(super::PREFACE);
                literal.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
                continue;
            }
            0x50 => Action::Session,
            0x51 => Action::Describe {
                kind: usize::from(take(&mut input)),
                way: take(&mut input),
                changes: std::mem::take(&mut changes),
            },
            _ => continue,
        };
        if !literal.is_empty() {
            actions.push(Action::Write(std::mem::take(&mut literal)));
        }
        actions.push(action);
    }
    if !literal.is_empty() {
        actions.push(Action::Write(literal));
    }
    actions
}

fn take(input: &mut &[u8]) -> u8 {
    input.split_off_first().copied().unwrap_or_default()
}

fn some(input: &mut &[u8]) -> Vec<u8> {
    let length = usize::from(take(input)).min(input.len());
    input.split_off(..length).unwrap_or_default().to_vec()
}
