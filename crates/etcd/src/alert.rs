//! A TLS stream that shows why the server closed it.
//!
//! With TLS 1.3 a server checks the client's certificate after the client may write. If it refuses, it sends an alert and closes. The
//! client's next write fails with a broken pipe, and the alert, which has the reason, stays unread. This stream reads it. It
//! keeps the error aside, too: HTTP/2 passes on only its text.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::errors::find_source;

pub(crate) struct ShowsAlert<S> {
    stream: S,
    /// The error of the write that failed, until the alert is read or there is none.
    failed: Option<io::Error>,
    alert: Alert,
}

/// The error of TLS that ended a stream.
pub(crate) type Alert = Arc<OnceLock<rustls::Error>>;

impl<S> ShowsAlert<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, failed: None, alert: Alert::default() }
    }

    pub(crate) fn alert(&self) -> Alert {
        Arc::clone(&self.alert)
    }
}

impl<S: AsyncRead + Unpin> ShowsAlert<S> {
    fn read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Err(error)) = &read
            && let Some(alert) = find_source::<rustls::Error>(error)
        {
            let _ = self.alert.set(alert.clone());
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ShowsAlert<S> {
    /// Writes, or waits for what the server has sent before it closed.
    fn write<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let failed = match self.failed.take() {
            Some(failed) => failed,
            None => match write(Pin::new(&mut self.stream), context) {
                Poll::Ready(Err(error)) => error,
                other @ (Poll::Ready(Ok(_)) | Poll::Pending) => return other,
            },
        };
        let mut bytes = [0; 1];
        match Pin::new(&mut self.stream).poll_read(context, &mut ReadBuf::new(&mut bytes)) {
            Poll::Ready(Err(alert)) if find_source::<rustls::Error>(&alert).is_some() => {
                Poll::Ready(Err(alert))
            }
            Poll::Ready(_) => Poll::Ready(Err(failed)),
            // The connection is closed, so this ends soon; every call has a deadline.
            Poll::Pending => {
                self.failed = Some(failed);
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ShowsAlert<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ShowsAlert<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
