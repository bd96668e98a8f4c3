"""Keeping secrets out of what users and files get to see.

A secret is the userinfo of a URL, the value of a key that speaks of one, or an environment variable
named ``SQB_SECRET_*`` (or ``DBT_ENV_SECRET_*``, as dbt calls its own).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sqb.project.config import Config

MASK = "***"
SECRET_VARIABLE = "SQB_SECRET_"
_SECRET_VARIABLES = (SECRET_VARIABLE, "DBT_ENV_SECRET_")

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
_ABOUT_KEYS = re.compile(r"key(?!s?$)(?!.*(?:password|token|secret|credential))", re.IGNORECASE)
#: Values of settings whose names only sound like secrets.
_ORDINARY = frozenset({"true", "false", "none", "null", "auto", "default"})
#: Parameters of a Spark Connect address that are no secret.
_PLAIN_PARAMETERS = frozenset({"use_ssl", "user_id", "user_agent", "session_id"})
#: Shorter values can't be told from ordinary text; behind their key they are masked all the same.
_SHORTEST = 4


def is_secret_key(key: str) -> bool:
    """Whether the value of a key must not be shown.

    >>> is_secret_key("s3.secret-access-key"), is_secret_key("unique_key")
    (True, False)
    """
    return _SECRET_KEY.search(key) is not None and _DATA_KEY.search(key) is None


def masker(
    config: Config | None,
    *,
    environ: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Callable[[str], str]:
    """A function that replaces every known secret in a text by ``***``.

    Known are the secrets of the config, of other ``settings`` and of the environment, and the
    userinfo of any URL. Whatever sqb prints or writes down goes through it.
    """
    variables = os.environ if environ is None else environ
    found = {value for key, value in variables.items() if key.startswith(_SECRET_VARIABLES)}
    found.update(_within(settings or {}))
    if config is not None:
        found.update(_secrets(config))
    known = {form for value in found if len(value) >= _SHORTEST for form in _forms(value)}
    longest_first = sorted(known, key=lambda value: (-len(value), value))
    pattern = re.compile("|".join(map(re.escape, longest_first))) if known else None

    def apply(text: str) -> str:
        if pattern is not None:
            text = pattern.sub(MASK, text)
        return _USERINFO.sub(MASK, text) if "://" in text else text

    return apply


def mask(text: str, config: Config | None, *, environ: Mapping[str, str] | None = None) -> str:
    """``text`` without known secrets, and without what looks like one behind its key.

    For the words of others: an error of a driver may hold a secret that sqb was never told.
    """
    return _ASSIGNED.sub(rf"\1{MASK}", masker(config, environ=environ)(text))


def masked(value: Any, apply: Callable[[str], str]) -> Any:
    """A plain value (of JSON) with every text in it masked; keys stay."""
    if isinstance(value, str):
        return apply(value)
    if isinstance(value, Mapping):
        return {key: masked(item, apply) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, apply) for item in value]
    return value


def _forms(value: str) -> Iterator[str]:
    """A secret as it may appear: as it is, decoded from a URL, escaped in JSON."""
    yield value
    if "%" in value:
        from urllib.parse import unquote

        yield unquote(value)
    escaped = json.dumps(value)[1:-1]
    if escaped != value:
        yield escaped


def _secrets(config: Config) -> Iterator[str]:
    yield from _within(config.catalog.properties)
    yield from _within(config.spark.conf)
    yield from _within(config.target.state)
    # variables speak of data: `key_column = "id"` is no secret, `api_key` is
    named = {k: v for k, v in config.vars.items() if is_secret_key(k) and not _ABOUT_KEYS.search(k)}
    yield from _within(named)
    yield from _within(config.dbt)
    for address in (config.catalog.uri, config.spark.remote or ""):
        yield from _userinfo(address)
    yield from _parameters(config.spark.remote or "")


def _parameters(remote: str) -> Iterator[str]:
    """The values behind ``;`` of a Spark Connect address: tokens and headers of whatever name."""
    for pair in remote.split(";")[1:]:
        name, _, value = pair.partition("=")
        if value and name not in _PLAIN_PARAMETERS:
            yield value


def _within(values: Mapping[str, object]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _within(value)
        elif isinstance(value, bool) or not isinstance(value, str | int):
            continue
        elif is_secret_key(key) and str(value).lower() not in _ORDINARY:
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
