"""The aggregates that the groups of a split query hold, so that all it computes follows from them.

Counts and sums take rows in and give rows up; so FILTER and COUNT_IF are written as what is counted
or added, and an average is kept beside the sum and the count that it follows from. What can't be
kept up by them is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from sqb.sql.cursor import Cursor
from sqb.sql.fragments import CallUse, Fragment
from sqb.sql.tokens import Tokens

#: Words of our own, or a piece of the user's text.
Part = str | tuple[int, int]
#: The tokens between two places of the text.
TokensOf = Callable[[int, int], Sequence[object]]

_BOTH_WAYS = frozenset({"count", "sum"})
_AVERAGES = frozenset({"avg", "mean"})
_GROWING = frozenset(
    {"min", "max", "bool_and", "bool_or", "every", "some", "any", "bit_and", "bit_or"}
)


class Whole(Exception):  # noqa: N818 - an outcome, not a failure
    """Why a query is not split."""


class Kept(msgspec.Struct, frozen=True):
    """One aggregate of the groups; ``told`` is what tells it from others."""

    function: str
    told: tuple[object, ...]
    parts: tuple[Part, ...]


ALL = Kept("count", ("*",), ("COUNT(*)",))


class Aggregates:
    """All aggregates that the groups hold, each under a name."""

    def __init__(
        self, read: Tokens, calls: Iterable[CallUse], tokens_of: TokensOf, taken: set[str]
    ) -> None:
        self.read, self.tokens_of = read, tokens_of
        self._of: dict[CallUse, Kept] = {}
        found: dict[tuple[str, tuple[object, ...]], Kept] = {}
        for call in dict.fromkeys(calls):
            kept = self._of[call] = self._kept(call)
            beside = [kept]
            if kept.function == "avg":  # an average follows from these
                # adding up whole numbers may overflow where averaging them does not
                beside.append(Kept("try_sum", kept.told, ("TRY_SUM(", *kept.parts[1:])))
                beside.append(_large(kept))
            if kept.function in ("sum", "avg"):  # tells when the sum is one of nothing
                beside.append(Kept("count", kept.told, ("COUNT(", *kept.parts[1:])))
            for one in beside:
                found.setdefault((one.function, one.told), one)
        found.pop((ALL.function, ALL.told), None)
        order = sorted(found.values(), key=lambda one: (one.function, repr(one.told)))
        self.columns = [(fresh("n", taken, first=""), ALL)]
        self.columns += [(fresh("a", taken), one) for one in order]
        self._names = {(one.function, one.told): name for name, one in self.columns}

    def name(self, call: CallUse) -> str:
        """The column that holds an aggregate."""
        kept = self._of[call]
        return self._names[(kept.function, kept.told)]

    def enough(self, made: Sequence[int | CallUse | None], keys: int) -> bool:
        """Would the results alone do as well? Each is a key, an aggregate or something else."""
        merges = all(kept.function in _BOTH_WAYS for _, kept in self.columns)
        places = [one for one in made if isinstance(one, int)]
        if None in made or sorted(places) != list(range(keys)):
            return False
        calls = [one for one in made if isinstance(one, CallUse)]
        if any(self._of[call].function == "avg" for call in calls):
            return False
        if not merges:
            return True
        if any(call.filtered or call.name not in _BOTH_WAYS for call in calls):
            return False
        counted = {self._of[call].told for call in calls if call.name == "count"}
        sums = {self._of[call].told for call in calls if call.name == "sum"}
        return not keys or (ALL.told in counted and sums <= counted)

    def _kept(self, call: CallUse) -> Kept:
        shown = call.name.upper()
        if call.distinct:
            raise Whole(f"{shown}(DISTINCT) needs all values of a group")
        if call.ordered or call.name not in _BOTH_WAYS | _GROWING | _AVERAGES | {"count_if"}:
            raise Whole(f"{shown} can't be kept up from what changed")
        if call.queries or any(argument.calls for argument in call.arguments):
            raise Whole(f"{shown} works on a sub-query or another aggregate")
        test = self._filter(call) if call.filtered else None
        if call.name == "count_if":
            return self._counted_if(call, test)
        if call.name == "count" and not call.arguments:
            return ALL if test is None else self._cases("count", test, None)
        if test is None:
            if call.name in _AVERAGES and len(call.arguments) != 1:
                raise Whole(f"{shown} of several values")
            parts: list[Part] = [f"{shown}("]
            told: list[object] = []
            for n, argument in enumerate(call.arguments):
                parts += [", "] * (n > 0) + [(argument.start, argument.end)]
                told += [",", *self.tokens_of(argument.start, argument.end)]
            return Kept(_kind(call), tuple(told), (*parts, ")"))
        if len(call.arguments) != 1:
            raise Whole(f"{shown} of several values with FILTER")
        return self._cases(_kind(call), test, call.arguments[0])

    def _counted_if(self, call: CallUse, test: tuple[int, int] | None) -> Kept:
        (argument,) = call.arguments
        own = (argument.start, argument.end)
        if test is not None:
            raise Whole("COUNT_IF with FILTER")
        return self._cases("count", own, None)

    def _cases(self, function: str, test: tuple[int, int], value: Fragment | None) -> Kept:
        """An aggregate over those rows alone that pass a test."""
        wanted: Part = "1" if value is None else (value.start, value.end)
        told: list[object] = ["CASE", "WHEN", *self.tokens_of(*test), "THEN"]
        told += ["1"] if value is None else self.tokens_of(value.start, value.end)
        parts = (f"{function.upper()}(", "CASE WHEN ", test, " THEN ", wanted, " END)")
        return Kept(function, tuple(told), parts)

    def _filter(self, call: CallUse) -> tuple[int, int]:
        """The condition of FILTER (WHERE …)."""
        starts = [token.start for token in self.read.parsed]
        begin = starts.index(call.start)
        cursor = Cursor(self.read, begin + 1, len(starts))
        cursor.inner()
        cursor.need("FILTER")
        inside = cursor.inner()
        inside.need("WHERE")
        last = self.read.parsed[inside.stop - 1]
        return starts[inside.at], last.end + 1


def _kind(call: CallUse) -> str:
    return "avg" if call.name in _AVERAGES else call.name


def _large(average: Kept) -> Kept:
    """How many values are beyond 2^52: Spark averages whole numbers as doubles."""
    end = f" AS DOUBLE) NOT BETWEEN -{1 << 52} AND {1 << 52} THEN 1 END)"
    parts = ("COUNT(CASE WHEN CAST((", *average.parts[1:], end)
    return Kept("count", ("LARGE", *average.told), parts)


def fresh(letter: str, taken: set[str], first: str = "1") -> str:
    """A name that is not taken, and is from now on.

    >>> taken = {"g1"}
    >>> fresh("g", taken), fresh("g", taken), fresh("n", taken, first="")
    ('g2', 'g3', 'n')
    """
    number = 1
    name = letter + first
    while name in taken:
        number += 1
        name = f"{letter}{number}"
    taken.add(name)
    return name
