"""Python macros: the public functions of ``macros/*.py``."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path

from sqb.errors import SqbError


def load_macros(root: Path, paths: list[str]) -> dict[str, Callable[..., object]]:
    """Import each file and collect the functions it defines itself, without a leading ``_``.

    The project root is first on ``sys.path``, so macros may import the project's own modules.
    """
    for name, file in own_modules(root):
        # a notebook compiles again and again: what was edited must be imported anew
        if file not in paths:
            del sys.modules[name]
    found: dict[str, Callable[..., object]] = {}
    where: dict[str, str] = {}
    if paths and sys.path[:1] != [str(root)]:
        sys.path.insert(0, str(root))
    for path in paths:
        name = f"sqb_macros_{Path(path).stem}"
        spec = importlib.util.spec_from_file_location(name, root / path)
        if spec is None or spec.loader is None:
            raise SqbError("P008", "the macro file can't be imported", file=path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            line = (
                error.lineno if isinstance(error, SyntaxError) else _line(error, str(root / path))
            )
            raise SqbError(
                "P008",
                f"the macro file can't be imported: {type(error).__name__}: {error}",
                file=path,
                line=line,
            ) from error
        for member, function in inspect.getmembers(module, inspect.isfunction):
            if member.startswith("_") or function.__module__ != name:
                continue
            if member in found:
                raise SqbError(
                    "P007",
                    f"macro `{member}` is defined twice, in {where[member]} and {path}",
                    file=path,
                    line=function.__code__.co_firstlineno,
                )
            found[member], where[member] = function, path
    return found


def own_modules(root: Path) -> list[tuple[str, str]]:
    """Loaded modules that lie in the project, with their paths; installed packages don't count."""
    out: list[tuple[str, str]] = []
    # compared as text first: a process with everything loaded has thousands
    below = f"{root}{os.sep}"
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or not str(file).startswith(below):
            continue
        path = Path(file).relative_to(root)
        if path.parts[0] != "macros" and "site-packages" not in path.parts:
            out.append((name, path.as_posix()))
    return out


def _line(error: BaseException, file: str) -> int | None:
    """The deepest line of ``file`` in the error's traceback."""
    line, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == file:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line
