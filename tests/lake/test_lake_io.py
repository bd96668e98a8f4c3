from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sqb.errors import SqbError
from sqb.lake import stores
from sqb.lake.io import is_within, local_path, normalised, read_bytes, remove, write_new


@pytest.mark.parametrize(
    "location",
    ["/a/b c/d", "file:/a/b c/d", "file:///a/b c/d", "file://localhost/a/b c/d", "/a//b c/x/../d/"],
)
def test_every_spelling_of_a_local_location_is_one_path(location: str) -> None:
    assert normalised(location) == "/a/b c/d"
    assert local_path(location) == Path("/a/b c/d")


def test_percent_signs_are_part_of_the_name() -> None:
    assert normalised("file:/a/k=%20x") == "/a/k=%20x"


@pytest.mark.parametrize("location", ["s3://b/k/x", "s3a://b/k/x", "S3://b/k/x/"])
def test_every_spelling_of_a_place_in_a_store_is_one(location: str) -> None:
    assert normalised(location) == "s3://b/k/x"
    assert is_within(location, "s3a://b/k/")
    assert not is_within(location, "s3://b/k/x")
    assert not is_within(location, "/b/k")


def test_a_key_is_taken_as_it_stands() -> None:
    assert normalised("s3://b/k//x/../y?a#b%20c") == "s3://b/k//x/../y?a#b%20c"


@pytest.mark.parametrize("location", ["gs://b/k", "hdfs://n/x", "gs:b", "s3://", "s3:b"])
def test_other_stores_are_refused_with_what_works(location: str) -> None:
    with pytest.raises(SqbError, match="can't be read or written") as caught:
        normalised(location)
    assert caught.value.code == "C007"
    assert "s3://bucket/path" in (caught.value.help or "")


def test_a_bucket_of_which_nothing_is_known_is_not_searched_for() -> None:
    stores.forget()
    with pytest.raises(SqbError, match="nothing says how to open") as caught:
        read_bytes("s3://someones/00000.metadata.json")
    assert caught.value.code == "L005"


def test_a_neighbour_with_the_same_prefix_is_not_within() -> None:
    assert is_within("file:/lake/db/t/x", "/lake/db")
    assert not is_within("/lake/db2/x", "file:///lake/db")
    assert not is_within("/lake/db", "/lake/db")


def test_a_file_is_written_once_and_read_packed_or_not(tmp_path: Path) -> None:
    name = f"file:{tmp_path}/new/folder/x.json"
    write_new(name, b"one")
    with pytest.raises(FileExistsError):
        write_new(name, b"two")
    assert read_bytes(name) == b"one"
    write_new(f"{tmp_path}/x.gz.metadata.json", gzip.compress(b"packed"))
    assert read_bytes(f"{tmp_path}/x.gz.metadata.json") == b"packed"
    (tmp_path / "bad.gz").write_bytes(gzip.compress(b"packed" * 99)[:20])
    with pytest.raises(OSError, match="gzip"):
        read_bytes(f"{tmp_path}/bad.gz")


def test_removing_takes_the_checksum_beside_it(tmp_path: Path) -> None:
    for name in ("x.avro", ".x.avro.crc"):
        (tmp_path / name).write_bytes(b"")
    assert remove(f"{tmp_path}/x.avro")
    assert not remove(f"{tmp_path}/x.avro")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error_with_help(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SqbError) as caught:
        write_new(f"{tmp_path}/file/x", b"")
    assert caught.value.help
