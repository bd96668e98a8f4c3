"""What a test asks about a lake: which files are there, which are reachable, what is left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqb.api import Project
from sqb.lake.catalog import SqlCatalog
from sqb.lake.io import local_path, normalised
from sqb.lake.staging import stage_schema

if TYPE_CHECKING:
    from sqb.lake.catalog import Head


def files_below(location: str) -> set[str]:
    """Every file in a relation's folder; checksums that belong to a file are left out."""
    found = {path for path in local_path(location).rglob("*") if path.is_file()}
    sums = {p for p in found if p.suffix == ".crc" and p.with_name(p.name[1:-4]) in found}
    return {normalised(str(path)) for path in found - sums}


def home(project: Project, schema: str, name: str) -> str:
    """The folder of a relation: where it is, or where it would be."""
    head = project.catalog.head(schema, name)
    if isinstance(project.catalog, SqlCatalog):
        return project.catalog.default_location(schema, name)
    assert head is not None
    return project.facts.get(head.location).location


def reachable(head: Head) -> set[str]:
    """Every file that a relation's head leads to, asked of pyiceberg and not of sqb."""
    if head.kind == "view":
        return {normalised(head.location)}
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(head.location)
    files = {head.location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.metadata.snapshots:
        files.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            files.add(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            files |= {entry.data_file.file_path for entry in entries}
    return {normalised(file) for file in files}


def leftovers(project: Project) -> list[str]:
    """Staged relations and leases of any run."""
    out: list[str] = []
    for namespace in project.namespaces():
        stage = stage_schema(namespace)
        out += [head.name for head in project.catalog.heads([stage]).values()]
        properties = project.catalog.namespace_properties(stage)
        out += [key for key in properties if key.startswith("sqb.lease.")]
    return out
