//! The arrival of a request is recorded after everything that the handler showed before it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use notbefore_rehearse::platform::{Elapsed, Platform, PlatformSpec};
use tokio::time::timeout;

use crate::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn arrival_is_after_its_hook_and_before_the_answer() {
    let elapsed = Arc::new(OnceLock::<Elapsed>::new());
    let observed = Arc::new(Mutex::new(Vec::<Duration>::new()));
    let spec = PlatformSpec {
        arrival_hook: Some(Arc::new({
            let (elapsed, observed) = (Arc::clone(&elapsed), Arc::clone(&observed));
            move |vm| {
                assert_eq!(vm, "web-0");
                observed.lock().unwrap().extend(elapsed.get().map(Elapsed::elapsed));
            }
        })),
        ..PlatformSpec::of_vms(["web-0"])
    };
    let platform = Platform::start(spec).await.unwrap();
    assert!(elapsed.set(platform.elapsed()).is_ok());
    let mut requests = platform.take_requests().unwrap();
    let address = platform.endpoint("web-0").unwrap().trim_start_matches("http://").to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut guest = TcpStream::connect(address)?;
        guest.write_all(b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        guest.read_to_string(&mut answer).map(|_| answer)
    });
    assert!(answer.await.unwrap().unwrap().starts_with("HTTP/1.1 200"));
    let request = timeout(PATIENCE, requests.recv()).await.unwrap().unwrap();
    let answered_at = request.answering_at.unwrap();
    let observed = observed.lock().unwrap().clone();
    assert!(
        observed[0] <= request.arrived_at && request.arrived_at <= answered_at,
        "{observed:?} {request:?}"
    );
    platform.close().await;
}
