"""A server is looked for where its process listens: on this network, or in its container."""

from pathlib import Path

import pytest

from agent.collectors.engine_address import Networks, local_addresses

TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.244.1.0/24 2 0 2
        |-- 10.244.1.0
           /24 link UNICAST
        |-- {address}
           /32 host LOCAL
        |-- 10.244.1.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
Local:
  +-- 0.0.0.0/0 3 0 5
        |-- {address}
           /32 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
"""
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LOOPBACK_V6 = "0" * 24 + "01000000"
MAPPED_10_0_0_5 = "0000000000000000FFFF00000500000A"


def listen(address: str, port: int, state: str = "0A") -> str:
    remote = "0" * len(address)
    return f"   0: {address}:{port:04X} {remote}:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 1135 1 0000\n"


def process(
    root: Path,
    pid: str,
    *,
    net: str | None,
    tcp: str = "",
    tcp6: str = "",
    address: str = "10.244.1.7",
) -> None:
    (root / pid / "net").mkdir(parents=True)
    (root / pid / "ns").mkdir()
    if net is not None:
        (root / pid / "ns" / "net").symlink_to(net)
    (root / pid / "net" / "tcp").write_text(HEADER + tcp)
    (root / pid / "net" / "tcp6").write_text(HEADER + tcp6)
    (root / pid / "net" / "fib_trie").write_text(TRIE.format(address=address))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path, "self", net="net:[1]", address="192.0.2.2")
    return tmp_path


def test_own_addresses_are_found_once_and_without_loopback() -> None:
    assert local_addresses(TRIE.format(address="10.244.1.7")) == ("10.244.1.7",)
    assert local_addresses("") == ()


@pytest.mark.parametrize(
    ("tcp", "tcp6", "told", "host"),
    [
        (listen("00000000", 8000), "", None, "127.0.0.1"),
        ("", listen("0" * 32, 8000), None, "127.0.0.1"),
        (listen("0100007F", 8000), "", "localhost", "localhost"),
        ("", listen(LOOPBACK_V6, 8000), None, "::1"),
        (listen("0500000A", 8000), "", None, "10.0.0.5"),
        ("", listen(MAPPED_10_0_0_5, 8000), "10.0.0.5", "10.0.0.5"),
        (listen("0500000A", 8000) + listen("0100007F", 8000), "", "10.0.0.5", "10.0.0.5"),
    ],
)
def test_a_server_on_this_network(proc: Path, tcp: str, tcp6: str, told: str | None, host: str) -> None:
    process(proc, "100", net="net:[1]", tcp=tcp, tcp6=tcp6)
    networks = Networks(proc)
    assert networks.namespace(100) is None
    assert networks.reach(100, 8000, told).host == host


@pytest.mark.parametrize(
    ("tcp", "told", "host"),
    [
        (listen("00000000", 8000), None, "10.244.1.7"),
        (listen("0701F40A", 8000), None, "10.244.1.7"),
        (listen("0701F40A", 8000), "10.244.1.7", "10.244.1.7"),
    ],
)
def test_a_server_in_a_container(proc: Path, tcp: str, told: str | None, host: str) -> None:
    process(proc, "100", net="net:[2]", tcp=tcp)
    networks = Networks(proc)
    assert networks.namespace(100) == "net:[2]"
    assert networks.reach(100, 8000, told).host == host


def test_a_port_that_is_open_only_inside_its_container_says_what_to_do(proc: Path) -> None:
    process(proc, "100", net="net:[2]", tcp=listen("0100007F", 8000))
    found = Networks(proc).reach(100, 8000)
    assert found.host is None
    assert "0.0.0.0" in found.why


def test_nothing_listens_yet(proc: Path) -> None:
    established = listen("00000000", 8000, "01")
    process(proc, "100", net="net:[1]", tcp=established + listen("00000000", 8001))
    found = Networks(proc).reach(100, 8000)
    assert found.host is None
    assert "8000" in found.why


def test_addresses_tell_networks_apart_where_the_link_may_not_be_followed(proc: Path) -> None:
    process(proc, "100", net=None, address="192.0.2.2")
    process(proc, "200", net=None, address="10.244.1.7")
    networks = Networks(proc)
    assert networks.namespace(100) is None
    assert networks.namespace(200) == "10.244.1.7"


def test_a_process_that_is_gone_is_asked_where_its_flags_said(proc: Path) -> None:
    networks = Networks(proc)
    assert networks.namespace(300) is None
    assert networks.reach(300, 8000).host == "127.0.0.1"
    assert networks.reach(300, 8000, "10.0.0.5").host == "10.0.0.5"


def test_an_address_of_ipv6_alone(proc: Path) -> None:
    process(proc, "100", net="net:[2]", tcp6=listen("0" * 32, 8000))
    (proc / "100/net/fib_trie").write_text("")
    (proc / "100/net/if_inet6").write_text(
        "fd000000000000000000000000000002 04 40 00 82     eth0\nfe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"
    )
    assert Networks(proc).reach(100, 8000).host == "fd00::2"
