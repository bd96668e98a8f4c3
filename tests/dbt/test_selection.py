"""Exactly the planned nodes are handed to dbt, and the user's own options with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqb.dbt.nodes import DbtNode
from sqb.dbt.request import Request
from sqb.dbt.selection import (
    chosen,
    list_arguments,
    parse_arguments,
    read_list,
    run_arguments,
    selected,
    selection_key,
    selects_all,
)

EXACT = "--select result:error --state /s --indirect-selection empty --write-json"
APART = (
    "--target-path /t --log-path /l --write-json --quiet --no-use-colors --log-format text "
    "--log-level info --no-send-anonymous-usage-stats"
)
JSON = "--output json --output-keys unique_id"


@pytest.mark.parametrize(
    ("given", "more", "expected"),
    [
        ({}, {}, "build"),
        ({"command": "run"}, {}, "run"),
        # what the user selected is settled
        ({"select": ("a+",), "exclude": ("b",), "selector": "s"}, {}, "build"),
        ({"target": "prod", "profile": "p"}, {}, "build --profile p --target prod"),
        ({"threads": 4}, {}, "build --threads 4"),
        ({"full_refresh": True}, {}, "build --full-refresh"),
        ({}, {"full_refresh": True}, "build --full-refresh"),
        ({}, {"target_path": "out"}, "build --target-path out"),
        ({"target_path": "mine"}, {"target_path": "out"}, "build --target-path mine"),
        ({"state": "prod"}, {}, "build --defer-state prod"),
        ({"defer": True, "state": "prod"}, {}, "build --defer --defer-state prod"),
        ({"defer": False}, {}, "build --no-defer"),
        (
            {"state": "prod", "rest": ("--defer-state", "other")},
            {},
            "build --defer-state other",
        ),
        ({"rest": ("--fail-fast", "--resource-type", "seed")}, {}, "build --fail-fast"),
        ({}, {"parsed": Path("/p.mp")}, "build --partial-parse-file-path /p.mp"),
        ({"rest": ("--no-write-json",)}, {}, "build --no-write-json"),
        (
            {"project_dir": "/p", "profiles_dir": "/q", "vars": "{a:1}"},
            {},
            "build --project-dir /p --profiles-dir /q --vars {a:1}",
        ),
    ],
)
def test_a_run_takes_the_chosen_nodes_only(
    given: dict[str, Any], more: dict[str, Any], expected: str
) -> None:
    words = run_arguments(Request(**given), Path("/s"), **more)
    assert " ".join(words) == f"{expected} {EXACT}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "ls"),
        ({"select": ("a+", "tag:b tag:c")}, "ls --select a+ --select tag:b tag:c"),
        ({"exclude": ("a",), "selector": "s"}, "ls --exclude a --selector s"),
        ({"command": "run"}, "ls --resource-type model"),
        ({"state": "prod"}, "ls --state prod"),
        ({"target": "prod", "full_refresh": True, "threads": 3}, "ls --target prod"),
        (
            {"rest": ("--no-partial-parse", "-x", "--indirect-selection", "cautious")},
            "ls --no-partial-parse --indirect-selection cautious",
        ),
    ],
)
def test_a_question_is_asked_apart_from_the_users_artifacts(
    given: dict[str, Any], expected: str
) -> None:
    request = Request(**given)
    words = list_arguments(request, target=Path("/t"), logs=Path("/l"))
    assert " ".join(words) == f"{expected} {JSON} {APART}"
    words = parse_arguments(Request(target="prod"), target=Path("/t"), logs=Path("/l"))
    assert " ".join(words) == f"parse --target prod {APART}"


def test_a_state_folder_is_of_one_run(tmp_path: Path) -> None:
    ids = ["test.shop.t", "model.shop.a"]
    with chosen(tmp_path / "s", ids) as one, chosen(tmp_path / "s", ids[:1]) as other:
        assert one != other
        assert one.is_absolute()
        written = json.loads((one / "run_results.json").read_text())
        assert [(r["unique_id"], r["status"]) for r in written["results"]] == [
            ("model.shop.a", "error"),
            ("test.shop.t", "error"),
        ]
    assert list((tmp_path / "s").iterdir()) == []
    with pytest.raises(ValueError, match="empty"), chosen(tmp_path / "s", []):
        pass


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("", ()),
        ('{"unique_id": "model.shop.a"}\n{"unique_id": "seed.shop.b"}\n', ("a", "b")),
        ('{"unique_id": "model.shop.a"}\n{"unique_id": "model.shop.a"}\n', ("a",)),
        ('said by a macro\n{"unique_id": "model.shop.a"}\n{"other": 1}\n{not json\n', ("a",)),
    ],
)
def test_a_list_is_read(output: str, found: tuple[str, ...]) -> None:
    assert tuple(name.rpartition(".")[2] for name in read_list(output)) == found


NODES = [
    DbtNode(f"{kind}.shop.{name}", name, kind, "shop", "")
    for kind, name in [
        *(("source", "visits"), ("seed", "raw"), ("model", "a"), ("snapshot", "h")),
        *(("test", "t"), ("unit_test", "u"), ("function", "f")),
    ]
]


@pytest.mark.parametrize(
    ("command", "listed", "names"),
    [
        ("build", None, "raw a h t u f"),
        ("run", None, "a"),
        ("build", ["source.shop.visits", "test.shop.t", "exposure.shop.e"], "t"),
        ("run", ["seed.shop.raw", "model.shop.a"], "a"),
        ("build", [], ""),
    ],
)
def test_what_a_command_runs(command: str, listed: list[str] | None, names: str) -> None:
    found = selected(Request(command=command), NODES, listed)
    assert [name.rpartition(".")[2] for name in found] == names.split()


@pytest.mark.parametrize(
    ("given", "environ", "all_of_it"),
    [
        ({}, {}, True),
        ({"command": "run", "full_refresh": True, "rest": ("-x",)}, {}, True),
        ({"state": "s", "defer": True}, {}, True),
        ({"select": ("a",)}, {}, False),
        ({"exclude": ("a",)}, {}, False),
        ({"selector": "s"}, {}, False),
        ({"rest": ("--resource-type", "seed")}, {}, False),
        ({}, {"DBT_RESOURCE_TYPES": "seed"}, False),
        ({}, {"DBT_ENGINE_EXCLUDE_RESOURCE_TYPES": "seed"}, False),
    ],
)
def test_dbt_is_asked_only_for_a_selection(
    tmp_path: Path, given: dict[str, Any], environ: dict[str, str], all_of_it: bool
) -> None:
    assert selects_all(Request(**given), tmp_path, environ) is all_of_it
    (tmp_path / "selectors.yml").write_text("selectors: []\n")
    assert not selects_all(Request(**given), tmp_path, environ)


def test_a_selection_is_known_by_all_that_it_depends_on(tmp_path: Path) -> None:
    artifacts = tmp_path / "target"
    artifacts.mkdir()

    def key(**given: Any) -> tuple[str, ...]:
        return selection_key(Request(**given), tmp_path, artifacts)

    assert key() == key(threads=4, rest=("-x",))
    keys = [key(), key(select=("a",)), key(exclude=("a",)), key(selector="a"), key(command="run")]
    keys.append(key(rest=("--indirect-selection", "empty")))
    keys.append(key(state="prod"))
    (tmp_path / "prod").mkdir()
    for file in ("prod/manifest.json", "prod/run_results.json", "target/sources.json"):
        (tmp_path / file).write_text("{}")
        keys.append(key(state="prod"))
    assert len(set(keys)) == len(keys)
