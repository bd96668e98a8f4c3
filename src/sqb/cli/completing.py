"""What a shell offers when the user presses Tab: models, seeds, sources, tags, targets.

Nothing here may fail or print: a project that is broken has fewer names to offer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from sqb.graph.selectors import Selectable

if TYPE_CHECKING:
    from sqb.api import Project

#: What comes before the last name of a selector: other selectors, and steps up the graph.
_BEFORE = re.compile(r"(?P<before>(?:.*[,~ ])?(?:\d*\+)?)(?P<rest>.*)", re.DOTALL)


def selectors(nodes: Iterable[Selectable], incomplete: str) -> Iterator[tuple[str, str]]:
    """The selectors that begin with ``incomplete``, each with a word about it.

    >>> list(selectors([Selectable("orders", "model", "models/orders.sql", ("daily",))], "+or"))
    [('+orders', 'model')]
    """
    found = _BEFORE.fullmatch(incomplete)
    before, rest = (found["before"], found["rest"]) if found else ("", incomplete)
    offered: dict[str, str] = {}
    tags: dict[str, str] = {}
    folders: dict[str, str] = {}
    for node in nodes:
        if node.type == "source":
            offered[f"source:{node.name}+"] = "readers of the source"
            continue
        offered[node.name] = node.type
        tags |= {f"tag:{tag}": "tag" for tag in node.tags}
        parts = PurePosixPath(node.path).parts[1:-1]
        folders |= {f"path:{'/'.join(parts[:n])}": "folder" for n in range(1, len(parts) + 1)}
    for value, about in [*offered.items(), *sorted(tags.items()), *sorted(folders.items())]:
        if value.startswith(rest):
            yield before + value, about


def names(nodes: Iterable[Selectable], incomplete: str) -> Iterator[tuple[str, str]]:
    """The nodes and sources whose names begin with ``incomplete``."""
    for node in nodes:
        if node.name.startswith(incomplete):
            yield node.name, node.type


def complete(kind: str, context: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
    """What to offer for an option or argument of a kind: selector, node, source or target."""
    try:
        found = list(_offers(kind, context.params, incomplete))
    except Exception:  # noqa: BLE001 - Tab must never print an error
        return []
    return [CompletionItem(value, help=about) for value, about in found]


def _offers(kind: str, params: Mapping[str, Any], incomplete: str) -> Iterator[tuple[str, str]]:
    from sqb.api import Project

    folder = params.get("project_dir") or os.environ.get("SQB_PROJECT_DIR") or "."
    if kind == "target":
        for target in _targets(Path(folder)):
            if target.startswith(incomplete):
                yield target, "target"
        return
    project = Project(folder, target=params.get("target"))
    nodes = _nodes(project)
    if kind == "selector":
        yield from selectors(nodes, incomplete)
        return
    wanted = {"node": ("model", "seed"), "any": ("model", "seed", "source")}[kind]
    yield from names([node for node in nodes if node.type in wanted], incomplete)


def _nodes(project: Project) -> list[Selectable]:
    """The project's nodes; of a project that does not compile, what its files are called."""
    from sqb.errors import SqbError
    from sqb.project.layout import read_files
    from sqb.project.names import stem

    try:
        return list(project.selectable().values())
    except SqbError:
        files = read_files(project.root)
        models = [Selectable(stem(path), "model", path, ()) for path in files.models]
        return models + [Selectable(stem(path), "seed", path, ()) for path in files.seeds]


def _targets(folder: Path) -> list[str]:
    """The targets that the project's files name, sound or not."""
    from sqb.project.layout import LOCAL_FILE, PROJECT_FILE, find_project
    from sqb.project.toml_lines import parse_toml

    root = find_project(folder.absolute())
    files = [file for file in (root / PROJECT_FILE, root / LOCAL_FILE) if file.is_file()]
    found = [parse_toml(file.read_bytes(), file.name).values for file in files]
    return sorted({name for data in found for name in data.get("targets", {})} | {"dev"})


class _Bash(BashComplete):
    """Bash breaks words at colons, and replaces only what is behind the last one."""

    source_template: ClassVar[str] = r"""
%(complete_func)s() {
    local IFS=$'\n' line="${COMP_LINE:0:COMP_POINT}" response completion type value kept
    response=$(env COMP_WORDS="$line" %(complete_var)s=bash_complete "$1" 2>/dev/null)
    kept="${line##*[[:space:]]}"
    kept="${kept##*=}"
    if [[ $COMP_WORDBREAKS == *:* ]]; then
        kept="${kept%%"${kept##*:}"}"
    else
        kept=""
    fi
    COMPREPLY=()
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$kept"}")
        fi
    done
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def source(self) -> str:
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], incomplete


class _Fish(FishComplete):
    """A selector may hold commas."""

    source_template: ClassVar[str] = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


def shell(name: str) -> type[ShellComplete]:
    """The completion of a shell."""
    return {"bash": _Bash, "zsh": ZshComplete, "fish": _Fish}[name]


def register() -> None:
    """Let click find these when a shell asks."""
    add_completion_class(_Bash, "bash")
    add_completion_class(_Fish, "fish")
