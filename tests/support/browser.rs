//! A real Chromium, driven through chromedriver by the WebDriver protocol.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Call, PATIENCE, http::Connection, proxy::User, within};

/// Keys as WebDriver spells them.
pub const TAB: char = '\u{e004}';
pub const ENTER: char = '\u{e007}';
pub const SPACE: char = ' ';

const CHROMEDRIVER: &str = "/usr/bin/chromedriver";
const CHROMIUM: &str = "/usr/bin/chromium";

/// A browser with a fresh profile. Dropping it ends it.
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    _profile: TempDir,
}

/// A driver and its port; `None` if it has ended because another process got its port.
fn driver() -> Option<(Child, u16)> {
    let mut driver = Command::new(CHROMEDRIVER)
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{CHROMEDRIVER}: {error}; tests/run installs it"));
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = loop {
        let Some(line) = lines.next() else {
            let _ = driver.wait();
            return None;
        };
        if let Some(port) = line.unwrap().split("successfully on port ").nth(1) {
            break port.trim_end_matches('.').parse().unwrap();
        }
    };
    // The pipe is read to its end, or the driver would stop at a full one.
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, port))
}

impl Browser {
    pub fn start() -> Self {
        Self::launch(json!({}))
    }

    /// A browser that runs no script of any page.
    pub fn without_javascript() -> Self {
        Self::launch(json!({ "profile.managed_default_content_settings.javascript": 2 }))
    }

    /// A browser that prefers pages in this language.
    pub fn in_language(tag: &str) -> Self {
        Self::launch(json!({ "intl.accept_languages": tag }))
    }

