"""Keys that tables group on."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from core.errors import UsageError


class By(StrEnum):
    """What ``--by`` and ``?by=`` take."""

    GPU = "gpu"
    HOST = "host"
    MODEL = "model"
    WORKLOAD = "workload"
    USER = "user"
    NAMESPACE = "namespace"
    ENGINE = "engine"
    OWNER = "owner"
    PROJECT = "project"
    COST_CENTRE = "cost_centre"
    KIND = "kind"
    ACTIVITY = "activity"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


Keys = tuple[By, ...]
"""One key, or two; the second tells apart what has the first in common."""
TIMES: Final = frozenset({By.HOUR, By.DAY, By.WEEK, By.MONTH})
MOST: Final = 2
DESCRIPTION: Final = (
    f"What to group by: one of {', '.join(By)}, or two of them such as owner,day (or by=owner&by=day). Days, weeks and "
    "months are those of accounting_time_zone."
)


AskedBy = By | Sequence[str] | None
"""A key, or texts as a request has them."""


def key_fields(key: tuple[str | None, ...], keys: Keys) -> dict[str, Any]:
    """``key``, ``second_key`` and ``keys`` of a row."""
    return {
        "key": key[0],
        "second_key": key[1] if len(key) > 1 else None,
        "keys": {name.value: one for name, one in zip(keys, key, strict=True)},
    }


def keys_of(asked: AskedBy, default: By = By.GPU) -> Keys:
    """The keys that were asked for: one text each, or several in one with commas between; none: the default.

    Raises:
        UsageError: a key nobody knows, the same one twice, two of time, or more than two.
    """
    if isinstance(asked, By):
        return (asked,)
    names = [part.strip() for text in asked or () for part in text.split(",") if part.strip()]
    known = {key.value: key for key in By}
    for name in names:
        if name not in known:
            raise UsageError(f"by is {name!r}: use one or two of {', '.join(known)}")
    keys = tuple(known[name] for name in names) or (default,)
    if len(keys) > MOST:
        raise UsageError(f"by has {len(keys)} keys ({', '.join(keys)}): give two at most")
    if len(set(keys)) < len(keys):
        raise UsageError(f"by has {keys[0]} twice: give it once")
    if len(TIMES.intersection(keys)) > 1:
        raise UsageError(f"by has two lengths of time ({', '.join(keys)}): give one")
    return keys
