"""From a manifest that dbt just wrote to what is remembered of the project."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from sqb.dbt.catalog import has_secret
from sqb.dbt.identity import Surroundings, identify, large_seeds
from sqb.dbt.known import Known, Place
from sqb.dbt.layout import ProjectFile, visible_vars
from sqb.dbt.manifest import Manifest, read_manifest
from sqb.dbt.profile import Profile
from sqb.project.config_values import CatalogConfig


def gather(
    manifest: Path,
    *,
    project: ProjectFile,
    packages: list[ProjectFile],
    profile: Profile,
    catalog: CatalogConfig | None,
    variables: Mapping[str, object],
    env: Mapping[str, str],
    before: Known | None = None,
) -> Known:
    """The project as the manifest at a path shows it.

    ``env`` are the variables that count (``reads.Reading.env``), ``before`` is an earlier state.
    """
    read = read_manifest(manifest)
    around = Surroundings(
        vars=visible_vars(project, packages, variables),
        env=env,
        target=profile.visible(),
        files=_hashes(read),
        before=before.by_id() if before is not None else {},
    )
    return Known(
        project=read.metadata.project_name,
        dbt_version=read.metadata.dbt_version,
        nodes=tuple(identify(read, around).values()),
        disabled=tuple(sorted(read.disabled)),
        place=place_of(profile, catalog),
    )


def place_of(profile: Profile, catalog: CatalogConfig | None) -> Place | None:
    """Where the project writes; None if that can't be written down without a secret."""
    if catalog is not None and has_secret(catalog):
        return None
    return place_with_secrets(profile, catalog)


def place_with_secrets(profile: Profile, catalog: CatalogConfig | None) -> Place:
    """Where the project writes, not to be written down."""
    return Place(profile.name, profile.target, profile.schema, profile.method, catalog)


def _hashes(manifest: Manifest) -> dict[str, str]:
    """The content of seeds that dbt knows only by their path; one that went keeps its path."""
    found: dict[str, str] = {}
    for unique_id, (root, path) in large_seeds(manifest).items():
        hasher = sha256()
        try:
            with Path(root, path).open("rb") as file:
                while chunk := file.read(1 << 20):
                    hasher.update(chunk)
        except OSError:
            continue
        found[unique_id] = hasher.hexdigest()
    return found
