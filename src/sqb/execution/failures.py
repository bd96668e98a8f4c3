"""Spark's errors in the user's terms: the model's own file and line instead of a stack trace."""

from __future__ import annotations

import re

from sqb.compile.nodes import CompiledModel
from sqb.errors import SqbError
from sqb.sql.splice import Spliced

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_PREFIX = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_TAIL = re.compile(r"\s*SQLSTATE: \w+.*$", re.DOTALL)
_CALLING = "An error occurred while calling"
_STACK = re.compile(r"\n\s+at |\nCaused by: ")
#: These say only which file or step; what is wrong with it stands behind.
_VAGUE = ("[FAILED_READ_FILE", "Caused by: software.amazon.awssdk.")
_CAUSE = re.compile(r"^Caused by: [\w.$]+: ((?:.|\n)+?)(?=\n\s+at |\Z)", re.MULTILINE)
_SUGGESTION = re.compile(r"Did you mean one of the following\? \[(.+?)\]")


def explain(
    error: Exception, name: str, model: CompiledModel | None, sent: Spliced | None
) -> SqbError:
    """The error to show for what Spark raised while it worked on ``name``."""
    if isinstance(error, SqbError):
        if error.file is None and model is not None:
            error.file, error.line = model.path, model.first_line
        return error
    message = message_of(error)
    line = None
    if model is not None and sent is not None:
        offset = _offset(error, sent.text)
        line = model.line_of(sent.origin(offset)) if offset is not None else model.first_line
    suggestion = _SUGGESTION.search(str(error))
    return SqbError(
        "X001" if _is_spark(error) else "X004",
        f"`{name}`: {message}",
        file=model.path if model is not None else None,
        line=line,
        help=f"did you mean one of {suggestion.group(1)}?" if suggestion else None,
        exit_code=1,
    )


def _is_spark(error: Exception) -> bool:
    module = type(error).__module__
    return module.startswith(("pyspark", "py4j"))


def message_of(error: Exception) -> str:
    """The first telling sentence, without error class, SQL state, plan and Java stack."""
    text = str(getattr(error, "desc", None) or error).strip()
    behind = _CAUSE.findall(text) if any(sign in text for sign in _VAGUE) else []
    found_behind = f" {' '.join(behind[-1].split())}" if behind else ""
    if text.startswith(_CALLING):
        found = re.search(r"^: ([\w.$]+(?:Exception|Error)): (.*)$", text, re.MULTILINE)
        text = text[found.start(2) :] if found else text.splitlines()[-1]
        text = _STACK.split(text, maxsplit=1)[0]
    text = text.split("\nJVM stacktrace", 1)[0].split("\n\n", 1)[0]
    text = _TAIL.sub("", text.split(";\n", 1)[0])
    text = _SUGGESTION.sub("", text).rstrip(" .") + "." if _SUGGESTION.search(text) else text
    return " ".join(_PREFIX.sub("", text).split()) + found_behind or type(error).__name__


def first_line(error: Exception) -> str:
    """The first line; Py4J's own says nothing but which method was called."""
    text = str(error)
    return message_of(error) if text.startswith(_CALLING) else text.partition("\n")[0]


def _offset(error: Exception, text: str) -> int | None:
    """Where in the sent text Spark saw the trouble."""
    contexts = getattr(error, "getQueryContext", None)
    if contexts is not None:
        try:
            found = contexts()
        except Exception:  # noqa: BLE001 - the JVM may be gone; the position is only a comfort
            found = []
        for context in found or []:
            start = context.startIndex()
            if 0 <= start < len(text):
                return int(start)
    position = _POSITION.search(str(error))
    if position is None:
        return None
    lines = text.splitlines(keepends=True)
    row, column = int(position.group(1)), int(position.group(2))
    if row > len(lines):
        return None
    return min(sum(len(line) for line in lines[: row - 1]) + column, len(text) - 1)
