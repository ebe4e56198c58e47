"""From the bytes of a request to a checked body, with a bound on what any sender can make the server hold."""

import zlib
from typing import Final

from pydantic import ValidationError

from api.resources.ingest_body import BODY, IngestBody
from api.resources.ingest_refusals import RefusedError, invalid, sentence_of
from core.units import MIB

MOST_SENT_BYTES: Final = 8 * MIB
MOST_BYTES: Final = 64 * MIB
MOST_VALUES: Final = 1_000_000
"""Commas in a body: eight GPUs make about 500. A parser needs a hundred times the memory of ``[1,1,1,…``."""
_PIECE_BYTES: Final = MIB
_GZIP: Final = 16 + zlib.MAX_WBITS
ENCODINGS: Final = ("identity", "gzip", "x-gzip")


def too_large(what: str) -> RefusedError:
    """A refusal of a body's size."""
    return RefusedError(413, f"{what}: deliver fewer intervals at once")


def inflate(sent: bytes, encoding: str) -> bytes:
    """The body as it was before ``Content-Encoding``; counted while it is inflated.

    Raises:
        RefusedError: 413 too large, 415 of an encoding not taken, 422 broken.
    """
    if encoding in {"", "identity"}:
        return sent
    if encoding not in ENCODINGS:
        raise RefusedError(415, f"Content-Encoding is {encoding[:40]!r}: send gzip, or none")
    whole, rest = bytearray(), sent
    try:
        while rest:
            member = zlib.decompressobj(_GZIP)
            while rest and not member.eof:
                whole += member.decompress(rest, _PIECE_BYTES)
                if len(whole) > MOST_BYTES:
                    raise too_large(f"the body inflates to more than {MOST_BYTES >> 20} MiB")
                rest = member.unconsumed_tail
            whole += member.flush() if member.eof else b""
            if not member.eof:
                raise invalid("the body ends in the middle of its gzip data: send it again")
            rest = member.unused_data
    except zlib.error as error:
        raise invalid(f"the body is no gzip data ({error}): correct it, or drop Content-Encoding") from error
    return bytes(whole)


def parse(raw: bytes) -> IngestBody:
    """The body, every field of the right type and within its range.

    Raises:
        RefusedError: 422, names the first bad field by its path; 413 for more values than anyone has.
    """
    if len(raw) > MOST_BYTES:
        raise too_large(f"the body is longer than {MOST_BYTES >> 20} MiB")
    if raw.count(b",") > MOST_VALUES:
        raise too_large(f"the body has more than {MOST_VALUES:,} values")
    try:
        return BODY.validate_json(raw)
    except ValidationError as error:
        raise invalid(sentence_of(error)) from error
