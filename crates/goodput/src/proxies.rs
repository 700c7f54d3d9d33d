//! The proxy for a file server, from the options and the environment, with the conventions of curl(1).

use std::net::IpAddr;

use anyhow::{Result, bail};
use goodput_files::{Place, Proxy};
use ipnet::IpNet;

use crate::args::ProxyArgs;

/// The proxy for the server of `place`, if any. `variable` reads the environment.
pub fn proxy(
    place: &Place,
    args: &ProxyArgs,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>> {
    let scheme = place.scheme().id;
    let is_web = matches!(scheme, "http" | "https");
    if let Some(named) = args.proxy.as_deref().filter(|named| !named.is_empty()) {
        if !is_web {
            bail!(
                "{place}: only http:// and https:// can be reached by a proxy; leave out --proxy"
            );
        }
        let proxy = Proxy::parse(named)?;
        if proxy.has_password() {
            bail!(
                "a password in --proxy can be read by other users of this host; put the URL into the variable {scheme}_proxy instead"
            );
        }
    }
    if !is_web {
        return Ok(None);
    }
    let either = |name: &str| variable(name).or_else(|| variable(&name.to_uppercase()));
    let listed = args.noproxy.clone().or_else(|| either("no_proxy")).unwrap_or_default();
    if is_listed(place.host(), &listed) {
        return Ok(None);
    }
    // A web server stores a request's field as HTTP_PROXY (curl(1), CVE-2016-5388).
    let of_scheme =
        || if scheme == "http" { variable("http_proxy") } else { either("https_proxy") };
    let url = args.proxy.clone().or_else(of_scheme).or_else(|| either("all_proxy"));
    let url = url.filter(|url| !url.is_empty());
    Ok(url.map(|url| Proxy::parse(&url)).transpose()?)
}

/// Whether a list contains the host, or a domain or network of the host. `*` means all hosts.
fn is_listed(host: &str, list: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    let names = list.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty());
    names.into_iter().any(|name| match address {
        _ if name == "*" => true,
        Some(address) => {
            let name = name.trim_start_matches('[').trim_end_matches(']');
            name.parse().is_ok_and(|listed: IpAddr| listed == address)
                || name.parse().is_ok_and(|listed: IpNet| listed.contains(&address))
        }
        None => is_below(host, name.trim_start_matches('.')),
    })
}

/// Whether a host equals a domain, or is in it.
fn is_below(host: &str, domain: &str) -> bool {
    let (host, domain) = (host.to_ascii_lowercase(), domain.to_ascii_lowercase());
    host.strip_suffix(&domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use goodput_files::schemes;

    use super::*;

    const ENVIRONMENT: [(&str, &str); 5] = [
        ("http_proxy", "http://me:s3cret@plain:1"),
        ("HTTP_PROXY", "http://wrong:1"),
        ("HTTPS_PROXY", "http://tls:2"),
        ("all_proxy", "http://any:3"),
        ("no_proxy", "example.org, 10.0.0.0/8 ,::1"),
    ];

    fn chosen(place: &str, args: &ProxyArgs, without: &[&str]) -> Option<String> {
        let find =
            |name: &str| ENVIRONMENT.iter().find(|(of, _)| *of == name && !without.contains(of));
        let variable = |name: &str| find(name).map(|(_, value)| (*value).to_owned());
        let proxy = proxy(&schemes::parse(place).unwrap(), args, variable).unwrap();
        proxy.map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_environment_chooses_as_for_curl() {
        let none = ProxyArgs { proxy: None, noproxy: None };
        let by = |place: &str, without: &[&str]| chosen(place, &none, without);
        assert_eq!(by("http://nas/x", &[]).as_deref(), Some("plain:1"));
        assert_eq!(by("https://nas/x", &[]).as_deref(), Some("tls:2"));
        assert_eq!(by("http://nas/x", &["http_proxy"]).as_deref(), Some("any:3"));
        assert_eq!(by("ftp://nas/x", &[]), None);
        for place in
            ["http://example.org/", "http://a.EXAMPLE.org/", "http://10.1.2.3/", "http://[::1]/"]
        {
            assert_eq!(by(place, &[]), None, "{place}");
        }
        assert!(
            by("http://notexample.org/", &[]).is_some() && by("http://11.1.2.3/", &[]).is_some()
        );
    }

    #[test]
    fn options_come_before_the_environment() {
        let args = |proxy: Option<&str>, noproxy: Option<&str>| ProxyArgs {
            proxy: proxy.map(Into::into),
            noproxy: noproxy.map(Into::into),
        };
        let by = |place: &str, args: &ProxyArgs| chosen(place, args, &[]);
        assert_eq!(by("http://nas/x", &args(Some("own:9"), None)).as_deref(), Some("own:9"));
        assert_eq!(by("http://nas/x", &args(Some(""), None)), None, "none at all");
        assert_eq!(by("http://nas/x", &args(None, Some("*"))), None);
        assert_eq!(by("http://example.org/x", &args(None, Some(""))).as_deref(), Some("plain:1"));
        let place = schemes::parse("http://nas/x").unwrap();
        let why = proxy(&place, &args(Some("http://me:s3cret@own"), None), |_| None).unwrap_err();
        assert!(!why.to_string().contains("s3cret") && why.to_string().contains("http_proxy"));
        let place = schemes::parse("ftp://nas/x").unwrap();
        assert!(proxy(&place, &args(Some("own"), None), |_| None).is_err());
    }
}
