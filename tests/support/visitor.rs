//! A browser's part without a browser: keeps cookies, follows redirects on the service's origin, fills in forms.

use std::collections::BTreeMap;

use super::{
    call::{Call, form},
    http::Answer,
    proxy::{Proxy, User},
};

/// Chromium's Accept field when a user opens an address.
pub const ACCEPT_OF_CHROMIUM: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

/// A user's browser on the service.
pub struct Visitor<'a> {
    proxy: &'a Proxy,
    /// The origin that it visits, if it is not the proxy's own.
    origin: Option<String>,
    pub cookies: BTreeMap<String, String>,
    /// The addresses that were typed.
    pub opened: Vec<String>,
}

/// The page on the screen: the last answer, and its address.
#[derive(Debug)]
pub struct Page {
    pub target: String,
    pub answer: Answer,
}

/// A form of a page.
#[derive(Debug, Clone)]
pub struct Form {
    pub action: String,
    pub method: String,
    pub fields: Vec<(String, String)>,
    pub buttons: Vec<(String, String)>,
}

impl<'a> Visitor<'a> {
    pub fn to(proxy: &'a Proxy) -> Self {
        Self {
            proxy,
            origin: None,
            cookies: BTreeMap::new(),
            opened: Vec::new(),
        }
    }

    /// A browser on another origin of the service.
    pub fn at(proxy: &'a Proxy, origin: &str) -> Self {
        Self {
            origin: Some(origin.to_owned()),
            ..Self::to(proxy)
        }
    }

    fn origin(&self) -> String {
        let origin = self.origin.clone();
        origin.unwrap_or_else(|| self.proxy.origin())
    }

    /// A browser in which this user is logged in.
    #[track_caller]
    pub fn logged_in(proxy: &'a Proxy, user: &User) -> Self {
        let mut visitor = Self::to(proxy);
        let page = visitor.open("/service.oauth?mode=login");
        let after = visitor.log_in(&page, user);
        assert_eq!(after.answer.status, 200, "{after:?}");
        assert!(!visitor.cookies.is_empty(), "{after:?}");
        visitor
    }

    /// Sends later calls to another process of the same service.
    pub fn moves_to(&mut self, proxy: &'a Proxy) {
        self.proxy = proxy;
    }

    /// Opens a page as if its address were typed.
    #[track_caller]
    pub fn open(&mut self, target: &str) -> Page {
        self.opened.push(target.to_owned());
        let answer = self.send(Call::get(target).header("Sec-Fetch-Site", "none"));
        self.follow(target, answer)
    }

    /// Sends a call with the cookies kept, and keeps those of the answer; follows nothing.
    #[track_caller]
    pub fn send(&mut self, call: Call) -> Answer {
        let call = if self.cookies.is_empty() {
            call
        } else {
            let cookies: Vec<String> = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            call.header("Cookie", &cookies.join("; "))
        };
        let call = match &self.origin {
            Some(origin) => call.host(origin.split_once("://").expect("an origin").1),
            None => call,
        };
        let answer = self.proxy.served(call.header("Accept", ACCEPT_OF_CHROMIUM));
        for cookie in answer.fields.all("set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie has a name");
            let gone = cookie.to_ascii_lowercase().contains("max-age=0");
            if gone || value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// Sends a form of a page, filled in so, as a browser does.
    #[track_caller]
    pub fn submit(&mut self, page: &Page, filled: &Form) -> Page {
        let action = if filled.action.is_empty() {
            page.target.clone()
        } else {
            self.target_of(&page.target, &filled.action)
        };
        let origin = self.origin();
        let call = Call::new(&filled.method, &action)
            .header("Origin", &origin)
            .header("Sec-Fetch-Site", "same-origin");
        let answer = self.send(call.form(&form(&filled.fields)));
        self.follow(&action, answer)
    }

    /// Fills in the login form of a page.
    #[track_caller]
    pub fn log_in(&mut self, page: &Page, user: &User) -> Page {
        let login = page
            .form_with("password")
            .set("username", &user.name)
            .set("password", &user.password);
        self.submit(page, &login)
    }

    /// Presses `allow` or `deny` on the consent page.
    #[track_caller]
    pub fn decide(&mut self, page: &Page, decision: &str) -> Page {
        let consent = page.form_with("decision").press("decision", decision);
        self.submit(page, &consent)
    }

    fn follow(&mut self, target: &str, answer: Answer) -> Page {
        let (mut target, mut answer) = (target.to_owned(), answer);
        for _ in 0..5 {
            let own = match answer.header("location") {
                Some(location) if (300..400).contains(&answer.status) => {
                    self.own(&target, location)
                }
                _ => None,
            };
            let Some(next) = own else {
                return Page { target, answer };
            };
            target = next;
            answer = self.send(Call::get(&target).header("Sec-Fetch-Site", "same-origin"));
        }
        panic!("the service redirects in circles: {answer:?}");
    }

    /// The target of an address on the service's own origin.
    fn own(&self, base: &str, address: &str) -> Option<String> {
        let origin = self.origin();
        match address.strip_prefix(&origin) {
            Some(rest) if rest.starts_with('/') => Some(rest.to_owned()),
            _ if address.contains("://") || address.starts_with("//") => None,
            // A scheme of an application of its own: `app:/callback`.
            _ if address
                .find(':')
                .is_some_and(|colon| !address[..colon].contains(['/', '?'])) =>
            {
                None
            }
            _ => Some(self.target_of(base, address)),
        }
    }

    fn target_of(&self, base: &str, address: &str) -> String {
        let address = address.strip_prefix(&self.origin()).unwrap_or(address);
        if address.starts_with('/') {
            address.to_owned()
        } else if address.starts_with('?') {
            format!("{}{address}", base.split('?').next().unwrap_or_default())
        } else {
            let path = base.split('?').next().unwrap_or_default();
            format!(
                "{}/{address}",
                path.rsplit_once('/').map_or("", |(directory, _)| directory)
            )
        }
    }
}

impl Page {
    /// The forms of the page.
    pub fn forms(&self) -> Vec<Form> {
        let html = self.answer.text();
        let mut forms = Vec::new();
        for piece in html.split("<form").skip(1) {
            let piece = piece.split("</form").next().unwrap_or_default();
            let tag = attributes(piece);
            let mut form = Form {
                action: tag.get("action").cloned().unwrap_or_default(),
                method: tag
                    .get("method")
                    .map_or("GET".to_owned(), |method| method.to_ascii_uppercase()),
                fields: Vec::new(),
                buttons: Vec::new(),
            };
            for input in piece.split("<input").skip(1) {
                let input = attributes(input);
                let Some(name) = input.get("name") else {
                    continue;
                };
                let value = input.get("value").cloned().unwrap_or_default();
                match input.get("type").map(String::as_str) {
                    Some("submit") => form.buttons.push((name.clone(), value)),
                    Some("checkbox" | "radio") if !input.contains_key("checked") => {}
                    _ => form.fields.push((name.clone(), value)),
                }
            }
            for button in piece.split("<button").skip(1) {
                let button = attributes(button);
                if let Some(name) = button.get("name") {
                    form.buttons.push((
                        name.clone(),
                        button.get("value").cloned().unwrap_or_default(),
                    ));
                }
            }
            forms.push(form);
        }
        forms
    }

