"""Files of any make become lines; what is cut off keeps what was good."""

import gzip
from pathlib import Path

import pytest

from agent.sources.text import LONGEST_LINE, NotTextError, TextFile
from core.errors import GpuwiseError


def written(folder: Path, data: bytes) -> TextFile:
    path = folder / "log"
    path.write_bytes(data)
    return TextFile(path)


@pytest.mark.parametrize(
    "data",
    [
        b"a\nb\nc\n",
        b"a\r\nb\r\nc",
        b"\xef\xbb\xbfa\nb\nc\n",
        "a\nb\nc\n".encode("utf-16"),
        gzip.compress(b"a\nb\nc\n", mtime=0),
        gzip.compress(b"a\nb", mtime=0) + gzip.compress(b"\nc\n", mtime=0),
        gzip.compress(b"a\nb\nc", mtime=0) + b"\0" * 512,
    ],
)
def test_lines_are_the_same_however_they_are_stored(tmp_path: Path, data: bytes) -> None:
    file = written(tmp_path, data)
    assert list(file) == ["a", "b", "c"]
    assert file.line == 3
    assert file.cut is None
    assert file.bytes_read == len(data)


def test_lines_are_numbered_as_they_come(tmp_path: Path) -> None:
    file = written(tmp_path, b"a\nb\nc")
    assert [(file.line, line) for line in file] == [(1, "a"), (2, "b"), (3, "c")]


def test_a_truncated_gzip_keeps_whole_lines_and_says_so(tmp_path: Path) -> None:
    text = "".join(f"line {i} {i * 7919 % 10007}\n" for i in range(50_000))
    data = gzip.compress(text.encode())
    file = written(tmp_path, data[: len(data) // 2])
    lines = list(file)
    assert 1_000 < len(lines) < 50_000
    assert lines == text.splitlines()[: len(lines)]
    assert file.cut is not None
    assert "cut off" in file.cut


def test_a_damaged_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    text = "".join(f"line {i} {i * 7919 % 10007}\n" for i in range(50_000))
    data = bytearray(gzip.compress(text.encode()))
    data[len(data) // 2] ^= 0xFF
    data[len(data) // 2 + 1] ^= 0xFF
    file = written(tmp_path, bytes(data))
    assert len(list(file)) > 1_000
    assert file.cut is not None


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotTextError, match="binary"):
        list(written(tmp_path, b"SQLite format 3\0\x10\x00"))


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    with pytest.raises(NotTextError, match="log:2"):
        list(written(tmp_path, b"a\n" + b"x" * (LONGEST_LINE + 300_000)))


def test_an_unreadable_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(GpuwiseError, match="cannot be read"):
        list(TextFile(tmp_path / "missing"))


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    assert list(written(tmp_path, b"")) == []
