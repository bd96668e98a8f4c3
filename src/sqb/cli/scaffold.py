"""Writing a new project from a template of the package."""

from __future__ import annotations

from pathlib import Path

from sqb.errors import SqbError
from sqb.project.layout import DBT_FILE, PROJECT_FILE

_TEMPLATES = Path(__file__).parents[1] / "templates"
#: Files that a template has from another one.
_BORROWED = {
    "dbt": ("waffle_shop", ("raw/next_day.py", "seeds/menu.csv", "seeds/stores.csv")),
}
#: In the template without its dot, so that tools don't obey it there.
_IGNORE = "gitignore"


def write_project(template: str, root: Path, shown: str, command: str) -> list[str]:
    """Write a template's files below ``root``; their names.

    Nothing is written over; ``shown`` and ``command`` are how the user named folder and command.
    """
    folder = _TEMPLATES / template
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    lender, borrowed = _BORROWED.get(template, ("", ()))
    files |= {name: _TEMPLATES / lender / name for name in borrowed}
    _refuse_taken(root, shown, list(files), command)
    written: list[str] = []
    try:
        for name, path in files.items():
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
    return sorted(written)


def _refuse_taken(root: Path, shown: str, names: list[str], command: str) -> None:
    if root.exists() and not root.is_dir():
        raise SqbError("C009", f"{shown} is a file", help="name a folder")
    if (root / PROJECT_FILE).exists() or (root / DBT_FILE).exists():
        raise SqbError(
            "C009",
            f"{shown} already holds a project",
            help=f"name another folder: sqb {command} DIR",
        )
    taken = [name for name in names if name != _IGNORE and (root / name).exists()]
    if taken:
        raise SqbError(
            "C009",
            f"{shown} already has {', '.join(taken)}",
            help=f"nothing was written; name another folder: sqb {command} DIR",
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
