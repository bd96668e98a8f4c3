"""Comments in a metadata document: pure edits."""

from __future__ import annotations

from sqb.lake.describe import Description, decode, described_table, encode, properties, with_docs


def table(*docs: str | None) -> dict[str, object]:
    fields = [{"id": i, "name": f"c{i}", "type": "int"} for i in range(len(docs))]
    fields = [f | ({"doc": d} if d else {}) for f, d in zip(fields, docs, strict=True)]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    return {"schemas": [schema], "current-schema-id": 0}


def docs(document: dict[str, object]) -> list[str | None]:
    schemas: list[dict[str, object]] = document["schemas"]  # type: ignore[assignment]
    current = next(s for s in schemas if s["schema-id"] == document["current-schema-id"])
    return [f.get("doc") for f in current["fields"]]  # type: ignore[attr-defined]


def test_nothing_described_is_no_property() -> None:
    assert encode(Description()) == ""
    assert properties("") == {}
    assert decode("not json") == decode(None) == Description()


def test_a_new_comment_is_a_new_schema_and_an_old_one_comes_back() -> None:
    one, other = (encode(Description(columns={"C0": text})) for text in ("a", "b"))
    first = described_table(table(None, "theirs"), None, one)
    assert docs(first) == ["a", "theirs"]
    second = described_table(first, one, other)
    assert docs(second) == ["b", "theirs"]
    back = described_table(second, other, one)
    assert back["current-schema-id"] == first["current-schema-id"]
    assert described_table(back, one, one) is back


def test_only_comments_that_sqb_wrote_are_taken_away() -> None:
    before = Description(columns={"c0": "ours", "c1": "ours"})
    fields = [{"name": "c0", "doc": "ours"}, {"name": "c1", "doc": "edited by hand"}]
    assert with_docs(fields, before, Description()) == [
        {"name": "c0"},
        {"name": "c1", "doc": "edited by hand"},
    ]
