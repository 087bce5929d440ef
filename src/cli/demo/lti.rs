//! `demo --lti`: a page of a course that opens an activity in a frame, and the tool that it launches (LTI 1.1), with
//! countersign in front.

use std::net::TcpListener;

use askama::Template;
use http::{Method, Request};
use serde_json::json;
use url::form_urlencoded;

use super::{
    BoxedError,
    echo::{DemoPages, echo},
    local_listener, serve,
};
use crate::{
    base::{
        clock::{Clock, UnixTime},
        secret::random,
    },
    cli::{arguments::request::RequestArgs, context::actor},
    oauth::{Parameters, SignatureMethod, SigningKey, sign},
    operator::manage::{Management, view},
    provider::{
        respond::OwnResponse,
        theme::{Theme, frame::Frame},
    },
    records::values::record::Consumer,
    wire::server::request::RequestBody,
};

/// The platform, before it serves.
pub(super) struct Platform {
    listener: TcpListener,
    /// Its origin.
    pub(super) url: String,
}

/// The page of the course.
struct Course {
    /// The proxy, such as `http://127.0.0.1:8080`.
    proxy: String,
    /// The origin of the platform that has this page.
    platform: String,
    /// The school, with the key and the secret of its tool.
    school: Consumer,
}

/// A launch that the page offers.
struct Opening {
    title: &'static str,
    text: &'static str,
    has_right_secret: bool,
    seconds_ago: u64,
    returns: bool,
}

const OPENINGS: [Opening; 4] = [
    Opening {
        title: "Open the activity",
        text: "A right launch. Press it twice: the second one is the same launch, as a double click sends it.",
        has_right_secret: true,
        seconds_ago: 0,
        returns: false,
    },
    Opening {
        title: "Open it with a way back",
        text: "The same with launch_presentation_return_url: the second one comes back here with a message.",
        has_right_secret: true,
        seconds_ago: 0,
        returns: true,
    },
    Opening {
        title: "Open it with a wrong secret",
        text: "The page says what to do, and For the administrator says what is wrong.",
        has_right_secret: false,
        seconds_ago: 0,
        returns: true,
    },
    Opening {
        title: "Open it two hours late",
        text: "A launch whose timestamp is too old.",
        has_right_secret: true,
        seconds_ago: 7_200,
        returns: false,
    },
];

impl Platform {
    /// A platform on a free port.
    pub(super) fn new() -> Result<Self, BoxedError> {
        let (listener, address) = local_listener()?;
        let url = format!("http://{address}");
        Ok(Self { listener, url })
    }

    /// The operation of the tool.
    pub(super) fn operation(&self) -> String {
        format!(
            r#"
[[operation]]
path = "/launch"
methods = ["POST"]
access = ["application"]
timestamp_window = "90m"
launch = true
framed_by = "{}"
"#,
            self.url
        )
    }

    /// Registers the school, and serves the platform, and the tool at `api` after the proxy.
    pub(super) async fn serve(
        self,
        proxy: String,
        api: TcpListener,
        manage: &Management,
    ) -> Result<(), BoxedError> {
        let Self { listener, url } = self;
        let members = view::members(&json!({ "name": "Demo school", "key": "demo-school" }));
        let operator = manage.operator(actor());
        let school = operator.register_consumer(members, None).await?;
        let platform = url.clone();
        let course = Course {
            proxy,
            platform,
            school,
        };
        let course = async move |request: Request<RequestBody>| {
            let response = course.answer(&request, Clock::system().now());
            response.unwrap_or_else(|problem| {
                let text = problem.to_string();
                tool_page(frame(), 500, "The page cannot be made", &text, Vec::new())
            })
        };
        serve(listener, DemoPages(course));
        serve(
            api,
            DemoPages(async move |request| tool(&url, request).await),
        );
        Ok(())
    }
}

fn frame() -> Frame<'static> {
    Frame::in_english(Theme::plain())
}

#[derive(Template)]
#[template(path = "demo-course.html")]
struct CoursePage<'a> {
    frame: Frame<'a>,
    /// The address of the tool.
    action: &'a str,
    launches: Vec<(&'static Opening, Vec<(String, String)>)>,
}

/// A title, a sentence, and names with values.
#[derive(Template)]
#[template(path = "demo-tool.html")]
struct ToolPage<'a> {
    frame: Frame<'a>,
    title: &'a str,
    text: &'a str,
    rows: Vec<(String, String)>,
}

