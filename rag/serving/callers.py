"""Where a request comes from, as far as that can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import Request

Network = IPv4Network | IPv6Network
_HOME_BITS = 64
"""One household or machine has as many IPv6 addresses as it likes, all in one network of this size."""


def caller_of(request: Request, trusted: Sequence[Network]) -> str:
    """
    The address of a caller; of IPv6 the network.

    ``X-Forwarded-For`` counts only as far as trusted proxies wrote it: it is read from the right, where the nearest
    proxy put whom it heard from, up to the first address that is none of theirs.
    """
    peer = _address(request.client.host) if request.client else None
    if peer is None:
        return ""
    said = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    while _is_one(peer, trusted) and said:
        before = _address(said.pop().strip())
        if before is None:
            break
        peer = before
    return str(peer if peer.version == 4 else ip_network((peer, _HOME_BITS), strict=False))


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address as proxies write them, with or without a port; None for anything else."""
    host = text.rpartition(":")[0] if text.count(":") == 1 else text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _is_one(address: IPv4Address | IPv6Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)
