"""``${ENV:NAME}`` and ``${ENV:NAME:-default}`` in the string values of TOML and YAML files."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\{ENV:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class UnsetError(Exception):
    """A value names an environment variable that is not set and gives no default."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def interpolate(text: str, environ: Mapping[str, str]) -> str:
    """``text`` with its environment references replaced; raises :class:`UnsetError`.

    As in a shell's ``:-``, the default also stands in for a variable that is set but empty.

    >>> interpolate("s3://${ENV:BUCKET:-dev}/x", {})
    's3://dev/x'
    """
    if "${ENV:" not in text:
        return text

    def replace(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        value = environ.get(name)
        if default is not None:
            return value or default
        if value is None:
            raise UnsetError(name)
        return value

    return _REFERENCE.sub(replace, text)
