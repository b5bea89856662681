//! A stream in two owned halves, for two tasks.
use super::stream::TcpStream;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads. The stream is closed when both halves are gone.
#[derive(Debug)]
pub struct OwnedReadHalf(Arc<TcpStream>);

/// Writes; dropping it ends the stream towards the peer.
#[derive(Debug)]
pub struct OwnedWriteHalf(Arc<TcpStream>);

pub(super) fn split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let stream = Arc::new(stream);
    (OwnedReadHalf(Arc::clone(&stream)), OwnedWriteHalf(stream))
}

impl OwnedReadHalf {
    /// The stream's own address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
    /// The address of the other end.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
    /// As [`TcpStream::peek`].
    pub async fn peek(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.peek(out).await
    }
    /// As [`TcpStream::readable`].
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }
    /// As [`TcpStream::try_read`].
    pub fn try_read(&self, out: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(out)
    }
}

impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.0
    }
}

impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.0
    }
}

impl OwnedWriteHalf {
    /// As [`TcpStream::writable`].
    pub async fn writable(&self) -> io::Result<()> {
        self.0.writable().await
    }
    /// As [`TcpStream::try_write`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }
    /// The stream's own address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
    /// The address of the other end.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}

impl AsyncRead for OwnedReadHalf {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_shared(cx, out, false)
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write_shared(cx, &[IoSlice::new(bytes)])
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_shared(cx, parts)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown_write())
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if crate::sim::world::try_world().is_some() {
            // A stream that is over cannot be ended again; there is nobody to tell.
            let _ = self.0.shutdown_write();
        }
    }
}
