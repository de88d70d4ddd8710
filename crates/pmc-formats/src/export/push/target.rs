//! The server that `pmc export --push` sends to.

use std::net::IpAddr;
use std::str::FromStr;

use super::PushApi;
use pmc_sys::error::{Error, Result};

/// A server, and the interface that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushTarget {
    pub api: PushApi,
    /// The URL of the interface.
    pub url: ServerUrl,
}

impl FromStr for PushTarget {
    type Err = Error;

    /// Parses `URL` or `API=URL`.
    fn from_str(text: &str) -> Result<Self> {
        let named = PushApi::ALL.iter().find_map(|(name, api)| {
            let url = text.strip_prefix(name)?.strip_prefix('=')?;
            Some((*api, url))
        });
        let (api, url) = named.unwrap_or((PushApi::Otlp, text));
        Ok(Self { api, url: url.parse::<ServerUrl>()?.with_path(api.path()) })
    }
}

impl PushTarget {
    /// Rejects a URL with a user or password. The error does not contain them.
    ///
    /// # Errors
    /// Fails if the URL has a user.
    pub fn check_secrets(&self) -> Result<()> {
        match self.url.authority.contains('@') {
            false => Ok(()),
            true => Err(Error::usage("--push: the URL must not contain a user or password")
                .why("other users of the machine can read command lines")
                .try_options("--push-headers FILE, with a line `Authorization: Basic …`")),
        }
    }
}

/// The URL of a server, without a user, a query or a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub is_encrypted: bool,
    /// Host and port, as typed.
    pub authority: String,
    /// The path, without a slash at the end.
    pub path: String,
}

impl FromStr for ServerUrl {
    type Err = Error;

    /// Parses a URL that has only the parts that pmc sends. [`PushTarget::check_secrets`] checks for a user,
    /// because an error of this function is printed together with the text.
    fn from_str(text: &str) -> Result<Self> {
        let refuse = |why: &str| {
            Err(Error::usage(why)
                .try_options("--push http://HOST:PORT")
                .try_options("--push pyroscope=https://HOST"))
        };
        let (is_encrypted, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return refuse("the URL must begin with http:// or https://"),
        };
        let is_allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '<' | '>' | '`');
        if !rest.chars().all(is_allowed) {
            return refuse("the URL must consist of printable ASCII characters");
        }
        if rest.contains(['?', '#']) {
            return refuse("the URL must not have a query or a fragment");
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let has_user = authority.contains('@');
        if authority.is_empty() || authority.starts_with(':') && !has_user {
            return refuse("the URL has no host");
        }
        let (authority, path) = (authority.to_owned(), path.trim_end_matches('/').to_owned());
        let url = Self { is_encrypted, authority, path };
        if url.port().is_none() && !has_user {
            return refuse("invalid port");
        }
        Ok(url)
    }
}

impl ServerUrl {
    /// Adds a path, unless the URL ends with it.
    pub fn with_path(mut self, path: &str) -> Self {
        if !self.path.ends_with(path) {
            self.path.push_str(path);
        }
        self
    }

    /// Whether other machines may be able to read the request.
    pub fn is_exposed(&self) -> bool {
        let host = self.host();
        let is_local = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        !self.is_encrypted && !is_local
    }

    /// Returns the URL as text.
    pub fn text(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// Returns the position of the colon before the port.
    fn colon(&self) -> Option<usize> {
        let colon = self.authority.rfind(':')?;
        (!self.authority[colon..].contains(']')).then_some(colon)
    }

    /// Returns the host's name or address.
    pub fn host(&self) -> &str {
        let host = &self.authority[..self.colon().unwrap_or(self.authority.len())];
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// Returns the port; `None` if it is invalid.
    pub fn port(&self) -> Option<u16> {
        let default = if self.is_encrypted { 443 } else { 80 };
        self.colon().map_or(Some(default), |colon| self.authority[colon + 1..].parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_scheme_a_host_and_no_secrets() {
        let url = |text: &str| text.parse::<ServerUrl>().unwrap().with_path("/v1/p");
        let parts = |text: &str| {
            let url = url(text);
            (url.host().to_owned(), url.port(), url.text())
        };
        let of = |host: &str, port, text: &str| (host.to_owned(), Some(port), text.to_owned());
        assert_eq!(parts("http://a:4318"), of("a", 4318, "http://a:4318/v1/p"));
        assert_eq!(parts("http://a/"), of("a", 80, "http://a/v1/p"));
        assert_eq!(parts("https://a.b/x/v1/p/"), of("a.b", 443, "https://a.b/x/v1/p"));
        assert_eq!(parts("http://[::1]:80/x"), of("::1", 80, "http://[::1]:80/x/v1/p"));
        assert_eq!(parts("http://[::1]"), of("::1", 80, "http://[::1]/v1/p"));
        for wrong in [
            "",
            "a:4318",
            "ftp://a",
            "http://",
            "http://:80",
            "http://a:x",
            "http://a:70000",
            "http://a b/",
            "http://a/?token=x",
            "http://a/#x",
            "http://a/\u{1b}",
            "http://a/\"",
        ] {
            assert!(wrong.parse::<ServerUrl>().is_err(), "{wrong}");
        }
        let error = "parca=http://user:secret@a".parse::<PushTarget>().unwrap().check_secrets().unwrap_err();
        assert!(!format!("{} {:?}", error.headline(), error.remedies()).contains("secret"));
        assert!(url("http://example.org").is_exposed() && !url("https://example.org").is_exposed());
        assert!(!url("http://localhost:1").is_exposed() && !url("http://127.0.0.1").is_exposed());
    }
}
