"""Jinja in dbt's configuration files (``profiles.yml``, ``dbt_project.yml``), rendered as dbt does.

Known there are ``env_var``, ``var`` (of ``--vars`` only) and the filters ``as_text``, ``as_bool``,
``as_number`` and ``as_native``. A text without Jinja stays as it is, and costs no import.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

from sqb.errors import SqbError

_JINJA = re.compile(r"\{[{%#]")


class UnsetError(Exception):
    """A variable is not set and has no default."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(name)
        self.kind = kind
        self.name = name


class Renderer:
    """Renders the values of one file; lines of a ``private`` one are not shown."""

    def __init__(
        self,
        file: str,
        *,
        environ: Mapping[str, str],
        variables: Mapping[str, object],
        private: bool = False,
    ) -> None:
        self.file = file
        self._private = private
        self._environ = environ
        self._variables = variables
        self._environment: Any = None

    def render(self, value: Any, key: str, text: str = "") -> Any:
        """``value`` with all Jinja in it rendered.

        ``key`` names the value in messages; ``text`` is the whole file, to find a line in it.
        """
        if isinstance(value, Mapping):
            return {name: self.render(item, f"{key}.{name}", text) for name, item in value.items()}
        if isinstance(value, list):
            return [self.render(item, key, text) for item in value]
        if not isinstance(value, str) or not _JINJA.search(value):
            return value
        try:
            return self._rendered(value)
        except UnsetError as error:
            if error.kind == "env":
                what = f"the environment variable {error.name}"
                help = f"set {error.name}, or give a default: env_var('{error.name}', '…')"
            else:
                what = f"the variable `{error.name}` of --vars"
                help = f"add --vars '{error.name}: …', or give a default"
            line = _line_of(text, error.name)
            raise self._error(f"`{key}` needs {what}, which is not set", line, help) from None
        except Exception as error:  # noqa: BLE001 - the template is the user's and may raise anything
            if key.rpartition(".")[2] == "password":
                # one may look like Jinja without being it; dbt takes it as it is
                return value
            raise self._error(
                f"the Jinja in `{key}` can't be rendered: {type(error).__name__}",
                _line_of(text, value),
                "env_var, var and the filters as_number, as_bool, as_native work here",
            ) from None

    def _error(self, message: str, line: int | None, help: str) -> SqbError:
        if self._private:
            message, line = message + in_line(line), None
        return SqbError("B004", message, file=self.file, line=line, help=help)

    def _rendered(self, text: str) -> Any:
        if self._environment is None:
            self._environment = _environment()
        template = self._environment.from_string(text)
        context = template.new_context({"env_var": self._env_var, "var": self._var})
        parts = list(template.root_render_func(context))
        if len(parts) == 1:
            return parts[0].value if isinstance(parts[0], _Typed) else _text(parts[0])
        return "".join(str(_text(part)) for part in parts)

    def _env_var(self, name: str, default: object = None) -> str:
        if name in self._environ:
            return self._environ[name]
        if default is None:
            raise UnsetError("env", name)
        return str(default)

    def _var(self, name: str, default: object = None) -> object:
        if name in self._variables:
            return self._variables[name]
        if default is None:
            raise UnsetError("var", name)
        return default


class _Typed:
    """What a filter made of a text: no longer one."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __str__(self) -> str:
        return str(self.value)


def _text(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.nativetypes import NativeCodeGenerator
    from jinja2.sandbox import SandboxedEnvironment

    class Environment(SandboxedEnvironment):
        # Values keep their types: a single expression may be a number.
        code_generator_class = NativeCodeGenerator

    environment = Environment(undefined=StrictUndefined, extensions=["jinja2.ext.do"])
    filters: dict[str, Callable[[Any], object]] = {
        "as_text": str,
        "as_bool": lambda value: _Typed(_literal(value, bool)),
        "as_number": lambda value: _Typed(_literal(value, (int, float))),
        "as_native": lambda value: _Typed(_literal(value, object)),
    }
    environment.filters.update(filters)
    return environment


def _literal(value: object, kind: type | tuple[type, ...]) -> object:
    if not isinstance(value, str):
        return value
    written = value.strip()
    if kind is bool and written.lower() in {"true", "false"}:
        return written.lower() == "true"
    try:
        found = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return value
    if kind is not bool and isinstance(found, bool) and kind is not object:
        return value
    return found if isinstance(found, kind) else value


def in_line(line: int | None) -> str:
    """A line by its number, where it must not be shown."""
    return f" (line {line})" if line is not None else ""


def _line_of(text: str, part: str) -> int | None:
    at = text.find(part)
    return text.count("\n", 0, at) + 1 if at >= 0 else None
