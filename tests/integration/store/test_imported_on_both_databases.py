"""How far an import came, and what it leaves to others."""

import pytest
from store_samples import H0 as START_MS

from core.activity import Activity
from core.delivery import Delivery
from core.evidence import Window
from core.samples import GpuSample
from core.units import HOUR_MS
from store.dbapi import open_connection
from store.imported import Imported
from store.ingest import Ingest

SPAN_MS = 60_000


def hours(first: int, last: int) -> Window:
    return Window(START_MS + first * HOUR_MS, START_MS + last * HOUR_MS)


def sample(uuid: str, ts_ms: int, span_ms: int = SPAN_MS) -> GpuSample:
    return GpuSample(uuid, ts_ms, span_ms, span_ms, {"power_w": 100.0}, None, Activity.BUSY)


def test_what_is_left_is_what_nobody_did_and_outlives_the_process(ready_database: str) -> None:
    with open_connection(ready_database) as connection:
        imported = Imported(connection, "a", SPAN_MS)
        assert imported.left("gpu x", hours(0, 9)) == hours(0, 9)
        imported.keep(Delivery(), ["gpu x"], hours(0, 3))
        imported.keep(Delivery(), ["gpu x", "gpu y"], hours(5, 6))
        imported.keep(Delivery(), ["gpu x"], hours(7, 7))
    with open_connection(ready_database) as connection:
        imported = Imported(connection, "a", SPAN_MS)
        assert imported.left("gpu x", hours(0, 9)) == hours(3, 9)
        assert imported.left("gpu x", hours(0, 5)) == hours(3, 5)
        assert imported.left("gpu x", hours(1, 3)) is None
        assert imported.left("gpu y", hours(0, 6)) == hours(0, 5)
        imported.keep(Delivery(), ["gpu x"], hours(3, 5))
        assert imported.left("gpu x", hours(0, 6)) is None
        assert Imported(connection, "b", SPAN_MS).left("gpu x", hours(0, 9)) == hours(0, 9)


def test_hours_with_samples_of_another_length_are_left_alone(ready_database: str) -> None:
    with open_connection(ready_database) as connection:
        ingest = Ingest(connection)
        ingest.gpu_samples([sample("GPU-a", START_MS + 20_000, 10_000)])
        ingest.commit()
        imported = Imported(connection, "a", SPAN_MS)
        both = [sample("GPU-a", START_MS + at) for at in (0, HOUR_MS)] + [sample("GPU-b", START_MS)]
        kept = imported.keep(Delivery(gpu_samples=both), ["gpu GPU-a", "gpu GPU-b"], hours(0, 2))
        assert kept.new_rows == 2
        assert kept.gpu_hours_known == {("GPU-a", START_MS)}
        again = imported.keep(Delivery(gpu_samples=both), ["gpu GPU-a"], hours(0, 2))
        assert (again.new_rows, again.gpu_hours_known) == (0, {("GPU-a", START_MS)})


def test_a_piece_that_is_refused_is_not_done(ready_database: str) -> None:
    with open_connection(ready_database) as connection:
        imported = Imported(connection, "a", SPAN_MS)
        wrong = GpuSample("GPU-a", START_MS, SPAN_MS, SPAN_MS, {}, None, "no such activity")  # type: ignore[arg-type]
        with pytest.raises(AttributeError):
            imported.keep(Delivery(gpu_samples=[wrong]), ["gpu GPU-a"], hours(0, 2))
        assert imported.left("gpu GPU-a", hours(0, 2)) == hours(0, 2)
        assert Imported(connection, "a", SPAN_MS).left("gpu GPU-a", hours(0, 2)) == hours(0, 2)
