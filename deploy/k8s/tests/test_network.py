"""Which pods may reach which, worked out from the policies as a cluster does: without a policy it is refused."""

import ipaddress
from dataclasses import dataclass, field

import pytest

from .manifests import Bundle, Manifest, selects

SERVICES = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
EVERYBODY = (
    *SERVICES,
    *(f"{name}-migrate" for name in (*SERVICES, "console")),
    "console",
    "operator",
    "companies",
    "nats",
    "nats-streams",
    "valkey",
)
DATABASE = "10.20.0.10"
PUBLIC = ("93.184.215.14", "1.1.1.1", "8.8.8.8", "2606:4700::1111", "2a00:1450:4001::5e")
NOT_PUBLIC = (
    "0.0.0.1 10.0.0.1 10.20.0.10 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 172.31.255.254 192.0.0.1 192.0.2.1 "
    "192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 ::1 fd00::1 fe80::1 "
    "fec0::1 ff02::1 64:ff9b::a00:1 64:ff9b:1::1 ::ffff:10.0.0.1 100::1 2001:db8::1 2001::1 2002:a00:1::1 3fff::1 "
    "5f00::1"
).split()


@dataclass(frozen=True)
class Peer:
    """One end of a connection: a pod of Makeready, a pod of another namespace, or an address outside."""

    labels: dict[str, str] = field(default_factory=dict)
    namespace: str = ""
    address: str = ""


def peer_of(bundle: Bundle, name: str) -> Peer:
    (workload,) = [workload for workload in bundle.workloads() if workload.name == name]
    return Peer(labels=workload.labels)


def matches(rule: Manifest, peer: Peer) -> bool:
    if "ipBlock" in rule:
        if not peer.address:
            return False  # ipBlock does not select pods: a plug-in may or may not match their addresses
        address = ipaddress.ip_address(peer.address)
        inside = [
            address in ipaddress.ip_network(block)
            for block in [rule["ipBlock"]["cidr"], *rule["ipBlock"].get("except", [])]
        ]
        return inside[0] and not any(inside[1:])
    if "namespaceSelector" in rule:
        return bool(peer.namespace) and selects(
            rule["namespaceSelector"], {"kubernetes.io/metadata.name": peer.namespace}
        )
    return not peer.namespace and not peer.address and selects(rule["podSelector"], peer.labels)


def admits(bundle: Bundle, direction: str, pod: Peer, other: Peer, port: int, protocol: str = "TCP") -> bool:
    """Whether the policies that select `pod` allow traffic to (Egress) or from (Ingress) `other`."""
    word, peers = ("egress", "to") if direction == "Egress" else ("ingress", "from")
    selecting = [
        policy["spec"]
        for policy in bundle.of("NetworkPolicy")
        if direction in policy["spec"]["policyTypes"] and selects(policy["spec"]["podSelector"], pod.labels)
    ]
    assert selecting, f"nothing confines {pod}"
    return any(
        any(matches(peer, other) for peer in rule[peers])
        and any((admitted["port"], admitted["protocol"]) == (port, protocol) for admitted in rule["ports"])
        for policy in selecting
        for rule in policy.get(word, [])
    )


def reaches(bundle: Bundle, sender: Peer, receiver: Peer, port: int) -> bool:
    """Whether one pod of Makeready may call another."""
    sent = admits(bundle, "Egress", sender, receiver, port)
    return sent and admits(bundle, "Ingress", receiver, sender, port)


def test_everything_is_refused_unless_a_policy_allows_it(bundle: Bundle) -> None:
    assert {workload.name for workload in bundle.workloads()} == set(EVERYBODY)
    for workload in bundle.workloads():
        pod = Peer(labels=workload.labels)
        for direction in ("Egress", "Ingress"):
            assert not admits(bundle, direction, pod, Peer(namespace="default"), 8000)
            assert not admits(bundle, direction, pod, Peer(address="1.1.1.1"), 80)


def test_every_rule_names_peers_and_ports(bundle: Bundle) -> None:
    """A rule without peers or ports would allow all of them."""
    for policy in bundle.of("NetworkPolicy"):
        for word, peers in (("egress", "to"), ("ingress", "from")):
            for rule in policy["spec"].get(word, []):
                assert rule[peers]
                assert rule["ports"]
                assert all(peer and all(peer.values()) for peer in rule[peers])


