"""Expansion of ``@macro(args)``, ``@@var`` and ``@@ENV:NAME`` in a query's text.

Nothing inside literals, backquoted names and comments is touched. Only the expanded text is a
model's identity; what a macro looks like inside is not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.sql.splice import Edit, Spliced, splice
from sqb.sql.tokens import Tok, tokenize

_DEPTH = 20


class Scope(msgspec.Struct, frozen=True):
    """What a query may name: macros, variables and the environment."""

    macros: Mapping[str, Callable[..., object]]
    vars: Mapping[str, object]
    environ: Mapping[str, str]


class Expanded(msgspec.Struct, frozen=True):
    """The expanded text, where it came from, and the environment variables it read."""

    spliced: Spliced
    env: dict[str, str]


def expand(sql: str, scope: Scope, *, file: str, first_line: int) -> Expanded:
    """Expand every macro, variable and environment value of ``sql``."""
    if "@" not in sql:
        return Expanded(splice(sql, []), {})
    expander = _Expander(scope, file)
    edits = expander.edits(sql, first_line, _DEPTH)
    return Expanded(splice(sql, edits), expander.env)


class _Expander:
    """Walks one file's text; remembers the environment variables it met."""

    def __init__(self, scope: Scope, file: str) -> None:
        self.scope, self.file = scope, file
        self.env: dict[str, str] = {}

    def edits(self, sql: str, line: int, depth: int, *, literal: bool = False) -> list[Edit]:
        """What to replace in ``sql``; ``literal``: by Python literals, as a macro's arguments."""
        tokens = tokenize(sql, file=self.file, first_line=line)
        out: list[Edit] = []
        i = 0
        while i < len(tokens):
            if tokens[i].raw != "@" or i + 1 >= len(tokens):
                i += 1
                continue
            if tokens[i + 1].raw == "@":
                value, end, i_next = self._value(tokens, i)
                text = repr(value) if literal else self._render(value, tokens[i + 2])
            else:
                text, end, i_next = self._macro(sql, tokens, i, depth)
                text = repr(text) if literal else text
            out.append(Edit(tokens[i].start, end, text))
            i = i_next
        return out

    def _value(self, tokens: list[Tok], i: int) -> tuple[object, int, int]:
        """``@@name`` or ``@@ENV:NAME``: its value, where it ends, the token after it."""
        line = tokens[i].line
        if i + 2 >= len(tokens):
            raise SqbError("P009", "`@@` without a name", file=self.file, line=line)
        name = tokens[i + 2]
        if name.raw == "ENV" and i + 4 < len(tokens) and tokens[i + 3].raw == ":":
            variable = tokens[i + 4]
            value = _environment(variable.raw, self.scope, self.file, line)
            self.env[variable.raw] = value
            return value, variable.end, i + 5
        return _variable(name.raw, self.scope, self.file, line), name.end, i + 3

    def _render(self, value: object, name: Tok) -> str:
        """A variable as SQL text."""
        if isinstance(value, (list, dict)):
            raise SqbError(
                "P009",
                f"variable `{name.raw}` is a list or table and can't stand in SQL",
                file=self.file,
                line=name.line,
                help=f"hand it to a macro: @macro(@@{name.raw}), or give it a plain value",
            )
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def _macro(self, sql: str, tokens: list[Tok], i: int, depth: int) -> tuple[str, int, int]:
        """``@name(…)``: what it gives, where it ends, the token after it."""
        name, line = tokens[i + 1].raw, tokens[i].line
        if i + 2 >= len(tokens) or tokens[i + 2].raw != "(":
            raise SqbError(
                "P008",
                f"`@{name}` is neither a macro call nor a variable",
                file=self.file,
                line=line,
                help=f"call a macro with `@{name}(…)`, use a variable with `@@{name}`",
            )
        close = _closing(tokens, i + 2)
        if close is None:
            raise SqbError("P008", f"`@{name}(` is not closed", file=self.file, line=line)
        arguments = sql[tokens[i + 2].end : tokens[close].start]
        if "@" in arguments:
            inner = self.edits(arguments, line, depth - 1, literal=True)
            arguments = splice(arguments, inner).text
        text = _call(name, arguments, self.scope, self.file, line)
        if "@" in text:
            if depth <= 0:
                raise SqbError(
                    "P008", f"macro `{name}` expands without end", file=self.file, line=line
                )
            text = splice(text, self.edits(text, line, depth - 1)).text
        return text, tokens[close].end, close + 1


def _closing(tokens: list[Tok], opening: int) -> int | None:
    depth = 0
    for i in range(opening, len(tokens)):
        if tokens[i].raw == "(":
            depth += 1
        elif tokens[i].raw == ")":
            depth -= 1
            if depth == 0:
                return i
    return None


def _call(name: str, arguments: str, scope: Scope, file: str, line: int) -> str:
    function = scope.macros.get(name)
    if function is None:
        raise SqbError(
            "P008",
            f"there is no macro `{name}`",
            file=file,
            line=line,
            help=did_you_mean(name, scope.macros) or "macros are functions in macros/*.py",
        )
    try:
        call = ast.parse(f"f({arguments.strip()}\n)", mode="eval").body
        if not isinstance(call, ast.Call) or any(k.arg is None for k in call.keywords):
            raise ValueError("not a call")
        args = [ast.literal_eval(a) for a in call.args]
        kwargs = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise SqbError(
            "P008",
            f"the arguments of macro `{name}` can't be read: {arguments.strip()}",
            file=file,
            line=line,
            help="arguments are Python literals: strings in quotes, numbers, lists",
        ) from error
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        raise SqbError(
            "P008",
            f"macro `{name}` failed: {type(error).__name__}: {error}",
            file=file,
            line=line,
        ) from error
    if not isinstance(result, str):
        raise SqbError(
            "P008",
            f"macro `{name}` gave {type(result).__name__}, not a string",
            file=file,
            line=line,
        )
    return result


def _variable(name: str, scope: Scope, file: str, line: int) -> object:
    if name in scope.vars:
        return scope.vars[name]
    raise SqbError(
        "P009",
        f"variable `{name}` is not defined",
        file=file,
        line=line,
        help=did_you_mean(name, scope.vars)
        or "define it under [vars] in sqlbuild_project.toml or with --vars",
    )


def _environment(name: str, scope: Scope, file: str, line: int) -> str:
    if name.startswith("SQB_SECRET_"):
        raise SqbError(
            "P010",
            f"environment variable {name} is a secret and can't stand in SQL",
            file=file,
            line=line,
            help="SQL is stored in the lake; hand secrets to Spark in [catalog.properties]",
        )
    if name not in scope.environ:
        raise SqbError(
            "P010",
            f"environment variable {name} is not set",
            file=file,
            line=line,
            help=f"export {name}=… before calling sqb",
        )
    return scope.environ[name]
