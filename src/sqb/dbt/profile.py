"""``profiles.yml``: which profile and target count, and what they say, with Jinja rendered.

Only the chosen target is rendered, so that the others may need variables that are not set here.
What a profile holds is never shown: it may be secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sqb.dbt.layout import canonical, read_yaml
from sqb.dbt.render import Renderer
from sqb.errors import SqbError, did_you_mean

PROFILES_FILE = "profiles.yml"

#: The ways to connect that sqb knows.
METHODS = ("session", "thrift")
#: What dbt-spark lets code see of a connection.
_TARGET_KEYS = ("host", "port", "cluster", "endpoint", "schema", "organization", "database")


class Profile(msgspec.Struct, frozen=True):
    """One target of a profile; ``fields`` are its settings, secrets among them."""

    file: str
    name: str
    target: str
    fields: dict[str, Any]

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, {self.target!r})"

    @property
    def method(self) -> str:
        """How dbt connects."""
        return str(self.fields.get("method", ""))

    @property
    def schema(self) -> str:
        """The schema that dbt writes to, where a model names no other."""
        return str(self.fields.get("schema", ""))

    @property
    def conf(self) -> dict[str, str]:
        """The Spark settings that dbt hands to the session."""
        given = self.fields.get("server_side_parameters")
        if not isinstance(given, Mapping):
            return {}
        return {str(key): _setting(value) for key, value in given.items()}

    def visible(self) -> dict[str, str]:
        """What code may read through ``target``, as canonical JSON."""
        fields = {key: self.fields.get(key) for key in _TARGET_KEYS}
        fields |= {"name": self.target, "target_name": self.target, "profile_name": self.name}
        fields["type"] = self.fields.get("type")
        return {key: canonical(value) for key, value in fields.items() if value is not None}


def find_profiles(
    root: Path, *, given: str | None, configured: str | None, environ: Mapping[str, str]
) -> Path:
    """The file with the profiles: where it is said to be, else in the project, else in ``~/.dbt``.

    ``given`` comes from the command line, ``configured`` from ``[dbt]``.
    """
    named = given or environ.get("DBT_PROFILES_DIR") or configured
    if named:
        path = Path(named).expanduser().absolute() / PROFILES_FILE
        if not path.is_file():
            raise SqbError(
                "B003",
                f"there is no {PROFILES_FILE} in {path.parent}",
                help="name the folder that holds it with --profiles-dir",
            )
        return path
    home = Path(environ.get("HOME") or Path.home())
    for folder in (root, home / ".dbt"):
        if (folder / PROFILES_FILE).is_file():
            return folder / PROFILES_FILE
    raise SqbError(
        "B003",
        f"there is no {PROFILES_FILE} in the project, nor in {home / '.dbt'}",
        help="name the folder that holds it with --profiles-dir or DBT_PROFILES_DIR",
    )


def read_profile(
    path: Path,
    name: str | None,
    *,
    target: str | None,
    environ: Mapping[str, str],
    variables: Mapping[str, object],
) -> Profile:
    """The profile ``name`` of a file, for a target; without one, the profile's own or "default"."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not valid UTF-8"
        raise SqbError("B003", f"{PROFILES_FILE} can't be read: {reason}", file=file) from None
    profiles = read_yaml(text, file, "B003", private=True)
    if name is None:
        raise SqbError(
            "B003",
            "the project names no profile",
            help="write `profile: …` into dbt_project.yml, or give --profile",
        )
    profile = profiles.get(name)
    if not isinstance(profile, Mapping):
        known = [key for key in profiles if key != "config"]
        raise SqbError(
            "B003",
            f"there is no profile `{name}` in {PROFILES_FILE}",
            file=file,
            help=did_you_mean(name, known) or f"the profiles are {', '.join(known) or 'none'}",
        )
    renderer = Renderer(file, environ=environ, variables=variables, private=True)
    chosen = target
    if chosen is None:
        own = renderer.render(profile.get("target"), "target", text)
        chosen = "default" if own is None else str(own)
    outputs = profile.get("outputs")
    outputs = outputs if isinstance(outputs, Mapping) else {}
    if not isinstance(outputs.get(chosen), Mapping):
        raise SqbError(
            "B003",
            f"the profile `{name}` has no target `{chosen}`",
            file=file,
            help=did_you_mean(chosen, map(str, outputs))
            or f"its targets are {', '.join(map(str, outputs)) or 'none'}",
        )
    rendered = renderer.render(dict(outputs[chosen]), chosen, text)
    return _checked(Profile(file, name, chosen, rendered))


def _checked(profile: Profile) -> Profile:
    kind = profile.fields.get("type")
    if kind != "spark":
        raise SqbError(
            "B006",
            f"the target `{profile.target}` is of type `{kind}`, and sqb plans projects of "
            "dbt-spark only",
            file=profile.file,
            help="choose a target of type spark with --target",
        )
    if profile.method not in METHODS:
        raise SqbError(
            "B006",
            f"the target `{profile.target}` connects by `method: {profile.method or '?'}`",
            file=profile.file,
            help="sqb reads projects with method session or thrift",
        )
    if not profile.schema:
        raise SqbError(
            "B003",
            f"the target `{profile.target}` names no schema",
            file=profile.file,
            help="write `schema: …` into the target",
        )
    return profile


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
