"""The files that two versions don't share: reading these alone tells how the versions differ."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest

from sqb.lake.data_files import DataFile, DeleteFile, Files
from sqb.lake.metadata import Column
from sqb.refresh.changes import TableChange
from sqb.refresh.differing import Part, Parts, Within, differing, limited

ID = Column(1, "id", "int", False)
NAME = Column(2, "name", "string", False)


def num(value: int, width: int = 4) -> bytes:
    return value.to_bytes(width, "little", signed=True)


def file(
    path: str, low: int = 0, high: int = 9, *, sequence: int = 1, place: str = "0:", nulls: int = 0
) -> DataFile:
    """A file of ten rows and ten bytes, whose ids are from ``low`` to ``high``."""
    return DataFile(path, sequence, place, 10, 10, {1: num(low)}, {1: num(high)}, {1: nulls})


def mark(
    target: str | None = None, place: str | None = None, *, path: str = "d", offset: int = 0
) -> DeleteFile:
    return DeleteFile(path, offset, 2, place, target)


A, B, C = file("a", 0, 9), file("b", 10, 19), file("c", 20, 29)


@pytest.mark.parametrize(
    ("old", "new", "gone", "come"),
    [
        # files that only one version has
        (Files((A, B)), Files((A, B, C)), "", "c"),
        (Files((A, B)), Files((B,)), "a", ""),
        (Files((A, B)), Files((B, C)), "a", "c"),
        (Files((A, B)), Files((B, A)), "", ""),
        # marks of deleted rows that only one version has
        (Files((A, B)), Files((A, B), (mark("a"),)), "a", "a"),
        (Files((A, B), (mark("a"),)), Files((A, B)), "a", "a"),
        (Files((A, B), (mark("a"),)), Files((A, B), (mark("a"),)), "", ""),
        (Files((A, B), (mark("a"),)), Files((A, B), (mark("a", path="e"),)), "a", "a"),
        # several marks in one file: each is told by its place there
        (Files((A, B), (mark("a"),)), Files((A, B), (mark("a"), mark("b", offset=4))), "b", "b"),
        (Files((A, B), (mark("a"),)), Files((A, B), (mark("a", offset=4),)), "a", "a"),
        # a mark that may be about any file of its partition
        (
            Files((A, file("p", place="0:1"), file("q", place="0:1"))),
            Files((A, file("p", place="0:1"), file("q", place="0:1")), (mark(None, "0:1"),)),
            "pq",
            "pq",
        ),
        # the same file added again is younger than what was deleted
        (Files((A, B)), Files((B, file("a", sequence=3))), "a", "a"),
        # or it is there twice
        (Files((A, B)), Files((A, A, B)), "a", "a"),
    ],
)
def test_a_file_differs_if_its_rows_may(old: Files, new: Files, gone: str, come: str) -> None:
    found = differing(old, new, [ID])
    assert found is not None
    assert ("".join(found.old.paths), "".join(found.new.paths)) == (gone, come)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Files((A,)), Files((B,))),
        (Files(), Files((A,))),
        (Files((A, B)), Files((A, B), (mark(),))),  # about every file
        (Files((A,)), Files((A, *(file(f"n{n}") for n in range(1001))))),
    ],
)
def test_both_versions_are_read_where_no_file_stays_or_too_many_come(
    old: Files, new: Files
) -> None:
    assert differing(old, new, [ID]) is None


@pytest.mark.parametrize(
    ("stays", "comes", "within"),
    [
        ([A, B], [C], Within("id", "int", (("20", "29"),), False)),
        ([B], [A, C], Within("id", "int", (("0", "9"), ("20", "29")), False)),
        ([A], [C, file("d", 25, 40)], Within("id", "int", (("20", "40"),), False)),
        ([A], [file("d", 20, 40, nulls=2)], Within("id", "int", (("20", "40"),), True)),
        # nothing is left out by a range that every file meets
        ([A, B], [file("d", 0, 40)], None),
        # nor where a file that stays has NULLs, or one that comes does not tell its range
        ([file("a", nulls=1)], [C], None),
        ([A], [C, msgspec.structs.replace(B, low={})], None),
        # many ranges are one
        (
            [file("a", -9, -1)],
            [file(f"n{n}", 2 * n, 2 * n) for n in range(30)],
            Within("id", "int", (("0", "58"),), False),
        ),
    ],
)
def test_a_range_leaves_out_files_that_stay(
    stays: list[DataFile], comes: list[DataFile], within: Within | None
) -> None:
    found = differing(Files(tuple(stays)), Files((*stays, *comes)), [ID])
    assert found is not None
    assert found.new.within == within
    left_out = within is not None
    assert found.new.read == 10 * (len(comes) + (0 if left_out else len(stays)))
    assert found.new.rows == 10 * len(comes)
    assert found.old == Part()


def test_of_several_columns_the_one_that_leaves_out_most_is_taken() -> None:
    def named(path: str, low: str, high: str, ids: tuple[int, int]) -> DataFile:
        bounds = [{1: num(i), 2: n.encode()} for i, n in zip(ids, (low, high), strict=True)]
        return DataFile(path, 1, "", 1, 10, *bounds, {1: 0, 2: 0})

    stay = (named("a", "a", "c", (0, 5)), named("b", "d", "f", (6, 9)))
    come = named("c", "x", "z", (4, 5))
    found = differing(Files(stay), Files((*stay, come)), [ID, NAME])
    assert found is not None
    assert found.new.within == Within("name", "string", (("x", "z"),), False)
    assert found.new.read == 10


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("int", num(-5), "-5"),
        ("long", num(-5, 8), "-5"),
        ("long", num(7), "7"),  # of a file from before the column was widened
        ("date", num(-1), "1969-12-31"),
        ("date", num(-719162), "0001-01-01"),
        ("date", num(-719163), None),
        ("timestamp", num(1, 8), "1970-01-01 00:00:00.000001"),
        ("timestamptz", num(-1, 8), "1969-12-31 23:59:59.999999+00:00"),
        ("timestamp", num(3), None),  # days, from before it was a timestamp
        (
            "decimal(38, 18)",
            (10**37 + 1).to_bytes(16, "big"),
            "1" + "0" * 19 + "." + "0" * 17 + "1",
        ),
        ("decimal(9, 0)", b"\xff", "-1"),
        ("string", "ä\n'".encode(), "ä\n'"),
        ("string", b"\xff", None),
        ("string", b"x" * 300, None),
        ("double", b"\0" * 8, None),
        ("boolean", b"\0", None),
        ("uuid", b"\0" * 16, None),
    ],
)
def test_bounds_are_told_as_they_are_or_not_at_all(kind: str, raw: bytes, text: str | None) -> None:
    column = Column(1, "c", kind, False)
    stays = DataFile("a", 1, "", 1, 1, {}, {}, {1: 0})
    comes = DataFile("b", 1, "", 1, 1, {1: raw}, {1: raw}, {1: 0})
    # files that stay have to tell, too, or nothing is left out
    other = DataFile(
        "c", 1, "", 1, 1, *[{1: b"" if kind == "string" else bytes(len(raw))}] * 2, {1: 0}
    )
    found = differing(Files((stays, other)), Files((stays, other, comes)), [column])
    assert found is not None
    within = found.new.within
    assert (within.ranges if within else None) == (((text, text),) if text is not None else None)


def test_a_change_is_as_large_as_the_files_that_differ() -> None:
    change = TableChange("versions", 1, 2, "not an ancestor", None, None, None)
    parts = Parts(Part(("a",), None, 10, 100), Part(("b", "c"), None, 25, 150))
    found = limited(change, parts)
    assert (found.added_rows, found.removed_rows, found.bytes) == (25, 10, 250)
    assert limited(change, Parts(Part(), Part())).way == "none"


class Table:
    """A table of files in Python: what each version holds is worked out row by row."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows: dict[str, list[int]] = {}
        self.gone: dict[DeleteFile, tuple[str, set[object]]] = {}
        self.version = Files()
        self.commits = 0

    def commit(self) -> None:
        """Add, drop or rewrite files, or mark rows as deleted in one of the ways there are."""
        rng, data, deletes = self.rng, list(self.version.data), list(self.version.deletes)
        self.commits += 1
        data += [self._file() for _ in range(rng.choice([1, 1, 2, 3]))]
        if data and rng.random() < 0.3:
            data.remove(rng.choice(data))
        if data and rng.random() < 0.7:
            deletes.append(self._mark(rng.choice(data)))
        if deletes and rng.random() < 0.2:
            deletes.remove(rng.choice(deletes))
        if data and rng.random() < 0.1:
            again = msgspec.structs.replace(rng.choice(data), sequence=self.commits)
            data.append(again)
        self.version = Files(tuple(data), tuple(deletes))

    def _file(self) -> DataFile:
        name = f"f{len(self.rows)}"
        ids = [self.rng.randrange(20) for _ in range(self.rng.randrange(1, 4))]
        self.rows[name] = ids
        bounds = {1: num(min(ids))}, {1: num(max(ids))}
        place = self.rng.choice(["0:1", "0:2"])
        return DataFile(name, self.commits, place, len(ids), 1, *bounds, {1: 0})

    def _mark(self, about: DataFile) -> DeleteFile:
        way = self.rng.choice(["one", "place", "equal", "everywhere"])
        ids = self.rows[about.path]
        path = f"d{len(self.gone)}"
        if way in ("one", "place"):
            place, target = about.place, about.path if way == "one" else None
            gone: set[object] = {(about.path, self.rng.randrange(len(ids)))}
        else:
            place, target = about.place if way == "equal" else "", None
            gone = {self.rng.choice(ids)}
        found = DeleteFile(path, None, self.commits, place or None, target)
        self.gone[found] = (way, gone)
        return found

    def content(self, version: Files, only: set[str] | None = None) -> Counter[int]:
        """The rows of a version, or those in some of its files."""
        out: Counter[int] = Counter()
        for data in version.data:
            if only is not None and data.path not in only:
                continue
            for position, value in enumerate(self.rows[data.path]):
                if not any(self._hits(d, data, position, value) for d in version.deletes):
                    out[value] += 1
        return out

    def _hits(self, mark: DeleteFile, data: DataFile, position: int, value: int) -> bool:
        way, gone = self.gone[mark]
        if way in ("one", "place"):
            return data.sequence <= mark.sequence and (data.path, position) in gone
        here = mark.place in (None, data.place)
        return here and data.sequence < mark.sequence and value in gone


def test_the_files_that_differ_give_the_whole_difference_whatever_was_committed() -> None:
    limits = Counter[bool]()
    for seed in range(400):
        table = Table(random.Random(seed))
        versions = []
        for _ in range(6):
            table.commit()
            versions.append(table.version)
        for old, new in zip(versions, reversed(versions), strict=True):
            parts = differing(old, new, [ID])
            limits[parts is not None] += 1
            if parts is None:
                continue
            whole, limited_to = Counter[int](), Counter[int]()
            for version, part, sign in ((old, parts.old, -1), (new, parts.new, 1)):
                for value, count in table.content(version).items():
                    whole[value] += sign * count
                read = table.content(version, set(part.paths))
                for value, count in read.items():
                    limited_to[value] += sign * count
                    if part.within is not None:
                        ranges = part.within.ranges
                        assert any(int(lo) <= value <= int(hi) for lo, hi in ranges)
            assert {k: v for k, v in whole.items() if v} == {
                k: v for k, v in limited_to.items() if v
            }, seed
    assert min(limits.values()) > 100
