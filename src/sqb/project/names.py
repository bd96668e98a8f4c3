"""Which names models, seeds and sources may have, and the name that a file stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqb.errors import SqbError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: State tables start with the first, reference functions such as ``__ref`` with the second.
RESERVED_PREFIXES = ("_sqlbuild", "__")


def is_identifier(text: str) -> bool:
    """Whether ``text`` is a plain SQL identifier.

    >>> is_identifier("stg_orders"), is_identifier("2020_orders")
    (True, False)
    """
    return _IDENTIFIER.fullmatch(text) is not None


def check_name(name: str, kind: str, *, file: str | None = None, line: int | None = None) -> str:
    """Return ``name`` if a ``kind`` (model, seed, source) may have it, else raise P016."""
    if not is_identifier(name):
        raise SqbError(
            "P016",
            f"`{name}` can't be the name of a {kind}",
            file=file,
            line=line,
            help="use the letters a to z, digits and underscores, and no digit at the start",
        )
    if name.lower().startswith(RESERVED_PREFIXES):
        raise SqbError(
            "P016",
            f"`{name}` can't be the name of a {kind}: it starts with a reserved prefix",
            file=file,
            line=line,
            help="names that start with `_sqlbuild` or `__` belong to sqb",
        )
    return name


def stem(path: str) -> str:
    """The file stem of a path with "/".

    >>> stem("models/staging/stg_orders.sql")
    'stg_orders'
    """
    return path.rpartition("/")[2].rpartition(".")[0]


def name_files(paths: Iterable[str], kind: str) -> dict[str, str]:
    """Name -> path of each file; a bad name is P016, two files for one name P007.

    Names are compared without case, as Spark does.
    """
    named: dict[str, str] = {}
    folded: dict[str, str] = {}
    for path in paths:
        name = check_name(stem(path), kind, file=path)
        other = folded.setdefault(name.lower(), path)
        if other != path:
            raise SqbError(
                "P007",
                f"two files stand for the {kind} `{name}`: {other} and {path}",
                file=path,
                help=f"rename one: the file's stem is the {kind}'s name, in whichever folder",
            )
        named[name] = path
    return named
