"""Columns of sample and hour tables against the catalogue and the types they hold."""

from dataclasses import fields

from core.activity import Activity
from core.hours import EngineHour, GpuHour, HostHour, UsageHour
from core.metrics import ENGINE_COLUMNS, GPU_COLUMNS, HOST_COLUMNS
from core.readings import GpuIdentity, HostIdentity
from store.sample_tables import SAMPLE_TABLES
from store.tables import METADATA

SPAN = {"sampled_from_ms", "sampled_to_ms"}
"""Bookkeeping of the roll-up: which samples an hour was folded from."""
QUARTERS = {"quarters"}
"""What an hour keeps beside its figures (``core.quarters``)."""


def columns(table: str) -> list[str]:
    return [column.name for column in METADATA.tables[table].columns]


def test_every_gpu_metric_has_a_column_and_no_column_lacks_a_metric() -> None:
    keys = ["gpu_id", "ts_ms", "span_ms", "covered_ms", "energy_method", "activity"]
    assert columns("gpu_sample") == [*keys, *GPU_COLUMNS]


def test_every_engine_metric_has_a_column_and_no_column_lacks_a_metric() -> None:
    keys = ["engine_id", "ts_ms", "span_ms", "covered_ms", "busy_ms", "busy_running_requests"]
    assert columns("engine_sample") == [*keys, *ENGINE_COLUMNS]


def test_every_host_metric_has_a_column_and_no_column_lacks_a_metric() -> None:
    assert columns("host_sample") == ["host_id", "ts_ms", "span_ms", *HOST_COLUMNS]


def test_a_gpu_and_a_host_have_a_column_for_everything_their_identity_says() -> None:
    renamed = {"index": "gpu_index", "host": "host_id"}
    assert {renamed.get(f.name, f.name) for f in fields(GpuIdentity)} <= set(columns("gpu"))
    assert {f.name for f in fields(HostIdentity)} <= set(columns("host"))


def test_ingest_writes_every_column_of_the_sample_tables_in_their_order() -> None:
    for table in SAMPLE_TABLES:
        assert list(table.columns) == columns(table.name)
        assert list(table.keys) == [c.name for c in METADATA.tables[table.name].primary_key.columns]
        if table.covered_at is not None:
            assert table.columns[table.covered_at] == "covered_ms"


def test_sample_keys_start_with_whose_and_days_partition_them() -> None:
    for table in SAMPLE_TABLES:
        assert table.keys[0] in {"gpu_id", "engine_id", "host_id"}
        assert METADATA.tables[table.name].dialect_options["postgresql"]["partition_by"] == "RANGE (ts_ms)"
        assert METADATA.tables[table.name].dialect_options["sqlite"]["with_rowid"] is False


def test_a_gpu_hour_has_a_column_for_every_field_and_activity() -> None:
    spread = {f"{activity.value}_{unit}" for activity in Activity for unit in ("s", "j")}
    plain = {field.name for field in fields(GpuHour)} - {"gpu_uuid", "seconds", "joules"}
    assert set(columns("gpu_hour")) == {"gpu_id"} | plain | spread | SPAN | QUARTERS


def test_an_engine_hour_has_a_column_for_every_field() -> None:
    plain = {f.name for f in fields(EngineHour)} - {"engine"}
    assert set(columns("engine_hour")) == plain | {"engine_id"} | SPAN


def test_a_usage_hour_has_a_column_for_every_field() -> None:
    plain = {field.name for field in fields(UsageHour)} - {"workload", "gpu_uuid"}
    assert set(columns("usage_hour")) == plain | {"id", "gpu_id", "workload_id"}


def test_a_host_hour_has_a_column_for_every_field() -> None:
    plain = {field.name for field in fields(HostHour)} - {"host"}
    assert set(columns("host_hour")) == {"host_id"} | plain | SPAN | QUARTERS


def test_every_constraint_has_a_name_of_the_convention() -> None:
    prefixes = {"PrimaryKeyConstraint": "pk_", "ForeignKeyConstraint": "fk_", "UniqueConstraint": "uq_"}
    for table in METADATA.tables.values():
        for constraint in table.constraints:
            prefix = prefixes.get(type(constraint).__name__, "ck_")
            assert str(constraint.name).startswith(f"{prefix}{table.name}"), (table.name, constraint)
