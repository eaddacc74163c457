//! Answers of intercepted requests: delays, resets, slow bodies, and the record of each exchange.

use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;

use super::{Disconnected, Task};
use crate::clock;
use crate::guest::faults::{Ending, Waits};
use crate::guest::head;
use crate::guest::interception::{Intercepted, begin_record};
use crate::guest::platform::Platform;
use crate::guest::response::{Response, ResponseMeta};

/// Pieces of a slow body. Each is sent alone, so a client sees progress and no read of it times out early.
const PIECES: u32 = 20;

impl<P: Platform> Task<P> {
    /// Answers as the fault table decides, and records the exchange. Returns whether the guest got its events.
    pub(super) async fn respond_intercepted(
        &mut self,
        mut intercepted: Box<Intercepted>,
        response: Response,
        mut meta: ResponseMeta,
    ) -> Result<bool, Disconnected> {
        let response = intercepted.change(&self.server.interception, response, meta.now);
        let delay = &intercepted.before.delay;
        if delay.longest().is_some() {
            let received = intercepted.received_since_boot;
            self.pause_until(|| Some(received + delay.longest()?)).await;
            meta.now = self.server.clock.now();
        }
        let after = intercepted.after.take().unwrap_or_default();
        // A clock at the end of the calendar stays there.
        meta.now = meta.now.saturating_add(after.skew).unwrap_or(meta.now);
        let record = &mut intercepted.record;
        record.faults = intercepted.before.kinds.iter().chain(&after.kinds).cloned().collect();
        if intercepted.before.ending == Some(Ending::Reset) {
            // Closing then resets. Without it the connection closes in order, still without a response.
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
            self.record(intercepted);
            return Err(Disconnected);
        }
        let (status, incarnation) = (response.status(), response.incarnation());
        self.server.stats.count_response(&response);
        let (head, body) = response.parts(meta);
        let sent = match after.slow.longest() {
            Some(_) => self.write_slowly(&head, &body, &after.slow).await,
            None => {
                record.answering_at = self.server.interception.answering();
                self.write(&head, &body).await
            }
        };
        if sent.is_ok() {
            record.status = Some(status);
            (record.incarnation, record.response_body) = (incarnation, body);
        }
        self.record(intercepted);
        sent?;
        Ok(!after.withholds_events())
    }

    /// Writes the head at once and the body in pieces, the last one after `time`. When its faults are cleared, the rest
    /// follows at once.
    async fn write_slowly(&mut self, head: &[u8], body: &Bytes, time: &Waits) -> std::io::Result<()> {
        let start = self.server.clock.since_boot();
        self.write(head, &[]).await?;
        let length = body.len().div_ceil(PIECES as usize).max(1);
        let pieces = u32::try_from(body.len().div_ceil(length)).unwrap_or(PIECES).max(1);
        for (number, piece) in (1..).zip(body.chunks(length)) {
            self.pause_until(|| Some(start + time.longest()? * number / pieces)).await;
            self.write(piece, &[]).await?;
        }
        Ok(())
    }

    /// Waits until the service's clock has the time since boot that `until` returns, or until it returns none, because
    /// faults were cleared. Shutdown ends the wait.
    async fn pause_until(&mut self, until: impl Fn() -> Option<Duration>) {
        // Subscribed before the first look, so that no clear is missed.
        let mut clears = self.server.interception.clears();
        while let Some(due) = until() {
            tokio::select! {
                () = clock::sleep_until(&*self.server.clock, due) => return,
                // A dropped sender means shutdown too.
                _ = self.shutdown.wait_for(|closing| *closing) => return,
                // The server, which has the sender, outlives this task.
                _ = clears.changed() => {}
            }
        }
    }

    /// Records an exchange that has ended.
    pub(super) fn record(&self, intercepted: Box<Intercepted>) {
        let mut record = intercepted.record;
        record.answered_at = self.server.clock.now();
        record.answering_at = record.answering_at.or_else(|| self.server.interception.answering());
        self.server.interception.record(record);
    }

    /// Records input that was refused without an exchange.
    pub(super) fn record_refused(
        &self,
        input: &[u8],
        status: u16,
        response_body: Bytes,
        now: jiff::Timestamp,
    ) {
        let mut headers = head::header_slots();
        let parsed = head::parse(input, &mut headers).ok().flatten();
        let mut record = begin_record(parsed.as_ref().map(|(head, _)| head), &self.caller, now);
        record.answered_at = self.server.clock.now();
        (record.status, record.response_body) = (Some(status), response_body);
        self.server.interception.record(record);
    }
}
