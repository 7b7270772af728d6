"""What is read out of an address, and which addresses are never fetched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.tools.web.urls import BadUrl, covers, is_public, parse_url, same_site

REFUSED = {
    "loopback": "http://127.0.0.1/",
    "loopback, not the first": "http://127.8.9.10/",
    "loopback by name": "http://localhost/",
    "name with a final dot": "http://localhost./",
    "below localhost": "http://api.localhost/",
    "upper case": "http://LOCALHOST/",
    "IPv6 loopback": "http://[::1]/",
    "unspecified": "http://0.0.0.0/",
    "unspecified, short": "http://0/",
    "IPv6 unspecified": "http://[::]/",
    "short form": "http://127.1/",
    "three parts": "http://10.0.1/",
    "one number": "http://2130706433/",
    "hexadecimal": "http://0x7f000001/",
    "hexadecimal parts": "http://0x7f.0.0.1/",
    "hexadecimal end": "http://127.0.0.0x1/",
    "octal": "http://0177.0.0.1/",
    "leading zeros": "http://127.000.000.001/",
    "number too large": "http://256.1.1.1/",
    "final dot after a number": "http://127.0.0.1./",
    "mapped": "http://[::ffff:127.0.0.1]/",
    "mapped, hexadecimal": "http://[::ffff:7f00:1]/",
    "mapped, public": "http://[::ffff:8.8.8.8]/",
    "compatible": "http://[::127.0.0.1]/",
    "NAT64": "http://[64:ff9b::7f00:1]/",
    "NAT64, local": "http://[64:ff9b:1::7f00:1]/",
    "6to4": "http://[2002:7f00:1::]/",
    "Teredo": "http://[2001:0:53aa:64c:0:0:80ff:fffe]/",
    "ISATAP": "http://[2a00:1450:4001:82a:0:5efe:7f00:1]/",
    "metadata": "http://169.254.169.254/latest/meta-data/",
    "metadata of another cloud": "http://100.100.100.200/",
    "metadata at a public address": "http://168.63.129.16/",
    "metadata, IPv6": "http://[fd00:ec2::254]/",
    "metadata by name": "http://metadata.google.internal/",
    "private": "http://10.1.2.3/",
    "private, 172": "http://172.31.255.255/",
    "private, 192": "http://192.168.0.1/",
    "carrier": "http://100.64.0.1/",
    "benchmarks": "http://198.18.0.1/",
    "documentation": "http://203.0.113.7/",
    "multicast": "http://224.0.0.1/",
    "IPv6 multicast": "http://[ff02::1]/",
    "broadcast": "http://255.255.255.255/",
    "reserved": "http://250.1.1.1/",
    "unique local": "http://[fc00::1]/",
    "link-local": "http://[fe80::1]/",
    "zone": "http://[fe80::1%25eth0]/",
    "documentation, IPv6": "http://[2001:db8::1]/",
    "circled digits": "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/",
    "full-width digits": "http://\uff11\uff12\uff17.0.0.1/",
    "ideographic dots": "http://127\u30020\u30020\u30021/",
    "full-width letters": "http://\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54/",
    "soft hyphen": "http://local\u00adhost/",
    "encoded": "http://127%2e0%2e0%2e1/",
    "encoded letters": "http://%6c%6fcalhost/",
    "backslash": "https://evil.test\\@127.0.0.1/",
    "backslash for slash": "http:\\\\127.0.0.1/",
    "user": "https://public.test@127.0.0.1/",
    "user and password": "https://a:b@docs.example.org/",
    "user, empty": "https://@docs.example.org/",
    "two at signs": "https://a@b@docs.example.org/",
    "file": "file:///etc/passwd",
    "ftp": "ftp://x.test/",
    "gopher": "gopher://127.0.0.1:6379/_FLUSHALL",
    "data": "data:text/html,hello",
    "script": "javascript:alert(1)",
    "wrapped": "view-source:http://127.0.0.1/",
    "no scheme": "docs.example.org/",
    "relative to a scheme": "//docs.example.org/",
    "one slash": "https:/docs.example.org/",
    "no slash": "https:docs.example.org/",
    "no host": "https:///path",
    "empty": "https://",
    "tab in the host": "https://docs.exa\tmple.org/",
    "new line": "https://docs.example.org/\r\nX: y",
    "NUL": "https://docs.example.org\0.evil.test/",
    "blank in the host": "https://docs.example.org .evil.test/",
    "zero width in the path": "https://docs.example.org/\u200b",
    "bidi": "https://docs.example.org/\u202egnp",
    "port too large": "https://docs.example.org:65536/",
    "port zero": "https://docs.example.org:0/",
    "port in letters": "https://docs.example.org:x/",
    "port in Arabic digits": "https://docs.example.org:\u0664\u0664\u0663/",
    "empty port": "https://docs.example.org:/",
    "two ports": "https://docs.example.org:80:80/",
    "broken brackets": "https://[::1/",
    "words after brackets": "https://[2606:4700::1111]x/",
    "dot for a host": "https://./",
    "two dots": "https://docs..example.org/",
    "one label": "https://router/",
    "local": "https://printer.local/",
    "home": "https://nas.home.arpa/",
    "too long": "https://docs.example.org/" + "x" * 5000,
    "label too long": f"https://{'x' * 64}.example.org/",
    "bad IDN": "https://xn--\u0430.example.org/",
}

FETCHED = {
    "https://docs.python.org/3/": "https://docs.python.org/3/",
    "https://peps.python.org/pep-0008/?x=1#y": "https://peps.python.org/pep-0008/?x=1",
    "HTTPS://Docs.Python.ORG": "https://docs.python.org/",
    "https://docs.python.org./3/": "https://docs.python.org/3/",
    "https://docs.python.org:443/": "https://docs.python.org/",
    "http://docs.python.org:80/": "http://docs.python.org/",
    "https://docs.example.org:8443/x": "https://docs.example.org:8443/x",
    "https://1.1.1.1/": "https://1.1.1.1/",
    "https://[2606:4700:4700::1111]:443/x": "https://[2606:4700:4700::1111]/x",
    "https://example.org?q=1": "https://example.org/?q=1",
    "https://example.org/a b?d=<contents of .env>": "https://example.org/a%20b?d=%3Ccontents%20of%20.env%3E",
    "https://example.org/%41%2f": "https://example.org/%41%2f",
    "https://b\u00fccher.example/\u00fc": "https://xn--bcher-kva.example/%C3%BC",
    "https://\u0430pple.com/": "https://xn--pple-43d.com/",
    "https://xn--pple-43d.com/": "https://xn--pple-43d.com/",
    "https://example.org/@user:x": "https://example.org/@user:x",
    " https://example.org/ ": "https://example.org/",
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    with pytest.raises(BadUrl):
        print(parse_url(REFUSED[case]))


@pytest.mark.parametrize("url", FETCHED)
def test_fetched_in_one_spelling(url: str) -> None:
    target = parse_url(url)
    assert target.url == FETCHED[url]
    assert parse_url(target.url) == target


@given(st.integers(0, 2**32 - 1), st.sampled_from(["d", "x", "o", "short"]))
def test_no_spelling_of_a_number_but_the_usual_one(number: int, form: str) -> None:
    parts = [number >> shift & 255 for shift in (24, 16, 8, 0)]
    spelt = {
        "d": str(number),
        "x": hex(number),
        "o": ".".join(f"0{part:o}" for part in parts),
        "short": f"{parts[0]}.{number & 0xFFFFFF}",
    }[form]
    if form == "o" and all(part < 8 and part == 0 for part in parts):
        return
    with pytest.raises(BadUrl):
        parse_url(f"http://{spelt}/")


@given(st.text(max_size=30), st.text(max_size=10))
def test_whatever_is_taken_is_public_and_stable(host: str, rest: str) -> None:
    try:
        target = parse_url(f"https://{host}/{rest}")
    except BadUrl:
        return
    assert target.host.isascii() and "@" not in target.authority and "\\" not in target.url
    assert parse_url(target.url) == target


@pytest.mark.parametrize(
    ("location", "leads"),
    [
        ("/y?z", "https://example.org/y?z"),
        ("y", "https://example.org/a/y"),
        ("?q", "https://example.org/a/x?q"),
        ("//other.example/", "https://other.example/"),
        ("http://other.example/", "http://other.example/"),
        ("#part", "https://example.org/a/x"),
    ],
)
def test_redirects_may_be_relative(location: str, leads: str) -> None:
    assert parse_url(location, parse_url("https://example.org/a/x")).url == leads


@pytest.mark.parametrize(
    "location", ["//127.0.0.1/", "http://[::1]/", "file:///etc/passwd", "//a@b/", "///x", "\\\\evil.example\\x"]
)
def test_redirects_that_are_refused(location: str) -> None:
    try:
        target = parse_url(location, parse_url("https://example.org/a/x"))
    except BadUrl:
        return
    assert target.host == "example.org"


HOSTS = ("docs.example.org", "*.example.net", "api.example.com:8443", "b\u00fccher.example", "", "*", "*.", "127.0.0.1")


@pytest.mark.parametrize(
    ("url", "covered"),
    [
        ("https://docs.example.org/x", True),
        ("http://docs.example.org/x", True),
        ("https://DOCS.example.org./", True),
        ("https://docs.example.org:22/", False),
        ("https://docs.example.org.evil.test/", False),
        ("https://evildocs.example.org/", False),
        ("https://sub.docs.example.org/", False),
        ("https://evil.test/docs.example.org", False),
        ("https://a.example.net/", True),
        ("https://a.b.example.net/", True),
        ("https://example.net/", False),
        ("https://evilexample.net/", False),
        ("https://evil.test/a.example.net", False),
        ("https://api.example.com:8443/", True),
        ("https://api.example.com/", False),
        ("https://xn--bcher-kva.example/", True),
    ],
)
def test_allowed_hosts(url: str, covered: bool) -> None:
    assert covers(HOSTS, parse_url(url)) is covered


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://example.org/", "https://example.org/", True),
        ("https://example.org/", "http://example.org/", False),
        ("https://example.org/", "https://www.example.org/", True),
        ("https://www.example.org/", "https://example.org/x", True),
        ("https://example.org/", "https://evil.test/", False),
        ("https://example.org/", "https://sub.example.org/", False),
        ("https://example.org/", "https://example.org:8443/", False),
    ],
)
def test_what_a_redirect_may_change(one: str, other: str, same: bool) -> None:
    assert same_site(parse_url(one), parse_url(other)) is same


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:82a::200e"]
)
def test_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address", ["", "x", "1.1.1", "01.1.1.1", "1.1.1.1%1", "2606:4700::1%eth0", "192.88.99.1", "::", "4000::1"]
)
def test_not_public(address: str) -> None:
    assert not is_public(address)
