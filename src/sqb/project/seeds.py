"""Seeds: a CSV file read into rows of texts with a Spark type per column.

Values stay texts, or None for NULL; casting them is Spark's business. Noise that parses to the
same rows (a byte order mark, CRLF, needless quotes) does not reach :func:`seed_identity`.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.project.keys import canonical
from sqb.project.names import check_name, name_files, stem
from sqb.project.seed_specs import CsvSettings, SeedSpec, load_seed_specs

__all__ = [
    "CsvSettings",
    "Seed",
    "SeedSpec",
    "infer_type",
    "load_seed_specs",
    "match_specs",
    "read_seed",
    "seed_identity",
]

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
#: An exponent counts only beside a point or sign: codes such as 12e5 are no numbers.
_DOUBLE = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?|[eE][+-][0-9]{1,3})?"
    r"|-?\.[0-9]+"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-](?:0[0-9]|1[0-8]):[0-5][0-9])?"
)
_BIGGEST = 2**63 - 1
#: What ``keep_default_na`` adds to the empty field, as in pandas.
_DEFAULT_NA = frozenset(
    {
        *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    }
)


class Seed(msgspec.Struct, frozen=True):
    """The parsed contents of one CSV file."""

    name: str
    file: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str | None, ...], ...]
    #: The line on which each row starts.
    lines: tuple[int, ...]
    settings: CsvSettings = CsvSettings()
    description: str | None = None
    tags: tuple[str, ...] = ()
    schema: str | None = None


def match_specs(specs: Mapping[str, SeedSpec], paths: Iterable[str]) -> None:
    """Every entry of a seeds file has its CSV (else P011), every CSV a name of its own."""
    named = name_files(paths, "seed")
    for name, spec in specs.items():
        if name not in named:
            raise SqbError(
                "P011",
                f"there is no seeds/{name}.csv for the seed `{name}`",
                file=spec.file,
                line=spec.line,
                help=did_you_mean(name, named),
            )


def read_seed(path: str, content: bytes, spec: SeedSpec | None) -> Seed:
    """Read a CSV file; types that ``spec`` does not declare are inferred from all values."""
    name = check_name(stem(path), "seed", file=path)
    settings = spec.csv_settings if spec else CsvSettings()
    records, lines = _records(path, _decoded(path, content, settings.encoding), settings)
    if not records:
        raise _bad(path, 1, "the file is empty", "the first row must name the columns")
    header = _header(path, records[0], lines[0])
    for record, line in zip(records, lines, strict=True):
        if len(record) != len(header):
            raise _bad(
                path,
                line,
                f"the row has {len(record)} fields, the header {len(header)}",
                "quote fields that hold the delimiter",
            )
    nulls = _null_texts(settings, header)
    rows = tuple(
        tuple(
            None if value == "" or value in null else value
            for value, null in zip(record, nulls, strict=True)
        )
        for record in records[1:]
    )
    return Seed(
        name=name,
        file=path,
        columns=_typed(path, header, rows, spec),
        rows=rows,
        lines=tuple(lines[1:]),
        settings=settings,
        description=spec.description if spec else None,
        tags=spec.tags if spec else (),
        schema=spec.schema if spec else None,
    )


def seed_identity(seed: Seed) -> str:
    """What decides a seed's table: rows, columns, types and the settings they were read with."""
    settings = msgspec.to_builtins(seed.settings)
    settings.pop("lineterminator", None)
    return canonical({"columns": seed.columns, "rows": seed.rows, "settings": settings})


def infer_type(values: Sequence[str | None]) -> str:
    """The Spark type that all values of a column fit; STRING if in doubt.

    >>> infer_type(["1", None, "20"]), infer_type(["007"]), infer_type(["1", "2.5"])
    ('BIGINT', 'STRING', 'DOUBLE')
    """
    present = [value for value in values if value is not None]
    if present:
        for name, fits in _INFERRED:
            if all(map(fits, present)):
                return name
    return "STRING"


def _is_integer(value: str) -> bool:
    return _INTEGER.fullmatch(value) is not None and -_BIGGEST - 1 <= int(value) <= _BIGGEST


def _is_double(value: str) -> bool:
    # A whole number beyond 64 bits would lose digits.
    return _DOUBLE.fullmatch(value) is not None and (
        _is_integer(value) or not value.lstrip("-").isdigit()
    )


def _is_boolean(value: str) -> bool:
    return value.lower() in ("true", "false")


def _is_date(value: str) -> bool:
    if not _DATE.fullmatch(value):
        return False
    try:
        dt.date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_timestamp(value: str) -> bool:
    if not _is_date(value[:10]):
        return False
    return len(value) == 10 or (value[10] in " T" and _TIME.fullmatch(value[11:]) is not None)


_INFERRED: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("BIGINT", _is_integer),
    ("DOUBLE", _is_double),
    ("BOOLEAN", _is_boolean),
    ("DATE", _is_date),
    ("TIMESTAMP", _is_timestamp),
)


def _decoded(path: str, content: bytes, encoding: str) -> str:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise _bad(
            path,
            content.count(b"\n", 0, error.start) + 1,
            f"the file is not valid {encoding}",
            "save it as UTF-8, or set csv_settings: {encoding: …} in a seeds file",
        ) from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _records(path: str, text: str, settings: CsvSettings) -> tuple[list[list[str]], list[int]]:
    """The records that are no blank lines, and the line on which each starts."""
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=settings.delimiter,
        quotechar=settings.quotechar,
        doublequote=settings.doublequote,
        escapechar=settings.escapechar,
        skipinitialspace=settings.skipinitialspace,
        strict=True,
    )
    records: list[list[str]] = []
    lines: list[int] = []
    before = csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    start = 1
    try:
        for record in reader:
            if record:
                records.append(record)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise _bad(path, start, f"{error}", "check the quotes in this row") from None
    finally:
        csv.field_size_limit(before)
    return records, lines


def _header(path: str, record: list[str], line: int) -> tuple[str, ...]:
    header = tuple(name.strip() for name in record)
    seen: set[str] = set()
    for position, name in enumerate(header, 1):
        if not name:
            raise _bad(path, line, f"column {position} has no name", "name it in the first row")
        if name.lower() in seen:
            raise _bad(path, line, f"two columns have the name `{name}`", "rename one of them")
        seen.add(name.lower())
    return header


def _null_texts(settings: CsvSettings, header: Sequence[str]) -> list[frozenset[str]]:
    usual = _DEFAULT_NA if settings.keep_default_na else frozenset[str]()
    given = settings.na_values
    if isinstance(given, dict):
        folded = {column.lower(): values for column, values in given.items()}
        return [usual.union(folded.get(name.lower(), ())) for name in header]
    return [usual.union(given)] * len(header)


def _typed(
    path: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    spec: SeedSpec | None,
) -> tuple[tuple[str, str], ...]:
    present = {name.lower() for name in header}
    declared = {name.lower(): kind for name, kind in spec.columns} if spec else {}
    for name, _ in spec.columns if spec else ():
        if name.lower() not in present:
            raise _bad(
                path,
                1,
                f"the column `{name}` that {spec.file if spec else ''} declares is not in the file",
                did_you_mean(name, header) or f"its columns are {', '.join(header)}",
            )
    return tuple(
        (name, declared.get(name.lower()) or infer_type([row[position] for row in rows]))
        for position, name in enumerate(header)
    )


def _bad(path: str, line: int, message: str, help: str) -> SqbError:
    return SqbError("P012", f"{stem(path)}.csv: {message}", file=path, line=line, help=help)
