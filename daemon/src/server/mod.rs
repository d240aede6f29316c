//! Sockets and threads: the only home of tokio and interprocess.
