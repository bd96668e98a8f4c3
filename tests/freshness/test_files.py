"""Which files a source has, and when they make another version."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sqb.freshness.files import changed, list_files


def fill(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id\n1\n")
        os.utime(path, ns=(10**18, 10**18))
    return root


FILES = ("d/a.csv", "d/b.csv", "d/x/c.csv", "d/dt=1/e.csv", "d/_SUCCESS", "d/.hidden", "d/_t/f.csv")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("d", ["a.csv", "b.csv", "dt=1/e.csv", "x/c.csv"]),
        ("d/", ["a.csv", "b.csv", "dt=1/e.csv", "x/c.csv"]),
        ("d/a.csv", ["a.csv"]),
        ("d/*.csv", ["a.csv", "b.csv"]),
        ("d/**/*.csv", ["a.csv", "b.csv", "dt=1/e.csv", "x/c.csv"]),
        ("d/[ab].csv", ["a.csv", "b.csv"]),
        ("d/x*", ["x/c.csv"]),
        ("d/_SUCCESS", []),
        ("nowhere", []),
        ("nowhere/*.csv", []),
    ],
)
def test_a_path_is_a_file_a_folder_or_a_glob(tmp_path: Path, path: str, found: list[str]) -> None:
    listing = list_files(path, fill(tmp_path, *FILES))
    assert [os.path.relpath(f.path, tmp_path / "d") for f in listing.files] == found


def test_a_path_with_signs_of_a_glob_that_exists_is_itself(tmp_path: Path) -> None:
    listing = list_files("d [1]", fill(tmp_path, "d [1]/a.csv", "d 1/b.csv"))
    assert [Path(f.path).name for f in listing.files] == ["a.csv"]


def test_absolute_paths_stay_as_they_are(tmp_path: Path) -> None:
    fill(tmp_path, "d/a.csv")
    assert len(list_files(str(tmp_path / "d"), Path("/elsewhere")).files) == 1
    assert len(list_files(f"file://{tmp_path}/d", Path("/elsewhere")).files) == 1


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        (lambda d: fill(d, "new.csv"), True),
        (lambda d: (d / "a.csv").unlink(), True),
        (lambda d: (d / "a.csv").write_text("id\n12\n"), True),
        (lambda d: os.utime(d / "a.csv", ns=(10**18, 10**18 + 1)), True),
        (lambda d: (d / "a.csv").rename(d / "z.csv"), True),
        (lambda d: fill(d, "_tmp"), False),
        (lambda _: None, False),
    ],
    ids=["added", "removed", "written", "touched", "renamed", "a passed over file", "nothing"],
)
def test_the_version_is_that_of_all_files(
    tmp_path: Path, change: Callable[[Path], object], moves: bool
) -> None:
    folder = fill(tmp_path / "d", "a.csv", "b.csv")
    before = list_files("d", tmp_path).version
    change(folder)
    assert (list_files("d", tmp_path).version != before) is moves


def test_only_listed_files_count_as_changed_while_they_are_read(tmp_path: Path) -> None:
    fill(tmp_path, "d/a.csv", "d/b.csv")
    listing = list_files("d", tmp_path)
    fill(tmp_path, "d/new.csv")
    assert changed(listing) == []
    (tmp_path / "d/a.csv").unlink()
    assert changed(listing) == [str(tmp_path / "d/a.csv")]


def test_the_age_of_files_is_that_of_the_newest(tmp_path: Path) -> None:
    fill(tmp_path, "d/a.csv", "d/b.csv")
    os.utime(tmp_path / "d/a.csv", ns=(0, 2 * 10**18))
    assert list_files("d", tmp_path).newest_us == 2 * 10**15


def test_a_link_back_up_is_not_followed_for_ever(tmp_path: Path) -> None:
    fill(tmp_path, "d/a.csv")
    (tmp_path / "d/up").symlink_to(tmp_path / "d")
    assert [Path(f.path).name for f in list_files("d", tmp_path).files] == ["a.csv"]


def test_what_can_t_be_seen_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are there but can't be listed now must not vanish from what is built."""
    fill(tmp_path, "d/a.csv", "d/x/c.csv")
    scandir = os.scandir

    def locked(path: str) -> object:
        if str(path).endswith("x"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", locked)
        with pytest.raises(PermissionError):
            list_files("d", tmp_path)
