//! Real servers and routers as APIs, with the routes of `apis/`. Each response names its route.

use std::{
    net::{SocketAddr, TcpStream},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::support::{Answer, Connection, PATIENCE, free_port, program::Server, within};

pub(crate) struct Api {
    _server: Server,
    pub(crate) address: SocketAddr,
    _directory: TempDir,
}

/// A file of the tests.
fn file(name: &str) -> String {
    format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"))
}

impl Api {
    /// Starts a server with these arguments, in which `PORT` and `DIRECTORY` stand for its own.
    fn start(program: &str, arguments: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let port = free_port();
        let own = |text: &str| {
            let here = directory.path().display().to_string();
            text.replace("PORT", &port.to_string())
                .replace("DIRECTORY", &here)
        };
        let arguments = arguments.iter().map(|argument| own(argument));
        let mut command = Command::new(program);
        command.args(arguments);
        let api = Self {
            _server: Server::start(command.stderr(Stdio::null())),
            address: ([127, 0, 0, 1], port).into(),
            _directory: directory,
        };
        within(PATIENCE, program, || TcpStream::connect(api.address).ok());
        api
    }

    pub(crate) fn flask() -> Self {
        let python = file(".tools/venv/bin/python");
        Self::start(&python, &[&file("attacks/apis/flask.py"), "PORT"])
    }

    pub(crate) fn express() -> Self {
        Self::start(
            "node",
            &[&file("attacks/apis/express.js"), "PORT", &file("")],
        )
    }

    pub(crate) fn php() -> Self {
        let front = file("attacks/apis/front.php");
        Self::start("php", &["-S", "127.0.0.1:PORT", &front])
    }

    pub(crate) fn nginx() -> Self {
        let text = std::fs::read_to_string(file("attacks/apis/nginx.conf")).unwrap();
        Self::start(
            "sh",
            &[
                "-c",
                "printf %s \"$0\" > DIRECTORY/nginx.conf; exec /usr/sbin/nginx -c DIRECTORY/nginx.conf -p DIRECTORY",
                &text,
            ],
        )
    }

    pub(crate) fn tomcat() -> Self {
        let library = "/usr/share/java/tomcat10-embed-core.jar";
        let source = file("attacks/apis/tomcat.java");
        Self::start("java", &["-cp", library, &source, "PORT", "DIRECTORY"])
    }

    pub(crate) fn rails() -> Self {
        Self::start("ruby", &[&file("attacks/apis/rails.rb"), "PORT"])
    }

    /// Its response to a request that comes directly; `None`: it ends the connection.
    pub(crate) fn receives(&self, method: &str, target: &str) -> Option<Answer> {
        let mut connection = Connection::to(self.address);
        let host = self.address;
        let request =
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        connection.send(request.as_bytes());
        connection.try_answer(method).ok()?
    }
}
