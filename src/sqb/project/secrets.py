"""Keeping secrets out of what users and files get to see.

A secret is the userinfo of a URL, the value of a key that speaks of one, or an environment variable
named ``SQB_SECRET_*``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from sqb.project.config import Config

MASK = "***"
SECRET_VARIABLE = "SQB_SECRET_"

_SECRET_KEY = re.compile(r"password|token|secret|credential|key", re.IGNORECASE)
#: Keys of data, not of locks: masking `unique_key = "id"` would blank out every `id`.
_DATA_KEY = re.compile(
    r"(?:^|[._-])(?:unique|group|primary|foreign|natural|business|surrogate|partition|sort|order"
    r"|cluster|join|merge|hash)[._-]?keys?$",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^\s/@'\"]+(?:@[^\s/@'\"]+)*(?=@)")
_ASSIGNED = re.compile(
    r"((?:[\w.-]*(?:password|token|secret|credential)[\w.-]*"
    r"|[\w.-]*(?:access|api|private|account|encryption)[._-]?key[\w.-]*)"
    r"[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&)}\]]+)",
    re.IGNORECASE,
)
#: Shorter values can't be told from ordinary text; behind their key they are masked all the same.
_SHORTEST = 4


def is_secret_key(key: str) -> bool:
    """Whether the value of a key must not be shown.

    >>> is_secret_key("s3.secret-access-key"), is_secret_key("unique_key")
    (True, False)
    """
    return _SECRET_KEY.search(key) is not None and _DATA_KEY.search(key) is None


def mask(text: str, config: Config | None, *, environ: Mapping[str, str] | None = None) -> str:
    """``text`` with every secret of the config and the environment replaced by ``***``."""
    variables = os.environ if environ is None else environ
    found = {value for key, value in variables.items() if key.startswith(SECRET_VARIABLE)}
    if config is not None:
        found.update(_secrets(config))
    for value in sorted(found, key=lambda value: (-len(value), value)):
        if len(value) >= _SHORTEST:
            text = text.replace(value, MASK)
    return _ASSIGNED.sub(rf"\1{MASK}", _USERINFO.sub(MASK, text))


def _secrets(config: Config) -> Iterator[str]:
    yield from _within(config.catalog.properties)
    yield from _within(config.spark.conf)
    yield from _within(config.target.state)
    yield from _within(config.vars)
    yield from _within(config.dbt)
    for address in (config.catalog.uri, config.spark.remote or ""):
        yield from _userinfo(address)


def _within(values: Mapping[str, object]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _within(value)
        elif isinstance(value, bool) or not isinstance(value, str | int):
            continue
        elif is_secret_key(key):
            yield str(value)
        else:
            yield from _userinfo(str(value))


def _userinfo(address: str) -> Iterator[str]:
    from urllib.parse import unquote

    for found in _USERINFO.finditer(address):
        yield found[0]
        password = found[0].partition(":")[2]
        yield password
        # as drivers and servers tell it
        yield unquote(password)
