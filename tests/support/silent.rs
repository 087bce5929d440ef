//! An address that takes no connection and rejects none, as a machine that is gone.

use std::{
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use socket2::{Domain, Socket, Type};

/// A listener whose queue is full: the system drops further attempts to connect.
pub struct Silent {
    _listener: Socket,
    _queued: Vec<TcpStream>,
}

impl Silent {
    pub fn at(address: SocketAddr) -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&address.into()).unwrap();
        listener.listen(0).unwrap();
        let mut queued = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
            queued.push(stream);
        }
        Self {
            _listener: listener,
            _queued: queued,
        }
    }
}
