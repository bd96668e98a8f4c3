"""The data files and delete files of a table's versions, as its manifests list them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from sqb.lake.cleanup import lake_io, manifests_of
from sqb.lake.io import at_once

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestEntry, ManifestFile

#: The id of the column of a position delete file that names data files.
_TARGET = 2147483546


class DataFile(msgspec.Struct, frozen=True):
    """A file of rows. ``place`` is its partition; bounds and NULLs are by field id, as stored."""

    path: str
    sequence: int
    place: str
    rows: int
    size: int
    low: dict[int, bytes] = {}
    high: dict[int, bytes] = {}
    nulls: dict[int, int] = {}


class DeleteFile(msgspec.Struct, frozen=True):
    """Marks of rows that are gone: of the file ``target``, else of any in its ``place``.

    One without a place may be about every file. Several can lie in one file, at other offsets.
    """

    path: str
    offset: int | None
    sequence: int
    place: str | None
    target: str | None = None


class Files(msgspec.Struct, frozen=True):
    """All files of one version."""

    data: tuple[DataFile, ...] = ()
    deletes: tuple[DeleteFile, ...] = ()


def files_of(lists: Sequence[str], most: int) -> list[Files] | None:
    """The files of versions, by the locations of their manifest lists.

    None if they are more than ``most``. Raises ``FileNotFoundError`` where a list or a manifest is
    gone.
    """
    versions = [manifests_of([{"manifest-list": location}], whole=True) for location in lists]
    every = {name: manifest for version in versions for name, manifest in version.items()}
    if sum(_count(manifest) for manifest in every.values()) > most:
        return None
    read = dict(zip(every, at_once(lambda name: list(_files(every[name])), every), strict=True))
    return [_together([file for name in version for file in read[name]]) for version in versions]


def _together(files: Sequence[DataFile | DeleteFile]) -> Files:
    return Files(
        tuple(file for file in files if isinstance(file, DataFile)),
        tuple(file for file in files if isinstance(file, DeleteFile)),
    )


def _count(manifest: ManifestFile) -> int:
    # format 1 need not tell, but small manifests are all it has then
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)


def _files(manifest: ManifestFile) -> Iterator[DataFile | DeleteFile]:
    """The files of one manifest; pyiceberg's own way leaves out what format 3 says of deletes."""
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import (
        MANIFEST_ENTRY_SCHEMAS,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
    )
    from pyiceberg.manifest import DataFile as Entry

    with AvroFile[ManifestEntry](
        lake_io().new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: ManifestEntry, 2: Entry},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        for entry in entries:
            if entry.status != ManifestEntryStatus.DELETED:
                yield _file(entry, manifest)


def _file(entry: ManifestEntry, manifest: ManifestFile) -> DataFile | DeleteFile:
    from pyiceberg.manifest import DataFileContent

    file = entry.data_file
    told = entry.sequence_number
    # what a commit has just added takes the number of its manifest
    sequence = told if told is not None else manifest.sequence_number
    place = f"{manifest.partition_spec_id}:{file.partition!r}"
    low, high = file.lower_bounds or {}, file.upper_bounds or {}
    if file.content == DataFileContent.DATA:
        nulls = file.null_value_counts or {}
        size = file.file_size_in_bytes
        return DataFile(file.file_path, sequence, place, file.record_count, size, low, high, nulls)
    target, offset = file[17], file[18]
    if target is None and file.content == DataFileContent.POSITION_DELETES:
        # bounds that are equal were not cut off
        same = _TARGET in low and low[_TARGET] == high.get(_TARGET)
        target = low[_TARGET].decode() if same else None
    # a partition of nothing but NULLs may be that of a table without partitions
    anywhere = all(file.partition[n] is None for n in range(len(file.partition)))
    return DeleteFile(file.file_path, offset, sequence, None if anywhere else place, target)
