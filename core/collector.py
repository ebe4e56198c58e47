"""Python's garbage collector, made to look less often while much is read and little of it has cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

ALLOCATIONS: Final = 2_000_000
"""New containers between two looks at the young ones, in place of 700: more than a chunk of a fleet makes."""

SERVER_ALLOCATIONS: Final = 100_000
"""The same for a server: about one page of a large fleet."""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Look for cycles rarely within; a fleet's hours have none, and looking took a quarter of the time."""
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def settle() -> None:
    """Once a server has loaded: what is there stays and is not looked at again, and new things are looked at less often.

    A page of a thousand GPUs makes a hundred thousand containers and frees nearly all of them without the collector; with
    its defaults it looked a hundred times, and now and then through everything: a tenth of a second in the middle of a page.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(SERVER_ALLOCATIONS, 20, 50)
