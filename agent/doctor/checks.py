"""One look at one thing, and a way to look that cannot hang."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from core.errors import GpuwiseError

OK: Final = "ok"
NOTE: Final = "note"
BAD: Final = "bad"
LIMIT_S: Final = 8.0
"""For one look; the driver has limits of its own."""


@dataclass(frozen=True, slots=True)
class Check:
    """What one look found.

    Attributes:
        name: of what was looked at; unique within its part.
        state: ``ok``, ``note`` (works, with a limit) or ``bad`` (does not work).
        finding: one sentence: what, and what to do about it.
        part: heading it stands under.
    """

    name: str
    state: str
    finding: str
    part: str = "installation"


def look(part: str, name: str, of: Callable[[], tuple[str, str]], limit_s: float = LIMIT_S) -> Check:
    """The finding of ``of`` (state, sentence), made in a thread that is left behind when it takes too long."""
    answer: list[tuple[str, str]] = []

    def target() -> None:
        try:
            answer.append(of())
        except GpuwiseError as error:
            answer.append((BAD, str(error)))
        except Exception as error:  # noqa: BLE001 - one look that fails must not hide the others
            answer.append((BAD, f"this look failed ({type(error).__name__}: {error})"))

    worker = threading.Thread(target=target, name=f"doctor-{name}", daemon=True)
    worker.start()
    worker.join(limit_s)
    state, finding = answer[0] if answer else (BAD, f"no answer within {limit_s:.0f} s: something here hangs")
    return Check(name, state, finding, part)


def looks(part: str, of: dict[str, Callable[[], tuple[str, str]]], limit_s: float = LIMIT_S) -> list[Check]:
    """Several looks, one after the other."""
    return [look(part, name, one, limit_s) for name, one in of.items()]
