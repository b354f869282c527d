//! A minimal RESP2 client, so that looking into a server costs no process.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `+text`
    Status(String),
    /// `-text`
    Error(String),
    /// `:number`
    Int(i64),
    /// `$bytes`; bytes that are no UTF-8 are replaced
    Bulk(String),
    /// a null bulk or array
    Nil,
    /// `*items`
    Array(Vec<Value>),
}

impl Value {
    /// The text of a status, bulk or number; fails the test on anything else.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Status(s) | Self::Bulk(s) => s.clone(),
            Self::Int(n) => n.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// The items of an array; fails the test on anything else.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        match self {
            Self::Array(items) => items,
            other => panic!("no array: {other:?}"),
        }
    }
}

/// What a connection is made of.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One connection.
pub struct Resp {
    stream: BufReader<Box<dyn Stream>>,
}

impl Resp {
    /// Connects over TCP on loopback; replies are waited for at most 2 s.
    pub fn tcp(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        Ok(Self::over(Box::new(stream)))
    }

    /// Connects over a unix socket; replies are waited for at most 2 s.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        Ok(Self::over(Box::new(stream)))
    }

    fn over(stream: Box<dyn Stream>) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Sends one command and reads its reply.
    pub fn call<S: AsRef<[u8]>>(&mut self, args: &[S]) -> io::Result<Value> {
        self.send(args)?;
        self.read()
    }

    /// Sends one command without reading a reply.
    pub fn send<S: AsRef<[u8]>>(&mut self, args: &[S]) -> io::Result<()> {
        let mut out = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            let arg = arg.as_ref();
            out.extend(format!("${}\r\n", arg.len()).bytes());
            out.extend(arg);
            out.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&out)
    }

    /// Reads one reply.
    pub fn read(&mut self) -> io::Result<Value> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| bad(&line))?;
        Ok(match kind {
            "+" => Value::Status(rest.to_owned()),
            "-" => Value::Error(rest.to_owned()),
            ":" => Value::Int(rest.parse().map_err(|_| bad(&line))?),
            "$" => match rest.parse::<i64>().map_err(|_| bad(&line))? {
                len if len < 0 => Value::Nil,
                len => Value::Bulk(self.bulk(usize::try_from(len).map_err(|_| bad(&line))?)?),
            },
            "*" => match rest.parse::<i64>().map_err(|_| bad(&line))? {
                len if len < 0 => Value::Nil,
                len => Value::Array((0..len).map(|_| self.read()).collect::<io::Result<_>>()?),
            },
            _ => return Err(bad(&line)),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    fn bulk(&mut self, len: usize) -> io::Result<String> {
        let mut bytes = vec![0; len + 2];
        self.stream.read_exact(&mut bytes)?;
        bytes.truncate(len);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn bad(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no RESP: {line:?}"))
}
