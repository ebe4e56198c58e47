"""Lines of a text file in constant memory: plain or gzip (by magic bytes), UTF-8 or UTF-16, whole or cut off."""

import codecs
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from core.errors import GpuwiseError

GZIP_MAGIC: Final = b"\x1f\x8b"
CHUNK_BYTES: Final = 1 << 18
LONGEST_LINE: Final = 1 << 20
"""A line of 1 MiB is no telemetry; without a bound one file could fill the memory."""


class NotTextError(GpuwiseError):
    """The file is something else than lines of text."""


class TextFile:
    """Iterates over the lines of one file, without their line ends.

    Attributes:
        path: the file.
        line: number of the line last given, from 1.
        bytes_read: bytes of the file read so far (compressed ones where it is compressed).
        cut: sentence when the file ends in the middle (truncated or damaged gzip); what came before is good.

    Raises:
        NotTextError: binary content, or a line without end.
        GpuwiseError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 0
        self.bytes_read = 0
        self.cut: str | None = None

    def __iter__(self) -> Iterator[str]:
        for lines in self.blocks():
            before = self.line
            for number, line in enumerate(lines, before + 1):
                self.line = number
                yield line.removesuffix("\r")
            self.line = before

    def blocks(self) -> Iterator[list[str]]:
        """Lines by the block, with ``line`` at the number of lines before it; carriage returns are left on."""
        decoder: codecs.IncrementalDecoder | None = None
        rest = ""
        try:
            with self.path.open("rb") as raw:
                for block in self._blocks(raw):
                    if decoder is None:
                        decoder = self._decoder(block)
                    lines = (rest + decoder.decode(block)).split("\n")
                    rest = lines.pop()
                    if len(rest) > LONGEST_LINE:
                        raise NotTextError(
                            f"{self.path}:{self.line + len(lines) + 1}: a line of more than 1 MiB: this is no log"
                        )
                    yield lines
                    self.line += len(lines)
        except OSError as error:
            raise GpuwiseError(f"{self.path} cannot be read ({error.strerror or error})") from error
        if (
            rest and self.cut is None
        ):  # after a cut the last line is a part of one: its figures may be cut too
            yield [rest]
            self.line += 1

    def _decoder(self, block: bytes) -> codecs.IncrementalDecoder:
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # what PowerShell's > writes
            return codecs.getincrementaldecoder("utf-16")(errors="replace")
        if b"\0" in block[:4096]:
            raise NotTextError(f"{self.path} is a binary file, not a log")
        return codecs.getincrementaldecoder("utf-8-sig")(errors="replace")

    def _blocks(self, raw: BinaryIO) -> Iterator[bytes]:
        head = raw.read(2)
        raw.seek(0)
        if head == GZIP_MAGIC:
            yield from self._unzipped(raw)
            return
        while block := raw.read(CHUNK_BYTES):
            self.bytes_read += len(block)
            yield block

    def _unzipped(self, raw: BinaryIO) -> Iterator[bytes]:
        unzip = zlib.decompressobj(wbits=31)
        fed = False
        while block := raw.read(CHUNK_BYTES):
            self.bytes_read += len(block)
            while block:
                if unzip.eof:  # another member: gzip files may be concatenated
                    block = block.lstrip(b"\0")
                    if not block:
                        break
                    unzip, fed = zlib.decompressobj(wbits=31), False
                try:
                    text = unzip.decompress(block, CHUNK_BYTES)
                except zlib.error as error:
                    self.cut = f"the gzip data is damaged ({error})"
                    return
                fed = True
                block = unzip.unused_data if unzip.eof else unzip.unconsumed_tail
                if text:
                    yield text
        while fed and (text := unzip.decompress(b"", CHUNK_BYTES)):  # what the last call held back
            yield text
        if fed and not unzip.eof:
            self.cut = "the gzip file ends in the middle: it was cut off"