def test_exceptions_lie_within_their_block(bundle: Bundle) -> None:
    for policy in bundle.of("NetworkPolicy"):
        for rule in policy["spec"].get("egress", []):
            for block in [peer["ipBlock"] for peer in rule["to"] if "ipBlock" in peer]:
                whole = ipaddress.ip_network(block["cidr"])
                for part in block.get("except", []):
                    inner = ipaddress.ip_network(part)
                    assert inner.version == whole.version
                    assert inner.subnet_of(whole)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EVERYBODY)
def test_only_deliveries_go_out_to_the_world(bundle: Bundle, name: str) -> None:
    pod = peer_of(bundle, name)
    for address in PUBLIC:
        for port in (443, 80, 22, 5432, 9090):
            allowed = admits(bundle, "Egress", pod, Peer(address=address), port)
            assert allowed == (name == "svc-webhooks" and port == 443), (address, port)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_deliveries_reach_no_address_that_is_not_public(bundle: Bundle, address: str) -> None:
    pod = peer_of(bundle, "svc-webhooks")
    assert not admits(bundle, "Egress", pod, Peer(address=address), 443)


@pytest.mark.parametrize("name", EVERYBODY)
def test_services_and_their_migrations_alone_reach_databases(as_rendered: Bundle, name: str) -> None:
    pod = peer_of(as_rendered, name)
    assert admits(as_rendered, "Egress", pod, Peer(address=DATABASE), 5432) == name.startswith((*SERVICES, "console"))
    assert not admits(as_rendered, "Egress", pod, Peer(address="10.20.0.11"), 5432)
    assert not admits(as_rendered, "Egress", pod, Peer(address=DATABASE), 443)


@pytest.mark.parametrize("name", EVERYBODY)
def test_databases_are_on_private_networks_unless_an_overlay_says_otherwise(base: Bundle, name: str) -> None:
    if name == "valkey":
        return
    pod = peer_of(base, name)
    assert admits(base, "Egress", pod, Peer(address=DATABASE), 5432) == name.startswith((*SERVICES, "console"))
    assert not admits(base, "Egress", pod, Peer(address="1.1.1.1"), 5432)


def test_services_and_the_operator_call_services(bundle: Bundle) -> None:
    for sender in EVERYBODY:
        for receiver in EVERYBODY:
            allowed = sender in (*SERVICES, "console", "operator", "companies") and receiver in SERVICES
            assert reaches(bundle, peer_of(bundle, sender), peer_of(bundle, receiver), 9090) == allowed


def test_services_the_console_and_the_maker_of_streams_alone_reach_nats(bundle: Bundle) -> None:
    for sender in EVERYBODY:
        allowed = sender in (*SERVICES, "console", "nats-streams")
        assert reaches(bundle, peer_of(bundle, sender), peer_of(bundle, "nats"), 4222) == allowed
        assert not reaches(bundle, peer_of(bundle, sender), peer_of(bundle, "nats"), 8222)


def test_the_gateway_alone_reaches_valkey(bundle: Bundle) -> None:
    for sender in EVERYBODY:
        assert reaches(bundle, peer_of(bundle, sender), peer_of(bundle, "valkey"), 6379) == (sender == "gateway")


def test_the_ingress_reaches_the_gateway_and_the_console_and_nothing_else(bundle: Bundle) -> None:
    for name in EVERYBODY:
        for port in (8080, 8081, 9090, 9091, 4222, 6379):
            allowed = admits(bundle, "Ingress", peer_of(bundle, name), Peer(namespace="ingress"), port)
            assert allowed == ((name, port) in (("gateway", 8080), ("console", 8081))), (name, port)
    for sender in EVERYBODY:
        assert not reaches(bundle, peer_of(bundle, sender), peer_of(bundle, "gateway"), 8080)
        assert not reaches(bundle, peer_of(bundle, sender), peer_of(bundle, "console"), 8081)


def test_metrics_are_for_monitoring(bundle: Bundle) -> None:
    for name in EVERYBODY:
        pod = peer_of(bundle, name)
        assert admits(bundle, "Ingress", pod, Peer(namespace="monitoring"), 9091) == (name in (*SERVICES, "console"))
        assert not admits(bundle, "Ingress", pod, Peer(namespace="default"), 9091)


def test_every_pod_can_resolve_names(bundle: Bundle) -> None:
    for name in EVERYBODY:
        for protocol in ("TCP", "UDP"):
            assert admits(bundle, "Egress", peer_of(bundle, name), Peer(namespace="kube-system"), 53, protocol)
