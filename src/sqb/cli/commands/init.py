"""``sqb init``: a small project that builds at once."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command
from sqb.errors import SqbError
from sqb.project.layout import PROJECT_FILE

_TEMPLATE = Path(__file__).parents[2] / "templates" / "starter"
#: In the template without its dot, so that tools don't obey it there.
_IGNORE = "gitignore"


def init(call: Call, *, directory: str) -> None:
    """Write the starter project."""
    call.no_selection("init")
    root = Path(directory).absolute()
    files = sorted(path for path in _TEMPLATE.rglob("*") if path.is_file())
    names = [path.relative_to(_TEMPLATE).as_posix() for path in files]
    _refuse_taken(root, directory, names)
    written: list[str] = []
    try:
        for name, path in zip(names, files, strict=True):
            text = path.read_text(encoding="utf-8")
            if name == _IGNORE:
                name = ".gitignore"  # noqa: PLW2901 - the same file under its real name
                text = _ignored(root / name, text)
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            written.append(name)
    except OSError as error:
        raise SqbError(
            "C009", f"{error.filename or root} can't be written: {error.strerror or error}"
        ) from None
    if call.out.json:
        call.out.document({"schema_version": 1, "directory": str(root), "written": sorted(written)})
        return
    out = call.out
    out.important(f"{out.style('Created', fg='green')} a project in {directory}")
    for name in sorted(written):
        out.line(f"  {name}", dim=True)
    out.line()
    here = root == Path.cwd()
    out.line("Build it:")
    out.line("  sqb build" if here else f"  cd {shlex.quote(directory)} && sqb build")


def _refuse_taken(root: Path, directory: str, names: list[str]) -> None:
    if root.exists() and not root.is_dir():
        raise SqbError("C009", f"{directory} is a file", help="name a folder")
    if (root / PROJECT_FILE).exists():
        raise SqbError(
            "C009",
            f"{directory} already holds a project",
            help="name another folder: sqb init DIR",
        )
    taken = [name for name in names if name != _IGNORE and (root / name).exists()]
    if taken:
        raise SqbError(
            "C009",
            f"{directory} already has {', '.join(taken)}",
            help="nothing was written; name another folder: sqb init DIR",
        )


def _ignored(path: Path, text: str) -> str:
    """The .gitignore that is there, with the lines that it lacks."""
    if not path.exists():
        return text
    there = path.read_text(encoding="utf-8")
    missing = [line for line in text.splitlines() if line not in there.splitlines()]
    if not missing:
        return there
    return there.rstrip("\n") + "\n" * bool(there.strip()) + "\n".join(missing) + "\n"


command = sqb_command(
    "init",
    help="Start a project in a folder (the current one without DIR).",
    example="""
sqb init shop
cd shop && sqb build
""",
)(click.argument("directory", default=".", metavar="[DIR]")(init))
