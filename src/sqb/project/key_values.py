"""The forms that header values may have: each check takes a value as written and returns it in
normal form (plain JSON), or raises :class:`WrongError` with what was expected.

Every check accepts its own results, so values from TOML and normal forms pass the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast

from sqb.errors import SqbError, did_you_mean
from sqb.project.column_types import TYPE_NAMES, column_type
from sqb.project.durations import duration_seconds
from sqb.project.header import Call, parse_value
from sqb.project.names import RESERVED_PREFIXES, is_identifier

Check = Callable[[object], object]

_COLUMN = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_TABLE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*){0,2}")
_TRANSFORM = re.compile(r"(\w+)\s*\(\s*(?:([0-9]{1,9})\s*,\s*)?([\w.]+)\s*\)")
_SORT = re.compile(
    r"(.+?)(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(FIRST|LAST))?", re.IGNORECASE | re.DOTALL
)
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%")
_TIME_TRANSFORMS = {
    **{f"{unit}s": f"{unit}s" for unit in ("year", "month", "day", "hour")},
    **{unit: f"{unit}s" for unit in ("year", "month", "day", "hour")},
    "date": "days",
    "date_hour": "hours",
}
#: Table properties that the way sqb publishes and reads changes depends on.
_FIXED_PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
    "write.metadata.delete-after-commit.enabled": "false",
}


class WrongError(Exception):
    """A value has the wrong form; carries what was expected and perhaps a help sentence."""

    def __init__(self, expected: str, help: str | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.help = help


def shown(value: object) -> str:
    """A value as it reads in an error message."""
    if isinstance(value, Call):
        return f"`{value.text()}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return f"`[{', '.join(shown(item).strip('`') for item in value)}]`"
    return f"`{value}`"


def plain(value: object) -> object:
    """A value without :class:`Call` in it, as JSON can hold it."""
    if isinstance(value, Call):
        return value.text()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def choice(*allowed: str) -> Check:
    """One of a few words."""
    expected = f"{', '.join(allowed[:-1])} or {allowed[-1]}"

    def check(value: object) -> object:
        if value not in allowed:
            raise WrongError(expected, did_you_mean(str(value), allowed))
        return value

    return check


def flag(value: object) -> object:
    """True or false."""
    if not isinstance(value, bool):
        raise WrongError("true or false")
    return value


def text(value: object) -> object:
    """Any text."""
    if not isinstance(value, str):
        raise WrongError("a text in quotes")
    return value


def identifier(value: object) -> object:
    """A name that a relation or schema may have."""
    if not isinstance(value, str) or not is_identifier(value):
        raise WrongError("a name of letters, digits and underscores")
    if value.lower().startswith(RESERVED_PREFIXES):
        raise WrongError("a name that does not start with `_sqlbuild` or `__`")
    return value


def materialization(value: object) -> object:
    """A built-in kind or the name of the project's own."""
    if not isinstance(value, str) or not is_identifier(value):
        raise WrongError("a kind such as view or table")
    return value


def column(value: object) -> object:
    """The name of one column."""
    if not isinstance(value, str) or not _COLUMN.fullmatch(value):
        raise WrongError("the name of a column")
    return value


def _listed(value: object, one: Callable[[object], str], expected: str) -> list[str]:
    if isinstance(value, Mapping):
        raise WrongError(expected)
    items = list(value) if isinstance(value, list | tuple) else [value]
    found: list[str] = []
    for item in items:
        normal = one(item)
        if normal.lower() in map(str.lower, found):
            raise WrongError(f"{expected}, each once")
        found.append(normal)
    return found


def _matching(pattern: re.Pattern[str], expected: str, extra: str | None = None) -> Check:
    def one(item: object) -> str:
        if not isinstance(item, str) or not (item == extra or pattern.fullmatch(item)):
            raise WrongError(expected)
        return item

    return lambda value: _listed(value, one, expected)


columns_list = _matching(_COLUMN, "a list of columns such as [a, b]")
columns_or_all = _matching(_COLUMN, "a list of columns such as [a, b], or [*]", "*")
tables_list = _matching(_TABLE, "a list of sources or models such as [raw.orders, stg_a]")
tags = _matching(re.compile(r"[^\s,]+"), "a list of words such as [daily, finance]")


