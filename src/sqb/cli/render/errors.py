"""An error as a small lesson: what, where (with the line), how to mend it. Secrets are masked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sqb.cli.output import Output
from sqb.cli.render.words import wrapped
from sqb.project.secrets import mask

if TYPE_CHECKING:
    from sqb.project.config import Config


def error_text(
    error: Mapping[str, object], out: Output, root: Path | None, config: Config | None = None
) -> str:
    """The text of an error in the form of ``SqbError.to_json``."""
    shown = masked(error, config)
    head = out.style(f"error[{shown['code']}]", fg="red", bold=True)
    lines = _told(head, f"error[{shown['code']}]", str(shown["message"]), out)
    file, line = shown.get("file"), shown.get("line")
    if isinstance(file, str):
        place = f"{file}:{line}" if line else file
        lines.append(f"  {out.style('-->', fg='cyan')} {place}")
        source = _source_line(root, file, line if isinstance(line, int) else None)
        if source is not None:
            number = str(line)
            gap = " " * len(number)
            bar = out.style("|", fg="cyan")
            lines += [
                f" {gap} {bar}",
                f" {out.style(number, fg='cyan')} {bar} {mask(source, config)}",
                f" {gap} {bar}",
            ]
    if shown.get("help"):
        label = out.style("help", fg="cyan", bold=True)
        lines += _told(label, "help", str(shown["help"]), out)
    return "\n".join(lines)


def _told(styled: str, label: str, text: str, out: Output) -> list[str]:
    """A label and its sentence; on a terminal broken at blanks, elsewhere in one line."""
    first, *rest = text.split("\n")
    if not out.terminal:
        return [f"{styled}: {first}", *rest]
    begin, *more = wrapped(f"{label}: {first}", out.width, "  ")
    return [
        styled + begin[len(label) :],
        *more,
        *(part for line in rest for part in wrapped(line, out.width, "  ")),
    ]


def masked(error: Mapping[str, object], config: Config | None) -> dict[str, object]:
    """The error without secrets."""
    return {
        key: mask(value, config) if isinstance(value, str) and key != "code" else value
        for key, value in error.items()
    }


def _source_line(root: Path | None, file: str, line: int | None) -> str | None:
    """The line an error speaks of; a file that is gone or not text has none."""
    if root is None or line is None or line < 1:
        return None
    try:
        lines = (root / file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return lines[line - 1].replace("\t", "    ").rstrip() if line <= len(lines) else None