    /// The form that has a field or button of this name.
    #[track_caller]
    pub fn form_with(&self, name: &str) -> Form {
        self.form(name, |form| {
            let mut names = form.fields.iter().chain(&form.buttons);
            names.any(|(other, _)| other == name)
        })
    }

    /// The form that is sent to this target.
    #[track_caller]
    pub fn form_to(&self, action: &str) -> Form {
        self.form(action, |form| form.action == action)
    }

    #[track_caller]
    fn form(&self, what: &str, is_meant: impl Fn(&Form) -> bool) -> Form {
        let found = self.forms().into_iter().find(is_meant);
        found.unwrap_or_else(|| {
            panic!(
                "a form with `{what}` on the page {}: {:?}",
                self.target, self.answer
            )
        })
    }

    /// The text of the element with this id.
    pub fn element(&self, id: &str) -> Option<String> {
        let html = self.answer.text();
        let at = html.find(&format!("id=\"{id}\""))?;
        let inner = html[at..].split_once('>')?.1.split('<').next()?;
        Some(unescape(inner).trim().to_owned())
    }

    /// The target of a redirect off the service.
    #[track_caller]
    pub fn redirect(&self) -> String {
        assert_eq!(self.answer.status, 303, "a redirect: {:?}", self.answer);
        self.answer
            .header("location")
            .expect("a redirect has a Location")
            .to_owned()
    }
}

impl Form {
    /// Fills in a field.
    #[track_caller]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        let field = self.fields.iter_mut().find(|(n, _)| n == name);
        value.clone_into(&mut field.unwrap_or_else(|| panic!("a field `{name}`")).1);
        self
    }

    /// Leaves a field out, as a forged form would.
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(n, _)| n != name);
        self
    }

    /// Presses a button.
    #[track_caller]
    pub fn press(mut self, name: &str, value: &str) -> Self {
        let button = (name.to_owned(), value.to_owned());
        assert!(
            self.buttons.contains(&button),
            "a button {name}={value}: {self:?}"
        );
        self.fields.push(button);
        self
    }
}

/// The attributes of the tag that `text` begins in.
fn attributes(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('>') || rest.starts_with("/>") {
            return found;
        }
        let end = rest
            .find(|c: char| c.is_whitespace() || "=>".contains(c))
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end.max(1));
        rest = after;
        let mut value = String::new();
        if let Some(quoted) = rest.strip_prefix("=\"") {
            let (inner, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            value = unescape(inner);
            rest = after;
        } else if let Some(bare) = rest.strip_prefix('=') {
            let end = bare
                .find(|c: char| c.is_whitespace() || c == '>')
                .unwrap_or(bare.len());
            value = unescape(&bare[..end]);
            rest = &bare[end..];
        }
        found.insert(name.to_ascii_lowercase(), value);
    }
}

/// Text with its character references resolved.
pub fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (name, tail) = after.split_once(';').unwrap_or((after, ""));
        let number = name
            .strip_prefix("#x")
            .map(|hex| u32::from_str_radix(hex, 16))
            .or_else(|| name.strip_prefix('#').map(str::parse));
        match (name, number) {
            ("amp", _) => out.push('&'),
            ("lt", _) => out.push('<'),
            ("gt", _) => out.push('>'),
            ("quot", _) => out.push('"'),
            ("apos", _) => out.push('\''),
            ("nbsp", _) => out.push(' '),
            (_, Some(Ok(code))) => out.extend(char::from_u32(code)),
            _ => panic!("a character reference that the harness knows, not &{name};"),
        }
        rest = tail;
    }
    out + rest
}
