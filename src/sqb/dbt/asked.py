"""What a text with Jinja asks its surroundings for: variables, environment, target, macros.

Found by reading the text, not by running it: a branch that dbt does not take while it parses, such
as ``{% if is_incremental() %}``, asks all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

#: Stands for every variable: a text asks for one whose name it computes.
ANY = "*"

_JINJA = re.compile(r"\{[{%]")
_CALL = re.compile(r"\b(env_var|var)\s*(?:\(\s*(?:(['\"])([^'\"]*)\2\s*[,)])?|\.\s*has_var)")
_HAS_VAR = re.compile(r"\bvar\s*\.\s*has_var\s*\(\s*(?:(['\"])([^'\"]*)\1\s*\))?")
_TARGET = re.compile(r"(?<![\w.])target\b(?:\s*\.\s*(\w+)|\s*\[\s*['\"](\w+)['\"]\s*\])?")
_NAMED_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*(?:\(|\.\s*([A-Za-z_]\w*)\s*\()")
_TARGET_METHODS = frozenset({"get", "items", "keys", "values"})
#: Configuration that dbt does nothing with, but that code may read.
_NOTES = re.compile(r"\b(meta|tags)\b")


class Asked(msgspec.Struct, frozen=True):
    """Names that a text asks for. ``calls`` are all names that it calls, macros or not."""

    vars: frozenset[str] = frozenset()
    env: frozenset[str] = frozenset()
    target: frozenset[str] = frozenset()
    notes: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()


NOTHING = Asked()


def asked_by(text: str) -> Asked:
    """What a model, hook or macro asks for.

    >>> found = asked_by("{{ var('start') }}, {{ env_var(name) }}, {{ cents(target.schema) }}")
    >>> sorted(found.vars), sorted(found.env), sorted(found.target), "cents" in found.calls
    (['start'], ['*'], ['schema'], True)
    """
    if not _JINJA.search(text):
        return NOTHING
    variables: set[str] = set()
    env: set[str] = set()
    for found in _CALL.finditer(text):
        if "has_var" in found[0]:
            continue
        # a bare name without a call is an alias or a column
        if not found[0].endswith(("(", ",", ")")):
            continue
        (env if found[1] == "env_var" else variables).add(found[3] or ANY)
    for found in _HAS_VAR.finditer(text):
        variables.add(found[2] or ANY)
    target = set()
    for found in _TARGET.finditer(text):
        name = found[1] or found[2]
        target.add(ANY if name is None or name in _TARGET_METHODS else name)
    calls: set[str] = set()
    for found in _NAMED_CALL.finditer(text):
        calls.update(name for name in found.groups() if name)
    return Asked(
        vars=frozenset(variables),
        env=frozenset(env),
        target=frozenset(target),
        notes=frozenset(_NOTES.findall(text)),
        calls=frozenset(calls),
    )


def united(found: Sequence[Asked]) -> Asked:
    """All that several texts ask for."""
    return Asked(*(frozenset().union(*(getattr(each, name) for each in found)) for name in _FIELDS))


_FIELDS = Asked.__struct_fields__
