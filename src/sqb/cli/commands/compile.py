"""``sqb compile``: check the whole project, and write its SQL and a manifest to ``.sqb``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command
from sqb.cli.render.words import count, duration

if TYPE_CHECKING:
    from sqb.api import Project


def compile_(call: Call) -> None:
    """Compile and print counts."""
    project = call.project()
    selected = project.select(call.select, call.exclude)
    manifest = _manifest(project)
    folder = project.work_dir / "compiled"
    written = _write_sql(project, folder, selected, whole=not (call.select or call.exclude))
    _write(project.work_dir / "manifest.json", _json(manifest))
    compiled = project.compiled
    counts = {
        "models": len(compiled.models),
        "seeds": len(compiled.seeds),
        "sources": len(compiled.sources),
        "disabled": len(compiled.disabled),
    }
    if call.out.json:
        call.out.document(
            {
                "schema_version": 1,
                "target": project.config.target.name,
                "summary": counts,
                "manifest": ".sqb/manifest.json",
                "nodes": [node for node in manifest["nodes"] if node["name"] in selected],
                "written": written,
            }
        )
        return
    text = ", ".join(count(number, what[:-1]) for what, number in list(counts.items())[:3])
    if counts["disabled"]:
        text += f", {counts['disabled']} disabled"
    call.out.important(
        f"{call.out.style('Compiled', fg='green')} {text} "
        + call.out.style(f"({duration(call.seconds())})", dim=True)
    )
    call.out.line(f"{count(len(written), 'query').replace('querys', 'queries')} in .sqb/compiled")


def _write_sql(
    project: Project, folder: Path, selected: frozenset[str], *, whole: bool
) -> list[str]:
    """Each model's query with full names. What a model left behind that is gone goes too."""
    from sqb.execution.sources import read_source
    from sqb.execution.statement import full_name, render

    compiled, catalog = project.compiled, project.config.catalog.name

    def place(name: str, travels: bool) -> tuple[str, bool]:
        node = project.expected.get(name)
        if node is not None:
            return full_name(catalog, node.namespace, node.relation), False
        return read_source(compiled, catalog, name, travels, {}, {})

    if whole and folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    base = str(folder)
    for name in project.expected:
        model = compiled.models.get(name)
        if model is None or name not in selected:
            continue
        text = render(model.sql, model.analysis, compiled.bindings[name], place, {}).text
        # plain strings: with thousands of models a path object each is a tenth of the time
        with open(f"{base}/{name}.sql", "wb") as file:  # noqa: PTH123
            file.write((project.mask(text.strip()) + "\n").encode())
        written.append(f".sqb/compiled/{name}.sql")
    return written


def _manifest(project: Project) -> dict[str, Any]:
    """Every node and source of the project, for other tools."""
    compiled = project.compiled
    nodes: list[dict[str, Any]] = []
    for node in project.expected.values():
        described = compiled.models.get(node.name)
        seed = compiled.seeds.get(node.name)
        nodes.append(
            {
                "name": node.name,
                "type": node.type,
                "path": node.path,
                "materialized": node.materialized,
                "schema": node.namespace,
                "relation": node.relation,
                "tags": list(node.tags),
                "description": (
                    described.settings.description if described else seed and seed.description
                ),
                "depends_on": list(compiled.parents.get(node.name, ())),
                "version": node.version,
            }
        )
    return {
        "schema_version": 1,
        "project": project.config.name,
        "target": project.config.target.name,
        "nodes": nodes,
        "sources": [
            {"name": s.name, "schema": s.namespace, "table": s.table, "declared": s.declared}
            for _, s in sorted(compiled.sources.items())
        ],
    }


def _json(value: object) -> bytes:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def _write(path: Path, content: bytes) -> None:
    """Never half a file, whoever reads it at the same time."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content)
    temporary.replace(path)


command = sqb_command(
    "compile",
    help="Check the project and write its SQL to .sqb/compiled.",
    example="""
sqb compile
sqb compile --select stg_orders && cat .sqb/compiled/stg_orders.sql
""",
    hides=("verbose",),
)(compile_)
