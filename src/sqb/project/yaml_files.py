"""YAML with places: a file becomes tables whose keys know their lines.

Also the small vocabulary with which source and seed files check their entries (P011).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.project.interpolate import UnsetError, interpolate

_MAX_NODES = 200_000
_MAX_DEPTH = 40


class Table(msgspec.Struct, frozen=True):
    """A YAML mapping: its values, and the line of each key."""

    file: str
    line: int
    values: dict[str, Any]
    lines: dict[str, int]

    def place(self, key: str) -> int:
        """The line of a key, or of the mapping if the key is not there."""
        return self.lines.get(key, self.line)

    def check_keys(self, known: Collection[str], what: str) -> None:
        """Refuse keys that are not known."""
        for key in self.values:
            if key not in known:
                raise self.wrong(
                    key,
                    f"unknown key `{key}` in {what}",
                    did_you_mean(key, known) or f"the keys are {', '.join(known)}",
                )

    def wrong(self, key: str, message: str, help: str | None = None) -> SqbError:
        """P011 at the line of a key."""
        return SqbError("P011", message, file=self.file, line=self.place(key), help=help)

    def text(self, key: str) -> str | None:
        """A text, or None if the key is absent or null."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(key, f"`{key}` must be a text", "put it in quotes")

    def required(self, key: str, what: str) -> str:
        """A text that must be there."""
        value = self.text(key)
        if not value:
            raise self.wrong(key, f"{what} needs `{key}`")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(key, f"`{key}` must be true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; a single text is a list of one."""
        value = self.values.get(key)
        items = [] if value is None else value if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in items):
            raise self.wrong(key, f"`{key}` must be a list of texts", "put its items in quotes")
        return tuple(items)

    def choice(self, key: str, allowed: Collection[str]) -> str | None:
        """One of a few words."""
        value = self.text(key)
        if value is not None and value not in allowed:
            near = did_you_mean(value, allowed)
            raise self.wrong(key, f"`{key}` must be one of {', '.join(allowed)}", near)
        return value

    def table(self, key: str) -> Table | None:
        """A mapping below this one."""
        value = self.values.get(key)
        if value is None or isinstance(value, Table):
            return value
        raise self.wrong(key, f"`{key}` must be a mapping")

    def tables(self, key: str) -> list[Table]:
        """A list of mappings below this one."""
        value = self.values.get(key)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(item, Table) for item in value):
            return value
        raise self.wrong(key, f"`{key}` must be a list of mappings, each with a `name`")

    def plain(self) -> dict[str, Any]:
        """The mapping as plain values."""
        return {key: _plain(value) for key, value in self.values.items()}


def load_yaml(content: bytes, file: str, environ: Mapping[str, str]) -> Table:
    """The mapping that a YAML file holds, with environment variables filled in."""
    import yaml

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SqbError(
            "P017", f"{file} is not valid UTF-8", file=file, line=line, help="save it as UTF-8"
        ) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        if node is None or node.tag == "tag:yaml.org,2002:null":
            return Table(file, 1, {}, {})
        built = _Builder(loader, file, environ).build(node, "", 0)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "bad form"
        raise SqbError(
            "P011",
            f"{file} is not valid YAML: {problem}",
            file=file,
            line=min(mark.line, text.count("\n")) + 1 if mark else None,
            help="check the indentation, and quote texts that hold `:` or `#`",
        ) from None
    except RecursionError:
        raise SqbError("P011", f"{file} is nested too deeply", file=file) from None
    finally:
        loader.dispose()
    if not isinstance(built, Table):
        raise SqbError("P011", f"{file} must hold a mapping", file=file, line=1)
    return built


def _plain(value: Any) -> Any:
    if isinstance(value, Table):
        return value.plain()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


class _Builder:
    def __init__(self, loader: Any, file: str, environ: Mapping[str, str]) -> None:
        self.loader = loader
        self.file = file
        self.environ = environ
        self.left = _MAX_NODES

    def build(self, node: Any, key: str, depth: int) -> Any:
        line = node.start_mark.line + 1
        self.left -= 1
        # Aliases make small files unfold without bound.
        if self.left < 0 or depth > _MAX_DEPTH:
            raise self.fail("the file unfolds into too many values", line)
        if node.id == "mapping":
            return self.mapping(node, line, depth)
        if node.id == "sequence":
            return [self.build(item, key, depth + 1) for item in node.value]
        try:
            value = self.loader.construct_object(node)
        except ValueError:
            raise self.fail(f"`{node.value}` is not a valid value", line) from None
        if not isinstance(value, str):
            # Dates stay as written: nothing here computes with them.
            return value if isinstance(value, int | float | None) else str(node.value)
        try:
            return interpolate(value, self.environ)
        except UnsetError as error:
            raise SqbError(
                "C005",
                f"`{key}` needs the environment variable {error.name}, which is not set",
                file=self.file,
                line=line,
                help=f"set {error.name}, or give a default: ${{ENV:{error.name}:-…}}",
            ) from None

    def mapping(self, node: Any, line: int, depth: int) -> Table:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            at = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                raise self.fail("a key must be a text", at)
            key = str(key_node.value)
            if key in values:
                raise self.fail(f"`{key}` is given twice", at)
            values[key] = self.build(value_node, key, depth + 1)
            lines[key] = at
        return Table(self.file, line, values, lines)

    def fail(self, message: str, line: int) -> SqbError:
        return SqbError("P011", message, file=self.file, line=line)