def _transform(source: str) -> str:
    found = _TRANSFORM.fullmatch(source)
    if found is None:
        if not _COLUMN.fullmatch(source):
            raise WrongError("columns or transforms such as [days(ts), bucket(16, id), k]")
        return source
    name, number, argument = found[1].lower(), found[2], found[3]
    if not _COLUMN.fullmatch(argument):
        raise WrongError(f"a column in `{name}(…)`")
    if name == "identity" and number is None:
        return argument
    if name in _TIME_TRANSFORMS and number is None:
        return f"{_TIME_TRANSFORMS[name]}({argument})"
    if name in ("bucket", "truncate"):
        if number is None or int(number) < 1:
            raise WrongError(f"a positive number first, as in {name}(16, {argument})")
        return f"{name}({int(number)}, {argument})"
    known = ("years", "months", "days", "hours", "bucket", "truncate", "identity")
    raise WrongError("one of the transforms " + ", ".join(known), did_you_mean(name, known))


def _source(item: object) -> str:
    if isinstance(item, Call) and not item.named and not item.options:
        return item.text()
    if isinstance(item, str):
        return item
    raise WrongError("columns or transforms such as [days(ts), bucket(16, id), k]")


def partitioning(value: object) -> object:
    """Iceberg partition transforms in normal form, such as ``days(ts)``."""
    return _listed(
        value, lambda item: _transform(_source(item)), "a list such as [days(ts), bucket(16, id)]"
    )


def sorting(value: object) -> object:
    """Sort keys: the bare column for Spark's default order, else direction and nulls in full."""

    def one(item: object) -> str:
        found = _SORT.fullmatch(_source(item).strip())
        if found is None:
            raise WrongError("a list such as [a, b DESC]")
        term = _transform(found[1])
        direction = (found[2] or "ASC").upper()
        nulls = (found[3] or ("FIRST" if direction == "ASC" else "LAST")).upper()
        if (direction, nulls) == ("ASC", "FIRST"):
            return term
        return f"{term} {direction} NULLS {nulls}"

    return _listed(value, one, "a list such as [a, b DESC]")


def properties(value: object) -> object:
    """A map of texts; numbers and flags become texts as Spark writes them."""
    if not isinstance(value, Mapping):
        raise WrongError("a map such as ('write.format.default' 'parquet')")
    found: dict[str, str] = {}
    for key, item in value.items():
        if isinstance(item, bool):
            found[str(key)] = str(item).lower()
        elif isinstance(item, str | int | float):
            found[str(key)] = str(item)
        else:
            raise WrongError(f"a text as the value of `{key}`")
        if str(key).startswith("sqb."):
            raise WrongError("properties that do not start with `sqb.`, which sqb sets itself")
        fixed = _FIXED_PROPERTIES.get(str(key))
        if fixed not in (None, found[str(key)]):
            raise WrongError(f"`{key}` to stay {fixed}, which the tables of sqb need")
    return found


def settings(value: object) -> object:
    """A free map of plain values."""
    if not isinstance(value, Mapping):
        raise WrongError("a map such as (key value)")
    return plain(value)


def column_map(value: object) -> object:
    """A map from name to column, as ``cursor_inputs`` has it."""
    if not isinstance(value, Mapping) or not value:
        raise WrongError("a map such as (raw_orders ordered_at)")
    for item in value.values():
        column(item)
    return dict(value)


def lookback(value: object) -> object:
    """A duration, or a whole number for integer cursors."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and duration_seconds(value):
        return value
    raise WrongError("a duration such as 3d, or a whole number for an integer cursor")


def start_value(value: object) -> object:
    """Where a cursor begins: a date, a timestamp or a number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise WrongError("a date, a timestamp in quotes or a whole number")
    return value


def replay(value: object) -> object:
    """forward, full or bounded-<n>{d,h,m,s}."""
    bounded = isinstance(value, str) and value.startswith("bounded-")
    if value in ("forward", "full") or (bounded and duration_seconds(str(value)[8:])):
        return value
    raise WrongError(
        "forward, full or bounded-<n>{d,h,m,s} such as bounded-14d",
        did_you_mean(str(value), ("forward", "full", "bounded-14d")),
    )


def despite(value: object) -> object:
    """always, or a duration in minutes, hours or days."""
    if value == "always" or (isinstance(value, str) and duration_seconds(value, "mhd")):
        return value
    raise WrongError('"always" or a duration such as 30m, 6h or 1d')


