"""Where a command's words go: text and colour, machine output, and the log file.

With ``--json`` standard output holds one document and nothing else; text goes to standard error.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from sqb.errors import SqbError
from sqb.project.secrets import masked, masker

#: The width of text that no terminal shows.
PLAIN_WIDTH = 80
_WIDEST = 120
_NARROWEST = 40
#: As far from black as from white, in the palette of 256 colours, which no theme changes.
GREY = 244


class Output:
    """The streams of one command. A reader that went away silences it; it stops no build."""

    def __init__(
        self,
        *,
        json: bool = False,
        no_color: bool = False,
        quiet: bool = False,
        verbose: bool = False,
        log_file: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        variables = os.environ if environ is None else environ
        self.json = json
        self.quiet = quiet
        self.verbose = verbose
        self.broken = False
        #: Takes secrets out of every word but query results; a project brings its own.
        self.mask: Callable[[str], str] = masker(None, environ=variables)
        self.terminal = self.stream.isatty() and variables.get("TERM") != "dumb"
        self.colour = self.terminal and not no_color and not variables.get("NO_COLOR")
        self._grey = "256" in variables.get("TERM", "") or bool(variables.get("COLORTERM"))
        columns = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
        self.width = max(_NARROWEST, min(columns, _WIDEST)) if self.terminal else PLAIN_WIDTH
        self._log = _open_log(log_file) if log_file is not None else None

    @property
    def stream(self) -> TextIO:
        """Where text goes now; a live display puts itself in between."""
        return sys.stderr if self.json else sys.stdout

    def style(self, text: str, **style: Any) -> str:
        """``text`` in colour, where colour is wanted.

        Colours are those that can be read on dark and on light: red, green, cyan, magenta, bold.
        ``dim`` is a grey between the two; the terminal's own faint text vanishes on some.
        """
        if not self.colour or not text:
            return text
        import click

        if style.pop("dim", False) and self._grey:
            style["fg"] = GREY
        return click.style(text, **style) if style else text

    def line(self, text: str = "", **style: Any) -> None:
        """A line for the reader; ``-q`` leaves it out."""
        if not self.quiet:
            self.important(text, **style)

    def important(self, text: str = "", **style: Any) -> None:
        """A line that ``-q`` leaves in."""
        self._write(self.stream, self.style(text, **style) + "\n")
        self.log(text)

    def raw(self, text: str) -> None:
        """A result, unchanged, on standard output."""
        self._write(sys.stdout, text, mask=False)

    def document(self, value: object) -> None:
        """The machine's output: one JSON document on standard output."""
        import msgspec

        # text by text: a secret that is a number must not tear a hole into the document
        plain = masked(msgspec.to_builtins(value), self.mask)
        encoded = msgspec.json.format(msgspec.json.encode(plain), indent=2)
        self._write(sys.stdout, encoded.decode() + "\n", mask=False)

    def error(self, text: str) -> None:
        """Words about an error, on standard error."""
        self._write(sys.stderr, text + "\n")
        self.log(text)

    def log(self, text: str) -> None:
        """A line for ``--log-file`` alone."""
        if self._log is None:
            return
        from datetime import datetime, timezone

        import click

        moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        for part in self.mask(click.unstyle(text)).splitlines():
            self._log.write(f"{moment} {part}\n")
        self._log.flush()

    def close(self) -> None:
        """Close the log file."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _write(self, stream: TextIO, text: str, *, mask: bool = True) -> None:
        if self.broken:
            return
        text = self.mask(text) if mask else text
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            self.broken = True


def _open_log(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise SqbError(
            "C008",
            f"the log file {path} can't be written: {error.strerror or error}",
            help="name another one with --log-file",
        ) from None
