"""Warehouses in object stores: which addresses there are, and settings that all clients read alike.

Pure text: what talks to a store is in the lake and in Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: The schemes of one and the same kind of store; the first is how sqb writes it.
S3_SCHEMES = ("s3", "s3a", "s3n")

#: What a warehouse may be, for messages.
SUPPORTED = "a folder, or s3://bucket/path"

_ADDRESS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(?:/(.*))?$", re.DOTALL)
_DEFAULT_REGION = "us-east-1"


def split_store(location: str) -> tuple[str, str] | None:
    """Bucket and key of a location in an object store; None if it is not in one.

    A key is taken as it stands, for a store tells ``a//b`` from ``a/b``.

    >>> split_store("s3a://lake/dev/t"), split_store("s3://lake"), split_store("/lake/dev")
    (('lake', 'dev/t'), ('lake', ''), None)
    """
    found = _ADDRESS.match(location)
    if found is None or found[1].lower() not in S3_SCHEMES or not found[2]:
        return None
    return found[2], found[3] or ""


def is_store(location: str) -> bool:
    """Whether a location is in an object store.

    >>> is_store("s3://lake/t"), is_store("file:/lake/t"), is_store("gs://lake/t")
    (True, False, False)
    """
    return split_store(location) is not None


def completed(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of a store with what Spark's client and pyiceberg's call by different names.

    >>> completed({"s3.region": "eu-west-1"})["client.region"]
    'eu-west-1'
    """
    out = dict(properties)
    endpoint = "s3.endpoint" in out
    region = out.get("s3.region") or out.get("client.region")
    if region is None and endpoint:
        # Servers of one's own have no regions, and the clients insist on one.
        region = _DEFAULT_REGION
    if region is not None:
        out = {"s3.region": region, "client.region": region, **out}
    if endpoint:
        # Few such servers have a host name for each bucket; pyarrow's default is the same.
        out.setdefault("s3.path-style-access", "true")
    if "s3.path-style-access" in out:
        virtual = "true" if out["s3.path-style-access"].lower() == "false" else "false"
        out.setdefault("s3.force-virtual-addressing", virtual)
    return out
