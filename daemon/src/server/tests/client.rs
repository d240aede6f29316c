//! A plain client: one line out, lines in.

use std::time::Duration;

use camino::Utf8Path;
use semaprax_protocol::documents::{Receipt, WatchEvent};
use semaprax_protocol::request::{
    Hello, Init, Method, Publish, PublishOptions, Request, Response, Welcome,
};
use semaprax_protocol::rpc::{Incoming, Notice, decode_incoming, encode_request};
use semaprax_protocol::version::ProtocolRange;
use semaprax_protocol::{Refusal, SubmissionId};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::PATIENCE;

pub(super) struct Client {
    stream: BufReader<UnixStream>,
    requests: u64,
    pub(super) notices: Vec<Notice>,
}

impl Client {
    /// Connects, as soon as the daemon listens.
    pub(super) async fn connect(socket: &Utf8Path) -> Self {
        let connecting = async {
            loop {
                match UnixStream::connect(socket).await {
                    Ok(stream) => return stream,
                    Err(_) => sleep(Duration::from_millis(2)).await,
                }
            }
        };
        let stream = timeout(PATIENCE, connecting)
            .await
            .expect("no daemon listens");
        Self {
            stream: BufReader::new(stream),
            requests: 0,
            notices: Vec::new(),
        }
    }

    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }

    pub(super) async fn send(&mut self, request: &Request) -> u64 {
        self.requests += 1;
        let line = encode_request(self.requests, request).unwrap();
        self.send_bytes(&line).await;
        self.requests
    }

    /// The next line; `None` when the daemon has closed the connection.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        let mut line = Vec::new();
        let read = timeout(PATIENCE, self.stream.read_until(b'\n', &mut line));
        match read.await.expect("no line comes") {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(decode_incoming(&line).unwrap()),
        }
    }

    /// The next answer to any request; notices are put aside.
    pub(super) async fn answer(&mut self, request: &Request) -> Result<Response, Refusal> {
        loop {
            match self.next().await.expect("the daemon closed the connection") {
                Incoming::Answer { result, .. } => {
                    return result.map(|raw| request.parse_reply(&raw).unwrap());
                }
                Incoming::Notice(notice) => self.notices.push(notice),
            }
        }
    }

    pub(super) async fn call<M: Method>(&mut self, params: M) -> Result<M::Reply, Refusal> {
        let request = params.request();
        self.send(&request).await;
        let response = self.answer(&request).await?;
        Ok(M::reply(response).unwrap())
    }

    pub(super) async fn hello(&mut self, workspace: Option<&Utf8Path>) -> Result<Welcome, Refusal> {
        self.call(Hello {
            protocol: ProtocolRange::CURRENT,
            client: "test".to_owned(),
            workspace: workspace.map(Utf8Path::to_owned),
        })
        .await
    }

    pub(super) async fn init(&mut self, directory: &Utf8Path) -> Result<(), Refusal> {
        let params = format!(r#"{{"directory":"{directory}"}}"#);
        let params: Init = serde_json::from_str(&params).unwrap();
        self.call(params).await.map(drop)
    }

    pub(super) async fn publish(&mut self, path: &str, content: &str) -> Result<Receipt, Refusal> {
        self.call(put(path, content, None)).await
    }

    /// The next event of a subscription.
    pub(super) async fn event(&mut self) -> WatchEvent {
        match self.next().await {
            Some(Incoming::Notice(Notice::Event { event, .. })) => *event,
            other => panic!("no event: {other:?}"),
        }
    }

    /// Whether nothing but the end comes.
    pub(super) async fn is_closed(&mut self) -> bool {
        self.next().await.is_none()
    }
}

/// A submission of one file.
pub(super) fn put(path: &str, content: &str, id: Option<SubmissionId>) -> Publish {
    let text = format!(r#"{{"changes":[{{"op":"put","path":"{path}","content":"{content}"}}]}}"#);
    let mut submission: semaprax_protocol::submission::Submission =
        serde_json::from_str(&text).unwrap();
    submission.id = id;
    Publish {
        submission,
        options: PublishOptions::default(),
    }
}
