"""A dbt project as dbt reads it: its nodes and what a selection means, mostly from memory.

dbt is asked only when something that it reads moved since it was asked last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from sqb.dbt.catalog import catalog_of, parse_spark_defaults, spark_defaults_file
from sqb.dbt.drive import Folders, ask_dbt, folders_in, make_ready
from sqb.dbt.known import Known, Memory, Place
from sqb.dbt.layout import ProjectFile, read_packages, read_project_file
from sqb.dbt.locate import find_dbt, find_project, versions_of
from sqb.dbt.nodes import DbtNode
from sqb.dbt.profile import Profile, find_profiles, read_profile
from sqb.dbt.reads import Reading, env_names, look
from sqb.dbt.request import Request, checked, completed
from sqb.dbt.selection import (
    list_arguments,
    parse_arguments,
    read_list,
    selected,
    selection_key,
    selects_all,
)
from sqb.dbt.settings import DbtSettings, Found, read_settings
from sqb.errors import SqbError
from sqb.project.config_values import CatalogConfig
from sqb.project.layout import work_folder
from sqb.project.variables import parse_vars

#: A project whose files change faster than dbt reads them is not waited for longer.
_TRIES = 3


class DbtReader:
    """One project for one request; ``say`` is told before dbt is asked, which takes seconds."""

    def __init__(
        self,
        request: Request,
        *,
        start: Path,
        environ: Mapping[str, str],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.environ = environ
        self._say = say
        asked = completed(checked(request), environ)
        begin = start / asked.project_dir if asked.project_dir else start
        self.found: Found = read_settings(begin, variables={}, environ=environ)
        self.root = find_project(
            start, asked.project_dir or self.settings.project_dir, environ
        ).resolve()
        given = asked.profiles_dir
        self.profiles = find_profiles(
            self.root,
            given=str(start / given) if given else None,
            configured=self.settings.profiles_dir,
            environ=environ,
        )
        self.request = msgspec.structs.replace(
            asked,
            project_dir=str(self.root),
            profiles_dir=str(self.profiles.parent),
            target=asked.target or self.settings.target,
            target_path=asked.target_path or self.settings.target_path,
        )
        self.variables = parse_vars(asked.vars)
        self.folders: Folders = folders_in(self.work)
        self._memory = Memory(self.work)

    @property
    def settings(self) -> DbtSettings:
        """``[dbt]``, or its defaults."""
        return self.found.settings

    @property
    def work(self) -> Path:
        """sqb's own folder for the project: disposable, ignored by git."""
        return work_folder(self.root) / "dbt"

    @cached_property
    def executable(self) -> Path:
        """The dbt that runs the project."""
        return find_dbt(self.environ)

    @cached_property
    def known(self) -> Known:
        """Every node, as dbt shows it now."""
        found = self._memory.recall(self._reading.key)
        return found if found is not None else self._asked_nodes()

    @cached_property
    def nodes(self) -> dict[str, DbtNode]:
        """Every node by unique id, parents first."""
        return self.known.by_id()

    @cached_property
    def selected(self) -> tuple[str, ...]:
        """What the request selects, as dbt understands it."""
        if self._selects_all:
            return selected(self.request, self.known.nodes)
        nodes, key = self.known.nodes, self._selection_key
        listed = self._memory.recall_selection(self._reading.key, key)
        if listed is None:
            self._say("asking dbt what is selected…")
            output = self._ask(list_arguments)
            listed = read_list(output)
            self._memory.remember_selection(self._reading.key, key, listed)
        return selected(self.request, nodes, listed)

    @property
    def selector(self) -> str:
        """The selection in the user's words."""
        request = self.request
        words = [f"--select {word}" for word in request.select]
        words += [f"--exclude {word}" for word in request.exclude]
        words += [f"--selector {request.selector}"] if request.selector else []
        return " ".join([*words, *(w for o in request.selecting for w in o.words)])

    @property
    def artifacts(self) -> Path:
        """The folder into which the user's own runs of dbt write."""
        given = self.request.target_path
        return self.root / (given if given is not None else self.project.target_path)

    @cached_property
    def project(self) -> ProjectFile:
        """What ``dbt_project.yml`` says."""
        return read_project_file(self.root, environ=self.environ, variables=self.variables)

    @cached_property
    def profile(self) -> Profile:
        """The profile's target, with what may be secret."""
        return read_profile(
            self.profiles,
            self.request.profile or self.project.profile,
            target=self.request.target,
            environ=self.environ,
            variables=self.variables,
        )

    @cached_property
    def place(self) -> Place:
        """Where the project writes; read from the profile where that can't be kept."""
        kept = self.known.place
        return kept if kept is not None else self.place_of_profile

    @cached_property
    def place_of_profile(self) -> Place:
        """The same, without asking what the project holds."""
        from sqb.dbt.gather import place_with_secrets

        return place_with_secrets(self.profile, self._catalog)

    # Asking

    @cached_property
    def _reading(self) -> Reading:
        return self._look(None)

    def _look(self, met: tuple[str, ...] | None) -> Reading:
        request = self.request
        versions = versions_of(self.executable, self.environ)
        settings = {
            "target": request.target or "",
            "profile": request.profile or "",
            "profiles": str(self.profiles),
            "reading": " ".join(word for option in request.reading for word in option.words),
            **versions,
        }
        extra = [self.profiles, *map(Path, self.found.files)]
        defaults = spark_defaults_file(self.environ)
        if defaults is not None:
            extra.append(defaults)
        return look(
            self.root,
            self.work / "reads.mp",
            environ=self.environ,
            variables=self.variables,
            settings=settings,
            extra=extra,
            met=met,
        )

    def _asked_nodes(self) -> Known:
        """Ask dbt, and ask again if files changed while it read them."""
        from sqb.dbt.gather import gather

        # a profile that sqb can't use is told before dbt is started
        catalog = self._catalog
        listing = not self._selects_all
        for attempt in range(_TRIES):
            before = self._reading
            self._say("asking dbt what the project holds…")
            output = self._ask(list_arguments if listing else parse_arguments)
            after = self._look(env_names(self.folders.parsed))
            self.__dict__["_reading"] = after
            if after.files == before.files:
                break
            if attempt == _TRIES - 1:
                raise SqbError(
                    "B010",
                    "files of the project changed while dbt read them, again and again",
                    help="wait until they rest, then run again",
                )
        found = gather(
            self.folders.manifest,
            project=self.project,
            packages=read_packages(self.project, environ=self.environ, variables=self.variables),
            profile=self.profile,
            catalog=catalog,
            variables=self.variables,
            env=after.env,
            before=self._memory.latest(),
        )
        self._memory.remember(after.key, found)
        if listing:
            self._memory.remember_selection(after.key, self._selection_key, read_list(output))
        return found

    def _ask(self, arguments: Callable[..., list[str]]) -> str:
        make_ready(self.folders, self.artifacts)
        words = arguments(self.request, target=self.folders.target, logs=self.folders.logs)
        return ask_dbt(self.executable, words, root=self.root, environ=self.environ)

    @cached_property
    def _selects_all(self) -> bool:
        return selects_all(self.request, self.root, self.environ)

    @property
    def _selection_key(self) -> tuple[str, ...]:
        # where dbt writes counts beside a state folder alone
        artifacts = self.artifacts if self.request.state is not None else self.root
        return selection_key(self.request, self.root, artifacts)

    @cached_property
    def _catalog(self) -> CatalogConfig | None:
        defaults = spark_defaults_file(self.environ)
        return catalog_of(
            self.found.catalog,
            method=self.profile.method,
            host=str(self.profile.fields.get("host") or ""),
            conf=self.profile.conf,
            defaults=parse_spark_defaults(defaults.read_text()) if defaults is not None else {},
            root=self.root,
        )
