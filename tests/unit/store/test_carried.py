"""What one process of ours packs is the same in the other."""

from typing import Any

import pytest

from core.evidence import Window
from core.finding import Range, Subject
from core.histogram import Histogram
from core.hours import BatchPoint
from core.readings import WorkloadKey
from store.queries.carried import packed, unpacked
from store.queries.shelves import Shelves

HERE: Any = None
"""No session is needed where no hours are carried."""


@pytest.mark.parametrize(
    "value",
    [
        Subject("gpu", "GPU-1", "GPU 1 on h"),
        [Range(1.0, 2.0, 3.0), None, {"batch": BatchPoint(1.0, 2.0, 3.0)}],
        (Window(0, 3_600_000), WorkloadKey("pod", "ns/a", "a", None, "h")),
        Histogram({4.0: 60.0}),
    ],
)
def test_values_come_out_as_they_went_in(value: Any) -> None:
    found = unpacked(packed(value), HERE, Shelves())
    assert found == value
    assert type(found) is type(value)


def test_what_lies_in_two_places_stays_one() -> None:
    subject = Subject("gpu", "GPU-1", "GPU 1 on h")
    one, other = unpacked(packed([subject, subject]), HERE, Shelves())
    assert one is other
