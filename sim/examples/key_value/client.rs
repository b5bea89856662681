//! Put and get by majorities (Attiya, Bar-Noy and Dolev, "Sharing memory robustly in message-passing systems", 1995).
//!
//! Any two majorities have a replica in common: who asks a majority hears of everything that was stored on a majority before.

use super::wire::{Reply, Request, Version, Versioned, receive, send};
use rt::net::TcpStream;
use rt::sync::mpsc;
use rt::task::TaskGroup;
use std::io;
use std::net::SocketAddr;

/// A client of the store. One operation at a time.
#[derive(Debug)]
pub struct Client {
    /// Where the replicas are.
    pub replicas: Vec<SocketAddr>,
    /// No two clients share it.
    pub id: u32,
    /// The highest counter that it has used. A put that was given up may have left it on a minority, unseen by the next majority.
    pub counter: u64,
    /// Whether a get stores what it has read before it tells. Without, it is one round trip shorter, and wrong.
    pub writes_back: bool,
}

impl Client {
    /// Sets the value of a key. An error does not say that it was not set.
    pub async fn put(&mut self, key: &str, value: String) -> io::Result<()> {
        let newest = self.newest(key).await?;
        self.counter = self.counter.max(newest.version.counter) + 1;
        let version = Version { counter: self.counter, writer: self.id };
        self.store(key, Versioned { version, value: Some(value) }).await
    }

    /// The value of a key; none if it was never put.
    pub async fn get(&mut self, key: &str) -> io::Result<Option<String>> {
        let newest = self.newest(key).await?;
        if self.writes_back {
            self.store(key, newest.clone()).await?;
        }
        Ok(newest.value)
    }

    async fn newest(&self, key: &str) -> io::Result<Versioned> {
        let replies = self.ask_majority(&Request::Load { key: key.to_owned() }).await?;
        let loaded = replies.into_iter().filter_map(|reply| match reply {
            Reply::Loaded(versioned) => Some(versioned),
            Reply::Stored => None,
        });
        loaded.max_by_key(|versioned| versioned.version).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    async fn store(&self, key: &str, versioned: Versioned) -> io::Result<()> {
        self.ask_majority(&Request::Store { key: key.to_owned(), versioned }).await.map(drop)
    }

    /// Asks every replica and waits for the first answers of more than half of them; the other questions are given up.
    async fn ask_majority(&self, request: &Request) -> io::Result<Vec<Reply>> {
        let questions = TaskGroup::default();
        let (sender, mut receiver) = mpsc::channel(self.replicas.len());
        for replica in &self.replicas {
            let (replica, request, sender) = (*replica, request.clone(), sender.clone());
            questions.spawn(async move {
                if let Ok(reply) = ask(replica, &request).await {
                    // Nobody listens any more once a majority has answered.
                    let _ = sender.send(reply).await;
                }
            });
        }
        drop(sender);
        let mut replies = Vec::new();
        while replies.len() <= self.replicas.len() / 2 {
            let reply = receiver.recv().await;
            replies.push(reply.ok_or_else(|| io::Error::other("no majority answers"))?);
        }
        Ok(replies)
    }
}

async fn ask(replica: SocketAddr, request: &Request) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(replica).await?;
    send(&mut stream, request).await?;
    receive(&mut stream).await
}
