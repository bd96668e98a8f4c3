"""Which tables a query reads, with the exact span of each name in the text.

sqlglot reads the query; nothing it prints is ever run. A name that a CTE in scope defines is not a
reference.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import TokenType

from sqb.errors import SqbError
from sqb.sql.analysis import Analysis, Reference
from sqb.sql.moments import moments
from sqb.sql.tokens import Tokens, dialect, split

#: Explicit forms: the call's name -> what it must refer to.
CALLS = {"__ref": "model", "__source": "source", "__seed": "seed", "__dbt_ref": "dbt"}
LATER_CALLS = {"__udf": "0.5", "__table_fn": "0.5"}


def analyse(sql: str, *, file: str, first_line: int = 1) -> Analysis:
    """Parse ``sql`` (one query) and find what it reads.

    >>> a = analyse("WITH c AS (SELECT 1 FROM raw.x) SELECT * FROM c JOIN m", file="q")
    >>> [r.parts for r in a.references]
    [('raw', 'x'), ('m',)]
    """
    return analyse_tokens(split(sql, file=file, first_line=first_line), file)


def analyse_tokens(tokens: Tokens, file: str) -> Analysis:
    """``analyse`` for a text that is split already."""
    if not tokens.raws:
        raise SqbError(
            "P004",
            "the model has no query",
            file=file,
            line=tokens.first_line,
            help="write a SELECT",
        )
    calls = _calls(tokens, file) if "__" in tokens.sql else []
    tree = _parse(tokens, file)
    _refuse_untyped(tree, file, tokens.first_line)
    tables = _tables(tokens.sql, tree, tokens.first_line, file)
    constants, volatile = moments(tokens)
    references = tuple(sorted([*calls, *tables], key=lambda reference: reference.start))
    return Analysis(references, constants, volatile)


def _parse(tokens: Tokens, file: str) -> exp.Query:
    first_line = tokens.first_line
    try:
        parsed = dialect().parser().parse(tokens.parsed, tokens.sql)
    except Exception as error:  # its own mistakes, such as at map(1), are no traceback either
        first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        near = str(first.get("highlight") or "").strip()
        raise SqbError(
            "P004",
            "SQL that can't be parsed" + (f", near `{near}`" if near else ""),
            file=file,
            line=first_line + int(first.get("line") or 1) - 1,
            help=_help(tokens.sql, str(first.get("description") or "")),
        ) from error
    statements = [s for s in parsed if s is not None]
    if len(statements) != 1:
        raise SqbError(
            "P004",
            f"one query is expected, here are {len(statements)} statements",
            file=file,
            line=first_line,
            help="keep one SELECT",
        )
    tree = statements[0]
    if isinstance(tree, exp.Subquery):
        tree = tree.unnest()
    if not isinstance(tree, exp.Query):
        raise SqbError(
            "P004",
            f"a query is expected, this is {type(tree).__name__.upper()}",
            file=file,
            line=first_line,
            help="write a SELECT; sqb makes the table or view itself",
        )
    return tree


def _help(sql: str, description: str) -> str:
    """What to do about SQL that can't be parsed; the parser's own words where they help."""
    if "{{" in sql or "{%" in sql:
        return "this looks like dbt's Jinja: settings go into MODEL (…), a model is just its name"
    if description.startswith("Expecting"):
        return f"{description.rstrip('.').replace('Expecting', 'expected')} here"
    return "check the SQL around this line"


def _refuse_untyped(tree: exp.Query, file: str, first_line: int) -> None:
    if not isinstance(tree, exp.Select):
        return
    for projection in tree.expressions:
        value = projection.this if isinstance(projection, exp.Alias) else projection
        if isinstance(value, exp.Null):
            name = projection.alias or "NULL"
            identifier = projection.args.get("alias") if isinstance(projection, exp.Alias) else None
            line = int(identifier.meta.get("line", 1)) if identifier is not None else 1
            raise SqbError(
                "P013",
                f"column `{name}` is a bare NULL and has no type",
                file=file,
                line=first_line + line - 1,
                help=f"say which: CAST(NULL AS STRING) AS {name}",
            )


def _calls(tokens: Tokens, file: str) -> list[Reference]:
    found: list[Reference] = []
    raws = tokens.raws
    for i, raw in enumerate(raws):
        if not raw.startswith("__") or raws[i + 1 : i + 2] != ["("]:
            continue
        tok = tokens.at(i)
        if raw in LATER_CALLS:
            raise SqbError(
                "C011",
                f"`{raw}` arrives in release {LATER_CALLS[raw]}",
                file=file,
                line=tok.line,
            )
        if raw not in CALLS:
            continue
        wanted = 2 if CALLS[raw] == "dbt" else 1
        close = i + 1 + 2 * wanted
        names = [tokens.at(at) for at in range(i + 2, min(close, len(raws)), 2)]
        if (
            close >= len(raws)
            or raws[close] != ")"
            or raws[i + 3 : close : 2] != [","] * (wanted - 1)
            or any(name.type is not TokenType.STRING for name in names)
        ):
            example = f'{raw}("package", "model")' if wanted == 2 else f'{raw}("name")'
            number = "two quoted names" if wanted == 2 else "one quoted name"
            raise SqbError(
                "P005",
                f"`{raw}` takes {number}",
                file=file,
                line=tok.line,
                help=f"write {example}",
            )
        after = close + 1
        aliased = after < len(raws) and (
            raws[after].upper() == "AS"
            or tokens.parsed[after].token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        )
        parts = tuple(name.value for name in names)
        end = tokens.at(close).end
        found.append(Reference(CALLS[raw], parts, tok.start, end, tok.line, aliased, False))
    return found


def _tables(sql: str, tree: exp.Query, first_line: int, file: str) -> list[Reference]:
    found: list[Reference] = []
    hinted = "/*+" in sql
    for table in tree.find_all(exp.Table):
        identifier = table.this
        if hinted and table.find_ancestor(exp.Hint) is not None:
            continue
        if isinstance(identifier, exp.Dot) or identifier.name.upper() == "IDENTIFIER":
            raise SqbError(
                "C011",
                f"`{identifier.sql('spark')}`: a table named this way can't be tracked",
                file=file,
                line=first_line,
                help="name the table itself: schema.table",
            )
        if not isinstance(identifier, exp.Identifier) or "start" not in identifier.meta:
            continue
        qualifiers = [q for q in (table.args.get("catalog"), table.args.get("db")) if q is not None]
        parts = tuple(str(p.this) for p in [*qualifiers, identifier])
        if len(parts) == 1 and _is_cte(table, parts[0]):
            continue
        first = qualifiers[0] if qualifiers else identifier
        start, end = int(first.meta["start"]), int(identifier.meta["end"]) + 1
        if sql[start:end].replace("`", "").split(".")[0].strip() != parts[0].split(".")[0].strip():
            raise SqbError(
                "P004",
                f"`{'.'.join(parts)}`: the place of this name in the query can't be found",
                file=file,
                line=first_line,
                help="write the name as schema.table, without blanks or comments inside",
            )
        found.append(
            Reference(
                "name" if len(parts) == 1 else "table",
                parts,
                start,
                end,
                first_line + sql.count("\n", 0, start),
                bool(table.alias),
                table.args.get("version") is not None or table.args.get("when") is not None,
                _ref(table.args.get("version")),
            )
        )
    return found


def _ref(version: exp.Expr | None) -> str:
    """The branch or tag of VERSION AS OF; nothing for a snapshot or a time."""
    named = version.args.get("expression") if version is not None else None
    if version is None or version.name.upper() != "VERSION" or not isinstance(named, exp.Literal):
        return ""
    return named.name if named.is_string and not named.name.isdecimal() else ""


def _is_cte(table: exp.Table, name: str) -> bool:
    """Does a CTE that is visible at ``table`` define ``name``? A CTE sees those before it."""
    name = name.lower()
    child: exp.Expr = table
    parent = table.parent
    while parent is not None:
        with_ = parent.args.get("with_") if not isinstance(parent, exp.With) else None
        others = with_.expressions if with_ is not None and with_ is not child else []
        if any(cte.alias.lower() == name for cte in others):
            return True
        if isinstance(parent, exp.With):
            for cte in parent.expressions:
                if cte is child:
                    if parent.args.get("recursive") and cte.alias.lower() == name:
                        return True
                    break
                if cte.alias.lower() == name:
                    return True
        child, parent = parent, parent.parent
    return False
