"""Python's garbage collector, made to look less often while much is read and little of it has cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

ALLOCATIONS: Final = 2_000_000
"""New containers between two looks at the young ones, in place of 700: more than a chunk of a fleet makes."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Look for cycles rarely within; a fleet's hours have none, and looking took a quarter of the time."""
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
