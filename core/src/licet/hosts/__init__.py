"""Network targets: one spelling of hosts, ports and addresses, and patterns over them."""

from licet.hosts.addresses import Address, innermost, is_public
from licet.hosts.endpoints import (
    EVERYTHING,
    EVERYWHERE,
    INSIDE,
    Endpoint,
    endpoint,
    metadata_in,
    read_back,
    with_meets,
)
from licet.hosts.extents import ANY, PRIVATE, Extent, depths_of, extent
from licet.hosts.names import canonical_host
from licet.hosts.urls import from_url

__all__ = [
    "ANY",
    "EVERYTHING",
    "EVERYWHERE",
    "INSIDE",
    "PRIVATE",
    "Address",
    "Endpoint",
    "Extent",
    "canonical_host",
    "depths_of",
    "endpoint",
    "extent",
    "from_url",
    "innermost",
    "is_public",
    "metadata_in",
    "read_back",
    "with_meets",
]