def row_audit(value: object) -> object:
    """off, sample(<percent>) or every(<n>)."""
    if value == "off":
        return value
    call = _called(value)
    arg = call.args[0] if len(call.args) == 1 and not call.named else None
    if call.name == "every" and isinstance(arg, int) and arg > 0:
        return f"every({arg})"
    percent = _PERCENT.fullmatch(str(arg)) if call.name == "sample" else None
    if percent is not None and 0 < float(percent[1]) <= 100:
        return f"sample({arg})"
    raise WrongError("off, sample(0.1%) or every(20)")


def _called(value: object) -> Call:
    if isinstance(value, str) and "(" in value:
        try:
            value = parse_value(value, "")
        except SqbError as error:
            raise WrongError(f"a name or a call ({error.message})") from None
    if isinstance(value, Call):
        return value
    if isinstance(value, str):
        return Call(value)
    if isinstance(value, Mapping) and "name" in value:
        given = cast("Mapping[str, dict[str, object]]", value)
        return Call(
            str(value["name"]),
            tuple(given.get("args", ())),
            dict(given.get("named", {})),
            dict(given.get("options", {})),
        )
    raise WrongError("a name or a call such as not_null(id)")


def _call_value(call: Call) -> dict[str, object]:
    found: dict[str, object] = {"name": call.name}
    if call.args:
        found["args"] = plain(call.args)
    if call.named:
        found["named"] = plain(call.named)
    if call.options:
        found["options"] = plain(call.options)
    return found


def audits(value: object) -> object:
    """A list of audits: a name or call each, with options such as ``(severity warn)``."""
    if isinstance(value, Mapping):
        raise WrongError("a list such as [not_null(id), unique(id) (severity warn)]")
    found: list[object] = []
    for item in value if isinstance(value, list | tuple) else [value]:
        call = _called(item)
        if not is_identifier(call.name):
            raise WrongError("audits by name, such as [not_null(id)]")
        if call.options.get("severity", "error") not in ("error", "warn"):
            raise WrongError("severity error or warn")
        found.append(_call_value(call))
    return found


def hooks(value: object) -> object:
    """A list of ``inline_sql("…")``, ``sql("name", k: v)`` and ``python("name", k: v)``."""
    if isinstance(value, Mapping):
        raise WrongError('a list such as [sql("grant_access", role: "x")]')
    known = ("inline_sql", "sql", "python")
    found: list[object] = []
    for item in value if isinstance(value, list | tuple) else [value]:
        call = _called(item)
        if call.name not in known:
            raise WrongError("inline_sql(…), sql(…) or python(…)", did_you_mean(call.name, known))
        if len(call.args) != 1 or not isinstance(call.args[0], str) or call.options:
            raise WrongError(f'one text first, as in {call.name}("…")')
        if call.name == "inline_sql" and call.named:
            raise WrongError('inline_sql("…") without named arguments')
        found.append(_call_value(call))
    return found


_COLUMN_KEYS: dict[str, Check] = {
    "type": text,
    "nullable": flag,
    "description": text,
    "audits": audits,
    "meta": settings,
}


def columns(value: object) -> object:
    """Declared columns: name to type, or to a map with type, nullable, description, audits."""
    if not isinstance(value, Mapping):
        raise WrongError("a map such as (id (type BIGINT, description 'the key'))")
    found: dict[str, object] = {}
    for name, given in value.items():
        entry = given if isinstance(given, Mapping) else {"type": given}
        normal: dict[str, object] = {}
        for key, item in entry.items():
            check = _COLUMN_KEYS.get(key)
            if check is None:
                raise WrongError(
                    f"{', '.join(_COLUMN_KEYS)} for column `{name}`, not `{key}`",
                    did_you_mean(str(key), _COLUMN_KEYS),
                )
            try:
                normal[key] = check(plain(item) if key == "type" else item)
            except WrongError as error:
                raise WrongError(f"{error.expected} as `{key}` of `{name}`", error.help) from None
        if "type" in normal:
            spark_type = column_type(str(normal["type"]))
            if spark_type is None:
                raise WrongError(
                    f"a Spark SQL type for `{name}`, not `{normal['type']}`",
                    did_you_mean(str(normal["type"]), TYPE_NAMES),
                )
            normal["type"] = spark_type
        found[str(name)] = normal
    return found
