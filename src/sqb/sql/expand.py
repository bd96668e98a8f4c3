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
    env: dict[str, str] = {}
    if "@" not in sql:
        return Expanded(splice(sql, []), env)
    return Expanded(splice(sql, _edits(sql, scope, env, file, first_line, _DEPTH)), env)


def _edits(
    sql: str, scope: Scope, env: dict[str, str], file: str, first_line: int, depth: int
) -> list[Edit]:
    tokens = tokenize(sql, file=file, first_line=first_line)
    edits: list[Edit] = []
    i = 0
    while i < len(tokens):
        tok = tokens[i]
        if tok.raw == "@" and i + 1 < len(tokens):
            edit, i = _one(sql, tokens, i, scope, env, file, depth)
            edits.append(edit)
        else:
            i += 1
    return edits


def _one(
    sql: str, tokens: list[Tok], i: int, scope: Scope, env: dict[str, str], file: str, depth: int
) -> tuple[Edit, int]:
    start, line = tokens[i].start, tokens[i].line
    if tokens[i + 1].raw == "@":
        if i + 2 >= len(tokens):
            raise SqbError("P009", "`@@` without a name", file=file, line=line)
        name = tokens[i + 2]
        if name.raw == "ENV" and i + 4 < len(tokens) and tokens[i + 3].raw == ":":
            variable = tokens[i + 4]
            value = _environment(variable.raw, scope, file, line)
            env[variable.raw] = value
            return Edit(start, variable.end, value), i + 5
        return Edit(start, name.end, _variable(name.raw, scope, file, line)), i + 3
    name = tokens[i + 1]
    if i + 2 >= len(tokens) or tokens[i + 2].raw != "(":
        raise SqbError(
            "P008",
            f"`@{name.raw}` is neither a macro call nor a variable",
            file=file,
            line=line,
            help=f"call a macro with `@{name.raw}(…)`, use a variable with `@@{name.raw}`",
        )
    close = _closing(tokens, i + 2)
    if close is None:
        raise SqbError("P008", f"`@{name.raw}(` is not closed", file=file, line=line)
    arguments = sql[tokens[i + 2].end : tokens[close].start]
    if "@" in arguments:
        # an inner macro gives a string, handed to the outer one as a literal
        inner = _edits(arguments, scope, env, file, line, depth - 1)
        arguments = splice(
            arguments, [Edit(e.start, e.end, repr(e.replacement)) for e in inner]
        ).text
    text = _call(name.raw, arguments, scope, file, line)
    if "@" in text:
        if depth <= 0:
            raise SqbError("P008", f"macro `{name.raw}` expands without end", file=file, line=line)
        text = splice(text, _edits(text, scope, env, file, line, depth - 1)).text
    return Edit(start, tokens[close].end, text), close + 1


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


def _variable(name: str, scope: Scope, file: str, line: int) -> str:
    if name not in scope.vars:
        raise SqbError(
            "P009",
            f"variable `{name}` is not defined",
            file=file,
            line=line,
            help=did_you_mean(name, scope.vars)
            or "define it under [vars] in sqlbuild_project.toml or with --vars",
        )
    value = scope.vars[name]
    if isinstance(value, (list, dict)):
        raise SqbError(
            "P009",
            f"variable `{name}` is a list or table and can't stand in SQL",
            file=file,
            line=line,
            help="hand it to a macro, or give it a plain value",
        )
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


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
