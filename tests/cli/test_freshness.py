"""``sqb freshness`` on files, which need no Spark, and what plan and explain say of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FILES = {
    "sqlbuild_project.toml": '[defaults]\nmaterialized = "table"\n',
    "data/people.csv": "id\n1\n",
    "data/events/a.json": '{"id": 1}\n',
    "sources/files.yml": "sources:\n"
    "  - name: people\n"
    "    path: data/people.csv\n"
    "    format: csv\n"
    "    freshness: {strategy: adapter, age_policy: {warn_after: 1h, error_after: 1d}}\n"
    "  - {name: events, path: data/events, format: json}\n"
    "  - {name: gone, path: data/gone, format: json}\n",
    "models/p.sql": "SELECT id FROM people\n",
    "models/e.sql": "SELECT id FROM events\n",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MOMENT = 1_769_839_200  # 2026-01-31 06:00:00 UTC


@pytest.fixture
def files(tmp_path: Path) -> Path:
    root = write(tmp_path / "files", FILES)
    for path in ("data/people.csv", "data/events/a.json"):
        os.utime(root / path, (MOMENT, MOMENT))
    return root


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch):
    return lambda text: monkeypatch.setenv("SQB_NOW", f"2026-01-31T{text}Z")


def test_one_line_per_source(sqb, files: Path, at) -> None:
    at("08:30:00")
    done = sqb("freshness", cwd=files)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("events  observed  files ")
    assert lines[0].endswith("2h 30m old")
    assert lines[1].split() == ["gone", "unknown", "no", "file", "is", "at", "data/gone"]
    assert lines[2].endswith("2h 30m old, more than warn_after 1h")
    assert lines[3].startswith("3 sources: 2 observed, 1 unknown")
    assert not (files / "lake").exists()


def test_json_has_the_fields_of_the_contract(sqb, files: Path, at) -> None:
    at("08:30:00")
    done = sqb("freshness", "--json", "--state", cwd=files)
    document = done.json("freshness")
    found = {source["name"]: source for source in document["sources"]}
    assert document["summary"] == {
        "observed": 0,
        "changed": 2,
        "unchanged": 0,
        "tolerated": 0,
        "unknown": 1,
        "error": 0,
    }
    assert found["people"]["age_status"] == "warn"
    assert found["people"]["age_seconds"] == 9000
    assert (found["people"]["strategy"], found["people"]["value_kind"]) == ("adapter", "files")
    assert found["people"]["previous"] is None
    assert found["events"]["age_status"] == "pass"
    assert found["gone"]["current"] is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 0),
        (("--fail-on-error",), 1),
        (("--fail-on-error", "--exclude", "gone"), 0),
        (("--state", "--fail-on-stale", "--exclude", "gone"), 1),
        (("--fail-on-stale",), 2),
        (("--select", "nothing"), 2),
        (("--select", "people", "--exclude", "people"), 2),
    ],
)
def test_it_fails_only_on_what_it_was_told(
    sqb, files: Path, at, arguments: tuple[str, ...], code: int
) -> None:
    at("08:30:00")
    assert sqb("freshness", *arguments, cwd=files).code == code


@pytest.mark.parametrize(
    ("selector", "names"),
    [("people", ["people"]), ("source:e*", ["events"]), ("p", ["people"]), ("+e", ["events"])],
)
def test_a_model_stands_for_the_sources_above_it(
    sqb, files: Path, selector: str, names: list[str]
) -> None:
    document = sqb("freshness", "--json", "-s", selector, cwd=files).json("freshness")
    assert [source["name"] for source in document["sources"]] == names


def test_a_source_that_is_too_old_blocks_in_plan_and_build(sqb, files: Path, at) -> None:
    at("23:59:59")
    assert [n["action"] for n in sqb("plan", "--json", cwd=files).json("plan")["nodes"]] == [
        "run",
        "run",
    ]
    os.utime(files / "data/people.csv", (MOMENT - 86_400, MOMENT - 86_400))
    document = sqb("plan", "--json", cwd=files).json("plan")
    nodes = {n["name"]: (n["action"], n["reason"]) for n in document["nodes"]}
    assert nodes == {"p": ("block", "source_freshness_error"), "e": ("run", "first_run")}
    assert [w["code"] for w in document["warnings"]] == ["S307"]
    assert sqb("freshness", "-s", "people", "--fail-on-error", cwd=files).code == 1
    done = sqb("plan", "-s", "p", "--fail-on", "blocked", cwd=files)
    assert done.code == 1
    assert "Blocked (1)" in done.out
    done = sqb("build", "-s", "p", "--json", cwd=files)
    assert done.code == 1
    (node,) = done.json("build")["nodes"]
    assert (node["status"], node["reason"]) == ("blocked", "source_freshness_error")
    assert node["cause"] == {"node": "people", "reason": "source_freshness_error"}


def test_a_source_without_files_is_told_where_it_is_read(sqb, files: Path) -> None:
    write(files, {"models/g.sql": "SELECT 1 AS one FROM gone\n"})
    done = sqb("plan", cwd=files)
    assert done.code == 2
    assert "error[S303]" in done.err
    assert "models/g.sql:1" in done.err


def test_explain_lineage_ls_and_compile_know_files(sqb, files: Path) -> None:
    document = sqb("explain", "p", "--json", cwd=files).json("explain")
    assert document["inputs"][0]["reading"] == "pinned"
    assert "__sqb_files_people" in document["sql"]
    assert "people  source" in sqb("lineage", "p", cwd=files).out
    assert "p" in sqb("ls", "-s", "source:people+", cwd=files).out
    assert sqb("compile", cwd=files).code == 0
