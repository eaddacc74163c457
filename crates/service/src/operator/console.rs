//! The console's files, embedded in the binary: a page, its scripts and its stylesheet.
//!
//! The console is a client of the API under `/v1` and has no other access. Its files are public and the same for every
//! caller. They are served as they are in the source tree: there is no build step, and nothing comes from another host.
//!
//! A browser keeps a script or style and asks with its ETag whether it has changed; it does not keep the page. The policy allows scripts and styles of this
//! origin only, and no script that is made from text (Trusted Types): a name with markup in it cannot become code.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::Operator;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types notbefore";

/// A file with its path and media type.
struct File {
    path: &'static str,
    media: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($path:literal => $name:literal, $media:expr;)+) => {
        [$(File { path: $path, media: $media, bytes: include_bytes!(concat!("../../console/", $name)) }),+]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

static FILES: [File; 22] = files! {
    "/" => "index.html", HTML;
    "/console/style.css" => "style.css", CSS;
    "/console/icon.svg" => "icon.svg", SVG;
    "/console/act.js" => "act.js", JS;
    "/console/admin.js" => "admin.js", JS;
    "/console/api.js" => "api.js", JS;
    "/console/app.js" => "app.js", JS;
    "/console/dom.js" => "dom.js", JS;
    "/console/event.js" => "event.js", JS;
    "/console/events.js" => "events.js", JS;
    "/console/feed.js" => "feed.js", JS;
    "/console/fleet.js" => "fleet.js", JS;
    "/console/hosts.js" => "hosts.js", JS;
    "/console/history.js" => "history.js", JS;
    "/console/live.js" => "live.js", JS;
    "/console/nodes.js" => "nodes.js", JS;
    "/console/now.js" => "now.js", JS;
    "/console/operation.js" => "operation.js", JS;
    "/console/rows.js" => "rows.js", JS;
    "/console/timeline.js" => "timeline.js", JS;
    "/console/vm.js" => "vm.js", JS;
    "/console/worker.js" => "worker.js", JS;
};

/// The entity tags of [`FILES`], in their order.
static TAGS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let tag = |file: &File| format!("\"{}\"", &HEXLOWER.encode(&Sha256::digest(file.bytes))[..32]);
    FILES
        .iter()
        .map(|file| HeaderValue::from_str(&tag(file)).unwrap_or(HeaderValue::from_static("\"\"")))
        .collect()
});

pub fn routes() -> Router<Operator> {
    let add = |router: Router<Operator>, (n, file): (usize, &'static File)| {
        router.route(file.path, get(move |headers: HeaderMap| async move { serve(file, &TAGS[n], &headers) }))
    };
    FILES.iter().enumerate().fold(Router::new(), add).method_not_allowed_fallback(super::method_not_allowed)
}

fn serve(file: &'static File, tag: &HeaderValue, request: &HeaderMap) -> Response {
    let known = request.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_known =
        known.split(',').any(|one| one.trim().trim_start_matches("W/").as_bytes() == tag.as_bytes());
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.media)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static(if file.path == "/" { "no-store" } else { "no-cache" }),
        ),
        (header::ETAG, tag.clone()),
    ];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, headers).into_response(),
        false => (headers, file.bytes).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The first view takes at most 150 KB; it needs the files that are not named here.
    const FIRST_VIEW_BYTES_MAX: usize = 140_000;
    const OTHER_VIEWS: [&str; 8] =
        ["act.js", "admin.js", "event.js", "fleet.js", "history.js", "hosts.js", "operation.js", "vm.js"];

    #[test]
    fn every_file_is_served_and_the_first_view_is_small() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        let found: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let served: BTreeSet<String> = FILES
            .iter()
            .map(|file| match file.path {
                "/" => "index.html".to_owned(),
                path => path.trim_start_matches("/console/").to_owned(),
            })
            .collect();
        assert_eq!(served, found);
        let is_first = |file: &&File| !OTHER_VIEWS.iter().any(|name| file.path.ends_with(name));
        let bytes: usize = FILES.iter().filter(is_first).map(|file| file.bytes.len()).sum();
        assert!(bytes <= FIRST_VIEW_BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn known_file_is_not_sent_again() {
        let file = &FILES[1];
        let whole = serve(file, &TAGS[1], &HeaderMap::new());
        assert_eq!(whole.status(), StatusCode::OK);
        let tag = whole.headers()[header::ETAG].clone();
        let again = |value: HeaderValue| {
            serve(file, &TAGS[1], &HeaderMap::from_iter([(header::IF_NONE_MATCH, value)])).status()
        };
        assert_eq!(again(tag), StatusCode::NOT_MODIFIED);
        assert_eq!(again(HeaderValue::from_static("\"other\"")), StatusCode::OK);
    }
}
