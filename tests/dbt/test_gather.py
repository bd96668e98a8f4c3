"""From dbt's manifest to what is remembered."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from dbt_manifests import recorded

from sqb.dbt.gather import gather, place_of
from sqb.dbt.known import Known
from sqb.dbt.layout import read_packages, read_project_file
from sqb.dbt.profile import Profile
from sqb.project.config_values import CatalogConfig

SEED = "seed.little.countries"
PROFILE = Profile(
    "profiles.yml", "little", "dev", {"type": "spark", "method": "session", "schema": "s"}
)


def gathered(root: Path, **given: Any) -> Known:
    (root / "dbt_packages" / "little_pkg").mkdir(parents=True, exist_ok=True)
    (root / "dbt_project.yml").write_text(
        'name: little\nvars: {start_date: "2026-01-01", rate: 2}\n'
    )
    (root / "dbt_packages" / "little_pkg" / "dbt_project.yml").write_text("name: little_pkg\n")
    manifest = recorded()
    manifest["nodes"][SEED].update(
        root_path=str(root), checksum={"name": "path", "checksum": "seeds/countries.csv"}
    )
    (root / "manifest.json").write_text(json.dumps(manifest))
    project = read_project_file(root, environ={}, variables={})
    fields: dict[str, Any] = {"variables": {}, "env": {}, "catalog": None, **given}
    packages = read_packages(project, environ={}, variables={})
    return gather(
        root / "manifest.json", project=project, packages=packages, profile=PROFILE, **fields
    )


def test_large_seeds_are_hashed_and_variables_found(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "countries.csv").write_bytes(b"a\n1\n")
    known = gathered(tmp_path)
    nodes = known.by_id()
    assert nodes[SEED].hashes.checksum == sha256(b"a\n1\n").hexdigest()
    assert (known.project, known.disabled) == ("little", ("model.little.off",))
    other = gathered(tmp_path, variables={"start_date": "2026-02-01"}, before=known).by_id()
    assert {name for name in nodes if nodes[name].hashes.full != other[name].hashes.full} == {
        "model.little.stg_orders"
    }


def test_a_seed_that_went_is_known_by_its_path(tmp_path: Path) -> None:
    assert gathered(tmp_path).by_id()[SEED].hashes.checksum == "path:seeds/countries.csv"


def test_a_place_with_a_secret_is_not_written_down() -> None:
    plain = CatalogConfig(uri="sqlite:////c.db")
    assert place_of(PROFILE, None) is not None
    found = place_of(PROFILE, plain)
    assert found is not None
    assert (found.target, found.catalog) == ("dev", plain)
    assert place_of(PROFILE, CatalogConfig(uri="postgresql://me:pw@db/c")) is None
    assert place_of(PROFILE, CatalogConfig(properties={"token": "t"})) is None
