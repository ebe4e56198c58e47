"""The pictures that the documentation shows are there, light enough, and each is one that the command makes."""

import re
from pathlib import Path

import pytest

from docs.screenshots import FOLDER, MOST_BYTES, SHOTS

ROOT = Path(__file__).resolve().parents[2]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("page", ["README.md", "docs/pages.md"])
def test_every_picture_that_is_shown_is_there(page: str) -> None:
    path = ROOT / page
    shown = re.findall(r"[\w./-]*screenshots/[\w-]+\.png", path.read_text(encoding="utf-8"))
    assert shown
    for name in shown:
        assert (path.parent / name).is_file(), name


def test_the_command_makes_every_picture_and_none_is_heavy_or_wide() -> None:
    kept = {path.stem: path.read_bytes() for path in FOLDER.glob("*.png")}
    assert set(kept) == set(SHOTS)
    for name, picture in kept.items():
        assert picture.startswith(PNG), name
        assert len(picture) <= MOST_BYTES, name
        assert int.from_bytes(picture[16:20]) <= 1280, name