impl Course {
    /// Responds to a visitor of the platform.
    fn answer(
        &self,
        request: &Request<RequestBody>,
        now: UnixTime,
    ) -> Result<OwnResponse, BoxedError> {
        let frame = frame();
        Ok(match request.uri().path() {
            "/" => {
                let action = format!("{}/launch", self.proxy);
                let launches = OPENINGS.iter().map(|opening| {
                    let fields = self.launch(&action, opening, now)?;
                    Ok((opening, fields))
                });
                let page = CoursePage {
                    frame,
                    action: &action,
                    launches: launches.collect::<Result<_, BoxedError>>()?,
                };
                // The forms go to the tool, in a frame, and may come back.
                let further = format!(" {0}; frame-src 'self' {0}", self.proxy);
                OwnResponse::page(frame, 200, &page, &further)
            }
            "/return" => {
                let query = request.uri().query().unwrap_or_default();
                let frame = frame.framed_by(Some("'self'"));
                let text =
                    "The launch was rejected under a right signature, so the platform was told:";
                let told = form_urlencoded::parse(query.as_bytes()).into_owned();
                tool_page(frame, 200, "Back at the platform", text, told.collect())
            }
            _ => tool_page(frame, 404, "There is no such page", "", Vec::new()),
        })
    }

    /// The fields of a launch, signed as a platform signs it.
    fn launch(
        &self,
        url: &str,
        opening: &Opening,
        now: UnixTime,
    ) -> Result<Vec<(String, String)>, BoxedError> {
        let back = format!("{}/return", self.platform);
        let timestamp = (now.0 - opening.seconds_ago).to_string();
        let nonce = random::identifier()?;
        let mut fields = vec![
            ("lti_message_type", "basic-lti-launch-request"),
            ("lti_version", "LTI-1p0"),
            ("resource_link_id", "cells"),
            ("context_id", "biology-101"),
            ("context_title", "Biology 101"),
            ("user_id", "42"),
            ("lis_person_name_full", "Ada Lovelace"),
            ("roles", "Learner"),
        ];
        if opening.returns {
            fields.push(("launch_presentation_return_url", &back));
        }
        let method = SignatureMethod::HmacSha1;
        fields.extend([
            ("oauth_callback", "about:blank"),
            ("oauth_consumer_key", self.school.key.as_str()),
            ("oauth_nonce", &nonce),
            ("oauth_signature_method", method.as_str()),
            ("oauth_timestamp", &timestamp),
            ("oauth_version", "1.0"),
        ]);
        let mut form = form_urlencoded::Serializer::new(String::new());
        let request = RequestArgs {
            method: Method::POST.to_string(),
            url: url.to_owned(),
            data: Some(form.extend_pairs(&fields).finish()),
            ..RequestArgs::default()
        };
        let request = request.request().map_err(|error| error.to_string())?;
        let mut parameters = Parameters::new();
        request.read_into(&mut parameters)?;
        let wrong = "a wrong secret".into();
        let secret = match opening.has_right_secret {
            true => &self.school.secret,
            false => &wrong,
        };
        let key = SigningKey::new(secret, &"".into());
        let signature = sign(method, &key, &request.base_string(&parameters));
        let signature = signature.ok_or("no signature")?;
        let fields = fields.into_iter().chain([("oauth_signature", &*signature)]);
        Ok(fields
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect())
    }
}

/// The tool: a page with what it got of a launch, which pages of `platform` may frame. Another request is returned as JSON.
async fn tool(platform: &str, request: Request<RequestBody>) -> OwnResponse {
    if request.method() != Method::POST || request.uri().path() != "/launch" {
        return echo(request).await;
    }
    let frame = frame().framed_by(Some(platform));
    let Ok(form) = request.body().hold().await else {
        return tool_page(frame, 400, "The launch did not arrive", "", Vec::new());
    };
    let identity = request.headers().iter().filter_map(|(name, value)| {
        let value = name.as_str().starts_with("x-auth-").then(|| value.to_str());
        Some((name.to_string(), value?.ok()?.to_owned()))
    });
    let rows = identity.chain(form_urlencoded::parse(form).into_owned());
    let text = "This is the tool. It had no signature to check: it got these headers from countersign, and the form of the launch \
                without its credentials.";
    let rows = rows.filter(|(_, value)| !value.is_empty()).collect();
    tool_page(frame, 200, "Hello Ada Lovelace", text, rows)
}

fn tool_page(
    frame: Frame<'_>,
    status: u16,
    title: &str,
    text: &str,
    rows: Vec<(String, String)>,
) -> OwnResponse {
    let page = ToolPage {
        frame,
        title,
        text,
        rows,
    };
    OwnResponse::page(frame, status, &page, "")
}
