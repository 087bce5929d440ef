//! An operator at the console: keeps the session's cookie, sends forms as a browser does.

use super::{
    call::{Call, form},
    http::{Answer, Connection},
    proxy::{Builder, Proxy},
    visitor::{Form, Page},
};

/// The tokens that [`Builder::with_console`] writes.
pub const WRITE: &str = "the-token-that-writes-0123456789";
pub const READ: &str = "the-token-that-reads-01234567890";

impl Builder {
    /// Turns admin API and console on.
    pub fn with_console(self) -> Self {
        for (name, token) in [("admin.token", WRITE), ("read.token", READ)] {
            std::fs::write(self.directory().join(name), token).unwrap();
        }
        self.config("admin.token_file = 'admin.token'\nadmin.read_token_file = 'read.token'")
    }
}

/// An operator's browser.
pub struct Operator<'a> {
    proxy: &'a Proxy,
    /// `name=value`
    pub cookie: Option<String>,
}

impl<'a> Operator<'a> {
    /// A browser without a session.
    pub fn at(proxy: &'a Proxy) -> Self {
        Self {
            proxy,
            cookie: None,
        }
    }

    /// A browser with a session.
    #[track_caller]
    pub fn with(proxy: &'a Proxy, token: &str) -> Self {
        let mut operator = Self::at(proxy);
        let answer = operator.log_in(token);
        answer.has_status(303);
        operator
    }

    /// Sends the login form.
    #[track_caller]
    pub fn log_in(&mut self, token: &str) -> Answer {
        let page = self.open("/login");
        let login = page.form_with("token").set("token", token);
        let answer = self.send(self.call_of(&page, &login));
        if let Some(cookie) = answer.header("set-cookie") {
            self.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        }
        answer
    }

    /// Sends a call with the cookie.
    #[track_caller]
    pub fn send(&self, call: Call) -> Answer {
        let call = match &self.cookie {
            Some(cookie) => call.header("Cookie", cookie),
            None => call,
        };
        let (admin, method) = (self.proxy.admin(), call.method.clone());
        let mut connection = Connection::to(admin);
        connection.send(&call.wire("", &admin.to_string()));
        connection.answer(&method)
    }

    /// Opens a page.
    #[track_caller]
    pub fn open(&self, target: &str) -> Page {
        let target = target.to_owned();
        let answer = self.send(Call::get(&target));
        Page { target, answer }
    }

    /// The text of a page that is there.
    #[track_caller]
    pub fn text(&self, target: &str) -> String {
        self.open(target).answer.has_status(200).text()
    }

    /// The POST that a browser makes from a form.
    pub fn call_of(&self, page: &Page, filled: &Form) -> Call {
        let action = match filled.action.as_str() {
            "" => page.target.as_str(),
            action => action,
        };
        Call::post(action)
            .header("Origin", &format!("http://{}", self.proxy.admin()))
            .header("Sec-Fetch-Site", "same-origin")
            .form(&form(&filled.fields))
    }

    /// Sends a form and follows where it leads.
    #[track_caller]
    pub fn submit(&self, page: &Page, filled: &Form) -> Page {
        let answer = self.send(self.call_of(page, filled));
        match answer.header("location") {
            Some(next) => self.open(next),
            None => Page {
                target: filled.action.clone(),
                answer,
            },
        }
    }

    /// Confirms the change that this page asks about.
    #[track_caller]
    pub fn confirm(&self, page: &Page) -> Page {
        self.submit(page, &page.form_with("confirmed"))
    }
}
