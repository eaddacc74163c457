//! Requests as parsed by hyper.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, Version};
use hyper_util::rt::TokioIo;

use super::Request;
use super::guest::COMPARED;

/// The complete requests that hyper parses.
pub fn read_all(bytes: &[u8]) -> Vec<Request> {
    let all = Rc::new(RefCell::new(Vec::new()));
    let taken = Rc::clone(&all);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let taken = Rc::clone(&taken);
        async move {
            let (head, body) = request.into_parts();
            if let Ok(body) = body.collect().await {
                let headers = COMPARED.iter().flat_map(|name| {
                    head.headers.get_all(*name).iter().map(|value| (*name, value.as_bytes().to_vec()))
                });
                taken.borrow_mut().push(Request {
                    method: head.method.as_str().to_owned(),
                    target: head.uri.to_string(),
                    is_http10: head.version == Version::HTTP_10,
                    headers: headers.collect(),
                    body: body.to_bytes().to_vec(),
                });
            }
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let stream = tokio::io::join(bytes, tokio::io::sink());
    // The end of the input must not abort the requests in it.
    let connection = http1::Builder::new().half_close(true).serve_connection(TokioIo::new(stream), service);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    // How the connection ends does not matter.
    let _ = runtime.block_on(connection);
    drop(runtime);
    Rc::try_unwrap(all).map(RefCell::into_inner).unwrap_or_default()
}
