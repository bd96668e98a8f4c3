"""The selector language."""

from __future__ import annotations

import pytest

from sqb.errors import SqbError
from sqb.graph.graph import CycleError, Graph
from sqb.graph.selectors import Selectable, select

GRAPH = Graph(
    {
        "raw.x": [],
        "names": [],
        "stg_a": ["raw.x"],
        "stg_b": ["raw.x", "names"],
        "mid": ["stg_a", "stg_b"],
        "top": ["mid"],
        "side": ["stg_a"],
    }
)
NODES = {
    "raw.x": Selectable("raw.x", "source", "sources/s.yml", ()),
    "names": Selectable("names", "seed", "seeds/names.csv", ()),
    "stg_a": Selectable("stg_a", "model", "models/staging/stg_a.sql", ("daily",)),
    "stg_b": Selectable("stg_b", "model", "models/staging/stg_b.sql", ()),
    "mid": Selectable("mid", "model", "models/mid.sql", ("daily", "core")),
    "top": Selectable("top", "model", "models/marts/top.sql", ("core",)),
    "side": Selectable("side", "model", "models/marts/side.sql", ()),
}

PICKS = [
    (["mid"], "mid"),
    (["stg_*"], "stg_a stg_b"),
    (["+mid"], "mid names stg_a stg_b"),
    (["mid+"], "mid top"),
    (["+mid+"], "mid names stg_a stg_b top"),
    (["1+top"], "mid top"),
    (["2+top"], "mid stg_a stg_b top"),
    (["stg_a+1"], "mid side stg_a"),
    (["stg_a~top"], "mid stg_a top"),
    (["tag:daily"], "mid stg_a"),
    (["tag:daily,tag:core"], "mid"),
    (["tag:daily tag:core"], "mid stg_a top"),
    (["side", "top"], "side top"),
    (["path:marts"], "side top"),
    (["path:models/marts"], "side top"),
    (["path:models/marts/top.sql"], "top"),
    (["source:raw.x+"], "mid side stg_a stg_b top"),
    (["source:raw.*+1"], "stg_a stg_b"),
    (["seed:names"], "names"),
    (["seed:names+"], "mid names stg_b top"),
    ([], "mid names side stg_a stg_b top"),
]


@pytest.mark.parametrize(("include", "names"), PICKS, ids=[" ".join(p[0]) or "all" for p in PICKS])
def test_picks(include: list[str], names: str) -> None:
    assert sorted(select(NODES, GRAPH, include)) == names.split()


def test_exclude_takes_away() -> None:
    assert sorted(select(NODES, GRAPH, ["+top"], ["stg_*"])) == ["mid", "names", "top"]


@pytest.mark.parametrize(
    ("include", "exclude", "code"),
    [
        (["nope"], [], "S001"),
        (["tag:nope"], [], "S001"),
        (["source:raw.x"], [], "S001"),
        (["mid"], ["mid"], "S001"),
        (["tga:daily"], [], "S002"),
        (["a~"], [], "S002"),
        (["+"], [], "S002"),
    ],
)
def test_a_selection_of_nothing_is_an_error(
    include: list[str], exclude: list[str], code: str
) -> None:
    with pytest.raises(SqbError) as error:
        select(NODES, GRAPH, include, exclude)
    assert error.value.code == code


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(SqbError) as error:
        select(NODES, GRAPH, ["stg_aa"])
    assert error.value.help == "did you mean `stg_a`?"


def test_a_circle_is_printed() -> None:
    graph = Graph({"a": ["c"], "b": ["a"], "c": ["b"], "d": ["a"]})
    with pytest.raises(CycleError) as error:
        _ = graph.order
    assert error.value.path == ["a", "c", "b", "a"]  # each reads the next
