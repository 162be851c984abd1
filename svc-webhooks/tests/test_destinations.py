"""Which URLs and addresses are refused without a look at the network."""

from ipaddress import ip_address

import pytest

from svc_webhooks.destinations import DestinationRefused, is_public, parse

REFUSED = [
    # schemes
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "javascript:alert(1)",
    "data:text/plain,x",
    "//example.com/",
    "example.com",
    "",
    "https:",
    "https:/example.com/",
    "https:example.com",
    "https;//example.com/",
    "httpss://example.com/",
    "https://",
    "https:///path",
    "https://?x=1",
    "https://#fragment",
    # ports
    "https://example.com:80/",
    "https://example.com:8443/",
    "https://example.com:0443/",
    "https://example.com:4430/",
    "https://example.com:/",
    "https://example.com:443:443/",
    "https://example.com:+443/",
    "https://example.com:443x/",
    "https://[2606:4700:4700::1111]:8443/",
    "https://[2606:4700:4700::1111]443/",
    "https://:443/",
    # userinfo
    "https://user@example.com/",
    "https://user:password@example.com/",
    "https://@example.com/",
    "https://example.com@127.0.0.1/",
    "https://example.com:443@127.0.0.1/",
    "https://127.0.0.1\\@example.com/",
    # spaces, controls, backslashes
    " https://example.com/",
    "https://example.com/ ",
    "https://exam ple.com/",
    "https://example.com/\r\nX-Header: 1",
    "https://example.com\t/",
    "https://example.com\x00.evil.com/",
    "https:\\\\example.com\\",
    "https://example.com\\.evil.com/",
    "https://example.com/\x7f",
    "https://exam\u200bple.com/",
    "https://\u202eelpmaxe.com/",
    "https://example.com/\ud800",
    # names that are never public
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://localhost.localdomain/",
    "https://api.localhost/",
    "https://foo.local/",
    "https://metadata.google.internal/",
    "https://metadata/",
    "https://intranet/",
    "https://kubernetes.default.svc.cluster.local/",
    "https://receiver.test/",
    "https://nobody.invalid/",
    "https://host.example/",
    "https://router.lan/",
    "https://router.home.arpa/",
    "https://1.0.0.127.in-addr.arpa/",
    "https://facebookcorewwwi.onion/",
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "https://ｌｏｃａｌｈｏｓｔ/",
    "https://localhost。/",
    "https://foo。local/",
    # trailing dots, empty labels, malformed names
    "https://example.com./",
    "https://example.com../",
    "https://.example.com/",
    "https://example..com/",
    "https://127.0.0.1./",
    "https://-example.com/",
    "https://example-.com/",
    "https://exa%6dple.com/",
    "https://%31%32%37.0.0.1/",
    "https://example.com%2f@127.0.0.1/",
    "https://*.example.com/",
    "https://exa$mple.com/",
    "https://exa,mple.com/",
    "https://(example.com)/",
    f"https://{'a' * 64}.com/",
    f"https://{'a.' * 126}com/",
    f"https://{'ö' * 300}.com/",
    "https://xn--.öö/",
    "https://a..ö.com/",
    "https://ö_ö.com/",
    "https://\u0308ö.com/",
    # numbers that some resolvers read as addresses
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0X7F000001/",
    "https://017700000001/",
    "https://0177.0.0.1/",
    "https://0x7f.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://127.0.0.01/",
    "https://127.0.0.1.1/",
    "https://127.0.0.256/",
    "https://0/",
    "https://0x/",
    "https://0x.0x.0x.0x/",
    "https://1.1.1.0x1/",
    "https://010.8.8.8/",
    "https://4294967297/",
    "https://999999999999/",
    "https://１２７.0.0.1./",
    "https://127。1/",
    "https://8.8.8.8./",
    # malformed brackets
    "https://[::1/",
    "https://::1/",
    "https://[::1]]/",
    "https://[]/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[2606:4700:4700::1111/",
    "https://[127.0.0.1]/",
    "https://[v1.fe80]/",
    "https://[2606:4700:4700::1111::]/",
    "https://2606:4700:4700::1111/",
    # too long
    "https://example.com/" + "a" * 2048,
]

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::127.0.0.1",  # compatible
    "::10.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",  # mapped
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:7f00:1",
    "::ffff:0:127.0.0.1",  # translated
    "64:ff9b::127.0.0.1",  # NAT64
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::8.8.8.8",  # NAT64 of a local network
    "100::1",  # discard
    "100:0:0:1::1",
    "2001::1",  # Teredo
    "2001:0:7f00:1::",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",  # benchmarks
    "2001:10::1",  # ORCHID
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",  # 6to4
    "2002:a00:1::1",
    "2002:c0a8:101::1",
    "2002:808:808::1",
    "2606:4700::5efe:10.0.0.1",  # ISATAP
    "2606:4700::200:5efe:127.0.0.1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "fe80::1",
    "fe80::a9fe:a9fe",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2001:4860:4860::8888",
    "2003::1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]


@pytest.mark.parametrize("url", REFUSED, ids=ascii)
def test_a_hostile_destination_is_refused(url: str) -> None:
    with pytest.raises(DestinationRefused) as refused:
        parse(url)
    assert refused.value.reason.startswith(("must ", "has "))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_a_special_address_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_an_ordinary_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))


def test_an_address_of_one_interface_is_not_public() -> None:
    assert not is_public(ip_address("2606:4700:4700::1111%eth0"))


@pytest.mark.parametrize(
    ("url", "host", "target"),
    [
        ("https://example.com", "example.com", "/"),
        ("HTTPS://EXAMPLE.com:443/Hook", "example.com", "/Hook"),
        ("https://example.com?a=b#part", "example.com", "/?a=b"),
        ("https://example.com/a/../b;c?d=%2F&é=ü", "example.com", "/a/../b;c?d=%2F&%C3%A9=%C3%BC"),
        ("https://bücher.de/", "xn--bcher-kva.de", "/"),
        ("https://my_app.example.com/@x", "my_app.example.com", "/@x"),
        ("https://8.8.8.8/", "8.8.8.8", "/"),
        ("https://[2606:4700:4700:0::1111]:443/", "2606:4700:4700::1111", "/"),
    ],
)
def test_a_sound_destination_is_read(url: str, host: str, target: str) -> None:
    found = parse(url)
    assert (found.host, found.target) == (host, target)


def test_an_overridden_host_keeps_all_other_rules() -> None:
    assert parse("https://receiver.test/x", overridden={"receiver.test"}).host == "receiver.test"
    for url in ("http://receiver.test/", "https://receiver.test:9443/", "https://a@receiver.test/"):
        with pytest.raises(DestinationRefused):
            parse(url, overridden={"receiver.test"})


def test_a_refusal_never_repeats_the_destination() -> None:
    for url in REFUSED:
        with pytest.raises(DestinationRefused) as refused:
            parse(url)
        assert len(url) < 9 or url not in refused.value.reason


def test_a_refusal_says_what_would_be_taken() -> None:
    for url in REFUSED:
        with pytest.raises(DestinationRefused) as refused:
            parse(url)
        assert refused.value.reason.startswith("must ")
