"""Names of models, seeds and sources."""

from __future__ import annotations

import pytest

from sqb.errors import SqbError
from sqb.project.names import check_name, name_files


@pytest.mark.parametrize("name", ["a", "_a", "stg_orders", "Orders2", "_sql"])
def test_identifiers_are_names(name: str) -> None:
    assert check_name(name, "model") == name


@pytest.mark.parametrize(
    "name", ["", "1a", "a-b", "a.b", "ä", "a b", "_sqlbuild_x", "__x", "_SQLBuild"]
)
def test_other_texts_and_reserved_prefixes_are_refused(name: str) -> None:
    with pytest.raises(SqbError) as caught:
        check_name(name, "model", file="f", line=3)
    assert (caught.value.code, caught.value.file, caught.value.line) == ("P016", "f", 3)


def test_two_files_with_one_stem_are_refused_whatever_their_case() -> None:
    assert name_files(["models/a.sql", "models/x/b.sql"], "model") == {
        "a": "models/a.sql",
        "b": "models/x/b.sql",
    }
    with pytest.raises(SqbError, match=r"models/x/A\.sql") as caught:
        name_files(["models/a.sql", "models/x/A.sql"], "model")
    assert caught.value.code == "P007"
