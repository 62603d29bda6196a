//! Which addresses a page may come from. What is only reachable from here (this machine, the local
//! network, a cloud's metadata service) is not for a page that a model happens to name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;

/// Hosts that may be private all the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed {
    pub(crate) everywhere: bool,
    pub(crate) hosts: Vec<String>,
}

impl Allowed {
    fn covers(&self, host: &str) -> bool {
        self.everywhere || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }
}

/// Reads an address that a model or a server has named.
pub(crate) fn parse(text: &str) -> Result<Url, String> {
    let text = text.trim();
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    if !lower.starts_with("http://") && !lower.starts_with("https://") {
        return Err("URL must start with http:// or https://".to_owned());
    }
    let mut url = Url::parse(text).map_err(|e| format!("The URL cannot be read: {e}."))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("The URL holds a user name or password; give it without.".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

/// The addresses to connect to, and to no others: a name that is looked up a second time may lead
/// somewhere else. Empty where only a proxy can know them.
pub(crate) async fn resolve(
    url: &Url,
    allowed: &Allowed,
    has_proxy: bool,
) -> Result<Vec<SocketAddr>, String> {
    let host = url.host_str().ok_or("The URL names no host.")?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(80);
    let found: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => match tokio::net::lookup_host((bare, port)).await {
            Ok(found) => found.collect(),
            Err(_) if has_proxy => Vec::new(),
            Err(error) => return Err(format!("The host {host} cannot be found: {error}.")),
        },
    };
    // One private address among public ones is enough to be led there.
    if let Some(inside) = found.iter().find(|a| is_private(a.ip()))
        && !allowed.covers(bare)
    {
        return Err(format!(
            "{host} leads to {}, an address of this machine or its network, which is not fetched. \
             The user can allow it with webfetch.allow_private or webfetch.allow_hosts in the settings.",
            inside.ip()
        ));
    }
    Ok(found)
}

/// Whether an address means something only from here, or nothing at all.
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => is_private_v6(v6),
    }
}

fn is_private_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_documentation()
        || a == 0
        // Carriers' own networks, and some clouds' metadata.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        // Measurements between devices.
        || (a == 198 && (18..20).contains(&b))
        || a >= 240
}

fn is_private_v6(v6: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let inside = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(w, x, y, z))
    };
    v6.is_loopback()
        || v6.is_unspecified()
        || v6.is_multicast()
        // Unique local, link local, and the site local of old.
        || (a & 0xfe00) == 0xfc00
        || (a & 0xffc0) == 0xfe80
        || (a & 0xffc0) == 0xfec0
        || (a == 0x2001 && b == 0xdb8)
        // Addresses that hold one of the other kind: mapped, compatible, translated, 6to4, Teredo.
        || ([a, b, c, d, e] == [0; 5] && (f == 0 || f == 0xffff) && inside(g, h))
        || ([a, b, c, d, e, f] == [0x64, 0xff9b, 0, 0, 0, 0] && inside(g, h))
        || (a == 0x64 && b == 0xff9b && c == 1)
        || (a == 0x2002 && inside(b, c))
        || (a == 0x2001 && b == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_only_reachable_from_here_is_private() {
        for (address, private) in [
            ("8.8.8.8", false),
            ("93.184.216.34", false),
            ("172.32.0.1", false),
            ("100.128.0.1", false),
            ("2606:4700::1111", false),
            ("64:ff9b::808:808", false),
            ("2002:808:808::1", false),
            ("127.0.0.1", true),
            ("127.255.0.3", true),
            ("0.0.0.0", true),
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("192.168.1.1", true),
            ("169.254.169.254", true),
            ("100.100.100.200", true),
            ("198.18.0.1", true),
            ("192.0.0.192", true),
            ("224.0.0.1", true),
            ("255.255.255.255", true),
            ("::1", true),
            ("::", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("fec0::1", true),
            ("ff02::1", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:8.8.8.8", false),
            ("::7f00:1", true),
            ("64:ff9b::7f00:1", true),
            ("2002:7f00:1::", true),
            ("2001::1", true),
        ] {
            assert_eq!(is_private(address.parse().unwrap()), private, "{address}");
        }
    }

    #[tokio::test]
    async fn other_ways_to_write_this_machine_are_refused_too() {
        for text in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://localhost:99/",
            "http://LOCALHOST./",
            "http://169.254.169.254/latest/meta-data",
        ] {
            let url = parse(text).unwrap();
            let error = resolve(&url, &Allowed::default(), false).await.unwrap_err();
            assert!(error.contains("not fetched") || error.contains("cannot be found"), "{error}");
        }
        let url = parse("http://localhost:99/").unwrap();
        let named = Allowed { everywhere: false, hosts: vec!["localhost".into()] };
        assert!(!resolve(&url, &named, false).await.unwrap().is_empty());
        let everywhere = Allowed { everywhere: true, hosts: Vec::new() };
        assert!(!resolve(&url, &everywhere, false).await.unwrap().is_empty());
    }

    #[test]
    fn only_plain_web_addresses_are_read() {
        for (text, expected) in [
            ("ftp://x/", "URL must start with http:// or https://"),
            ("file:///etc/passwd", "URL must start with http:// or https://"),
            ("", "URL must start with http:// or https://"),
            ("http://", "The URL cannot be read"),
            ("http://user@x/", "holds a user name or password"),
            ("https://u:p@x/", "holds a user name or password"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert_eq!(
            parse(" HTTPS://Example.org/a#part ").unwrap().as_str(),
            "https://example.org/a"
        );
    }
}
