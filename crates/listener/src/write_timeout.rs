//! A socket whose writes fail when the peer reads no byte for too long.
//!
//! Without this, a client that does not read its response could hold a connection forever. A response may take any time
//! as long as it makes progress. Reads are not limited here: heads and bodies have their own timeouts.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How long a peer may read no byte while bytes are waiting.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A stream with this timeout. Under TLS, wrap the socket, not the encrypted stream, which has a buffer of its own.
#[derive(Debug)]
pub struct WriteTimeout<S> {
    stream: S,
    /// Set while a write is blocked.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    /// Limits writes to [`WRITE_TIMEOUT`] without progress.
    pub fn new(stream: S) -> Self {
        Self { stream, deadline: None }
    }

    fn limit<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.deadline = None;
            return polled;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_TIMEOUT)));
        deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limit(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn write_times_out_when_peer_reads_nothing() {
        let (near, _far) = tokio::io::duplex(4);
        let mut near = WriteTimeout::new(near);
        let error = near.write_all(b"more than four bytes").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_but_steady_peer_does_not_time_out() {
        let (near, mut far) = tokio::io::duplex(1);
        let mut near = WriteTimeout::new(near);
        let answer = [7_u8; 30];
        let reading = async {
            for _ in 0..answer.len() {
                sleep(WRITE_TIMEOUT - Duration::from_millis(1)).await;
                far.read_u8().await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&answer), reading);
        written.unwrap();
    }
}
