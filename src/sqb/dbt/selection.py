"""Saying to dbt exactly which nodes to run, and asking it what a selection means.

dbt has no way to select by unique id. But ``result:error`` selects the nodes that a state folder
says have failed, so a folder that says so of the planned nodes selects them and no others, however
many there are. What the user's own selection means is asked of ``dbt ls``, never worked out here.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from sqb.dbt.nodes import DbtNode
from sqb.dbt.request import TYPES, Option, Request

RESULTS_FILE = "run_results.json"
SOURCES_FILE = "sources.json"
#: What dbt reads of a state folder.
_STATE_FILES = ("manifest.json", RESULTS_FILE, SOURCES_FILE)
_SCHEMA = "https://schemas.getdbt.com/dbt/run-results/v6.json"

#: Variables with which the environment narrows a selection.
_NARROWING = (
    *("DBT_RESOURCE_TYPES", "DBT_EXCLUDE_RESOURCE_TYPES"),
    *("DBT_ENGINE_RESOURCE_TYPES", "DBT_ENGINE_EXCLUDE_RESOURCE_TYPES"),
)


def state_of(unique_ids: Collection[str]) -> bytes:
    """A ``run_results.json`` after which ``result:error`` means these nodes."""
    results: list[dict[str, object]] = [
        {
            "unique_id": unique_id,
            "status": "error",
            "timing": [],
            "thread_id": "",
            "execution_time": 0.0,
            "adapter_response": {},
            "message": None,
            "failures": None,
            "compiled": False,
            "compiled_code": None,
            "relation_name": None,
        }
        for unique_id in sorted(unique_ids)
    ]
    document = {
        "metadata": {"dbt_schema_version": _SCHEMA},
        "results": results,
        "elapsed_time": 0.0,
        "args": {},
    }
    return msgspec.json.encode(document)


@contextlib.contextmanager
def chosen(folder: Path, unique_ids: Collection[str]) -> Iterator[Path]:
    """A state folder for these nodes, of this run alone: its name marks the run's results."""
    if not unique_ids:
        raise ValueError("dbt takes an empty selection for all nodes or for none")
    folder.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="chosen-", dir=folder)).resolve()
    try:
        (made / RESULTS_FILE).write_bytes(state_of(unique_ids))
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def run_arguments(
    request: Request,
    state: Path,
    *,
    full_refresh: bool = False,
    target_path: str | None = None,
    parsed: Path | None = None,
) -> list[str]:
    """``dbt build`` or ``dbt run`` of exactly the nodes of a folder that ``chosen`` made.

    The user's state folder stays the one that is deferred to. ``full_refresh`` adds the option
    where the user did not; ``target_path`` is the configured one; ``parsed`` is what dbt may begin
    to parse from.
    """
    words = [request.command, *_surroundings(request)]
    place = request.target_path or target_path
    if place is not None:
        words += ["--target-path", place]
    if request.threads is not None:
        words += ["--threads", str(request.threads)]
    if request.full_refresh or full_refresh:
        words.append("--full-refresh")
    if request.defer is not None:
        words.append("--defer" if request.defer else "--no-defer")
    defers = any(option.name == "--defer-state" for option in request.options)
    if request.state is not None and not defers:
        words += ["--defer-state", request.state]
    if parsed is not None:
        words += ["--partial-parse-file-path", str(parsed)]
    words += _words(request.running)
    # last, so that they win over what stands before
    words += ["--select", "result:error", "--state", str(state), "--indirect-selection", "empty"]
    return [*words, "--write-json"]


def parse_arguments(request: Request, *, target: Path, logs: Path) -> list[str]:
    """``dbt parse`` into a folder of sqb's own."""
    return ["parse", *_surroundings(request), *_words(request.reading), *_apart(target, logs)]


def list_arguments(request: Request, *, target: Path, logs: Path) -> list[str]:
    """``dbt ls`` of the user's selection; it writes a manifest too, into a folder of sqb's own."""
    words = ["ls", *_surroundings(request), *_words(request.reading), *_selection(request)]
    words += ["--output", "json", "--output-keys", "unique_id", *_apart(target, logs)]
    return words


def read_list(output: str) -> tuple[str, ...]:
    """The unique ids that ``dbt ls`` printed; lines that a macro printed are passed over.

    >>> read_list('hello from a macro\\n{"unique_id": "model.shop.a"}\\n')
    ('model.shop.a',)
    """
    found: dict[str, None] = {}
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        with contextlib.suppress(msgspec.MsgspecError):
            found[msgspec.json.decode(line, type=_Listed).unique_id] = None
    return tuple(found)


class _Listed(msgspec.Struct):
    unique_id: str


def selects_all(request: Request, root: Path, environ: Mapping[str, str]) -> bool:
    """Whether every node is selected, so that dbt need not be asked.

    A ``selectors.yml`` may name a default, and the environment may narrow what is selected.
    """
    return not (
        request.select
        or request.exclude
        or request.selector
        or request.selecting
        or any(environ.get(name) for name in _NARROWING)
        or (root / "selectors.yml").exists()
    )


def selected(
    request: Request, nodes: Iterable[DbtNode], listed: Collection[str] | None = None
) -> tuple[str, ...]:
    """The nodes that the command runs: of those that ``dbt ls`` named, or of all."""
    types = TYPES[request.command]
    within = None if listed is None else frozenset(listed)
    return tuple(
        node.unique_id
        for node in nodes
        if node.type in types and (within is None or node.unique_id in within)
    )


def selection_key(request: Request, root: Path, artifacts: Path) -> tuple[str, ...]:
    """All that a selection depends on, beside what dbt reads of the project.

    ``artifacts`` is the user's target folder: with a state folder, what dbt last found about
    sources is compared with it.
    """
    words = tuple(_selection(request))
    if request.state is None:
        return words
    state = root / request.state
    files = [*(state / name for name in _STATE_FILES), artifacts / SOURCES_FILE]
    return (*words, *(_hash(file) for file in files))


def _hash(file: Path) -> str:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _surroundings(request: Request) -> list[str]:
    words: list[str] = []
    for name, value in (
        ("--project-dir", request.project_dir),
        ("--profiles-dir", request.profiles_dir),
        ("--profile", request.profile),
        ("--target", request.target),
        ("--vars", request.vars),
    ):
        if value is not None:
            words += [name, value]
    return words


def _selection(request: Request) -> list[str]:
    words: list[str] = []
    for name, values in (("--select", request.select), ("--exclude", request.exclude)):
        for value in values:
            words += [name, value]
    if request.selector is not None:
        words += ["--selector", request.selector]
    if request.command == "run":
        words += ["--resource-type", "model"]
    if request.state is not None:
        words += ["--state", request.state]
    return words + _words(request.selecting)


def _apart(target: Path, logs: Path) -> list[str]:
    """What keeps a question apart from the user's artifacts, and its answer readable."""
    return [
        *("--target-path", str(target), "--log-path", str(logs), "--write-json"),
        *("--quiet", "--no-use-colors", "--log-format", "text", "--log-level", "info"),
        "--no-send-anonymous-usage-stats",
    ]


def _words(options: Iterable[Option]) -> list[str]:
    return [word for option in options for word in option.words]