    fn launch(preferences: Value) -> Self {
        let (driver, port) = (0..10)
            .find_map(|_| driver())
            .expect("chromedriver names its port");
        let profile = TempDir::new().unwrap();
        let arguments = format!(
            "--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run \
             --disable-background-networking --disable-component-update --disable-sync --user-data-dir={}",
            profile.path().display()
        );
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut browser = Self {
            driver,
            address: ([127, 0, 0, 1], port).into(),
            session: String::new(),
            _profile: profile,
        };
        let options = json!({ "binary": CHROMIUM, "args": arguments, "prefs": preferences });
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let started = browser.ask("POST", "/session", &wanted);
        browser.session = started["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    /// Opens an address.
    pub fn open(&self, url: &str) {
        self.command("POST", "/url", &json!({ "url": url }));
    }

    /// The address shown.
    pub fn url(&self) -> String {
        self.get("/url")
    }

    /// The document shown.
    pub fn source(&self) -> String {
        self.get("/source")
    }

    /// Types into the element that the CSS selector finds.
    pub fn fill(&self, selector: &str, text: &str) {
        let element = self.find(selector);
        let path = format!("/element/{element}/value");
        self.command("POST", &path, &json!({ "text": text }));
    }

    pub fn click(&self, selector: &str) {
        let element = self.find(selector);
        self.command("POST", &format!("/element/{element}/click"), &json!({}));
    }

    /// The text that a user sees there.
    pub fn text(&self, selector: &str) -> String {
        self.get(&format!("/element/{}/text", self.find(selector)))
    }

    /// The document inside a frame.
    pub fn frame_source(&self, selector: &str) -> String {
        let element = self.find(selector);
        // The key is the one that WebDriver's specification gives to elements.
        let frame = json!({ "id": { "element-6066-11e4-a52e-4f735466cecf": element } });
        self.command("POST", "/frame", &frame);
        let source = self.source();
        self.command("POST", "/frame", &json!({ "id": null }));
        source
    }

    /// Runs a function body in the page, which may return a promise, and returns its value.
    pub fn script(&self, body: &str) -> Value {
        let script = json!({ "script": body, "args": [] });
        self.command("POST", "/execute/sync", &script)
    }

    /// Makes the window this wide, and sets the preference for dark or light pages.
    pub fn emulate(&self, width: u32, dark: bool) {
        self.emulate_window(width, 800, dark);
    }

    /// Makes the window this wide and high, and sets the preference for dark or light pages.
    pub fn emulate_window(&self, width: u32, height: u32, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        let media = json!({ "features": [feature] });
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        for (name, params) in [
            ("Emulation.setEmulatedMedia", media),
            ("Emulation.setDeviceMetricsOverride", metrics),
        ] {
            let command = json!({ "cmd": name, "params": params });
            self.command("POST", "/goog/cdp/execute", &command);
        }
    }

    /// Shows pages without scroll bars.
    pub fn hide_scrollbars(&self) {
        let params = json!({ "hidden": true });
        let command = json!({ "cmd": "Emulation.setScrollbarsHidden", "params": params });
        self.command("POST", "/goog/cdp/execute", &command);
    }

    /// Shows the page on this medium, with this feature.
    pub fn media(&self, media: &str, feature: &str, value: &str) {
        let features = [json!({ "name": feature, "value": value })];
        let params = json!({ "media": media, "features": features });
        let command = json!({ "cmd": "Emulation.setEmulatedMedia", "params": params });
        self.command("POST", "/goog/cdp/execute", &command);
    }

    /// Delays every request by this time, as a slow line does.
    pub fn slow(&self, milliseconds: u32) {
        let params = json!({
            "offline": false, "latency": milliseconds, "downloadThroughput": -1, "uploadThroughput": -1,
        });
        let command = json!({ "cmd": "Network.emulateNetworkConditions", "params": params });
        self.command("POST", "/goog/cdp/execute", &command);
    }

    /// The window as PNG.
    pub fn screenshot(&self) -> Vec<u8> {
        STANDARD.decode(self.get("/screenshot")).unwrap()
    }

    /// Types on the keyboard, wherever the focus is; [`TAB`] and the like are keys too.
    pub fn keys(&self, keys: &str) {
        let keys = keys.chars().flat_map(|key| {
            ["keyDown", "keyUp"].map(|act| json!({ "type": act, "value": key.to_string() }))
        });
        let keys: Vec<Value> = keys.collect();
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": keys });
        self.command("POST", "/actions", &json!({ "actions": [keyboard] }));
    }

    /// Logs in and decides on the pages that `url` leads to.
    pub fn authorize(&self, url: &str, user: &User, decision: &str) {
        self.open(url);
        self.log_in(user);
        self.click(&format!("button[name=decision][value={decision}]"));
    }

    /// Fills in the login form shown.
    pub fn log_in(&self, user: &User) {
        self.fill("input[name=username]", &user.name);
        self.fill("input[name=password]", &user.password);
        self.click("form:has(input[name=password]) button, form:has(input[name=password]) input[type=submit]");
    }

    fn find(&self, selector: &str) -> String {
        let wanted = json!({ "using": "css selector", "value": selector });
        // The page may still be on its way.
        within(PATIENCE, &format!("`{selector}` is on the page"), || {
            let path = format!("/session/{}/element", self.session);
            let answer = self.ask("POST", &path, &wanted);
            let found = answer.as_object()?.values().next()?.as_str()?;
            answer.get("error").is_none().then(|| found.to_owned())
        })
    }

    fn get(&self, path: &str) -> String {
        let value = self.command("GET", path, &Value::Null);
        value.as_str().unwrap().to_owned()
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let value = self.ask(method, &format!("/session/{}{path}", self.session), body);
        assert!(
            value.get("error").is_none(),
            "{method} {path}: {value}\n{body}"
        );
        value
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let call = Call::new(method, path).header("Connection", "close");
        let call = match method {
            "GET" => call,
            _ => call.json(&body.to_string()),
        };
        let mut connection = Connection::to(self.address);
        connection.send(&call.wire("", &self.address.to_string()));
        connection.answer(method).json()["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // When asked to end, the driver ends the browser too; when killed, it would leave it running. A test may be
        // failing right now, so nothing here may panic.
        if let Ok(mut stream) = TcpStream::connect(self.address) {
            let session = &self.session;
            let request = format!(
                "DELETE /session/{session} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            drop(stream.set_read_timeout(Some(PATIENCE)));
            drop(stream.write_all(request.as_bytes()));
            // The answer comes when it is done; the driver keeps the connection open after it.
            drop(stream.read(&mut [0; 1024]));
        }
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}
