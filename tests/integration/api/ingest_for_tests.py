"""A delivery with one row of everything, a token, and a way to post it."""

import gzip
import json
from contextlib import closing
from typing import Any, Final

from core.activity import Activity
from core.delivery import Delivery, encode
from core.metrics import ENGINE_METRICS, GPU_METRICS, HOST_METRICS, Metric
from core.readings import EngineIdentity, GpuHealth, GpuIdentity, HostIdentity, WorkloadKey
from core.samples import EnergyMethod, EngineSample, GpuEvent, GpuSample, HostSample, ProcessSample
from store.dbapi import open_connection
from store.engine import make_engine, session_scope

T0: Final = 1_791_158_400_000  # 2026-10-05T00:00:00Z
SPAN: Final = 10_000
NOW: Final = T0 + 60_000
HOST: Final = "gpu-node-01"
UUID: Final = "GPU-11111111-2222-3333-4444-555555555555"
ENGINE: Final = f"{HOST}:8000/0"
PATH: Final = "/api/v1/ingest"
SAMPLE_TABLES: Final = ("gpu_sample", "process_sample", "engine_sample", "host_sample", "gpu_event")


def values_of(metrics: tuple[Metric, ...]) -> dict[str, float]:
    """A value for each metric that any of them may have."""
    return {metric.name: 0.25 + place / 1_000 for place, metric in enumerate(metrics)}


def delivery(slot: int = 0, *, uuid: str = UUID, host: str = HOST) -> Delivery:
    """Ten seconds, ``slot`` intervals after ``T0``: one row of everything."""
    ts_ms = T0 + slot * SPAN
    engine = f"{host}:8000/0"
    pairs = (("namespace", "ml"), ("pod", "llama-0"))
    workload = WorkloadKey("pod", "uid-1", "llama-0", user="ann", host=host, attributes=pairs)
    return Delivery(
        host=HostIdentity(host, 96, 1 << 40, "0.1.0"),
        gpus=[
            GpuIdentity(
                uuid, host, 0, "NVIDIA H200", 150_754_820_096, "0:1", "580.1", 1.98e9, 700.0, "9.0", 1.0
            )
        ],
        engines=[EngineIdentity(engine, host, "vllm", "llama", {"max_num_seqs": "256"}, (uuid,))],
        gpu_samples=[
            GpuSample(
                uuid, ts_ms, SPAN, SPAN, values_of(GPU_METRICS), EnergyMethod.COUNTER, Activity.MEMORY_BOUND
            )
        ],
        process_samples=[ProcessSample(uuid, ts_ms, SPAN, workload, 6.8e10, 0.9, 2, 1.5, 0.99)],
        engine_samples=[EngineSample(engine, ts_ms, SPAN, SPAN, 9_000, 8.0, values_of(ENGINE_METRICS))],
        host_samples=[HostSample(host, ts_ms, SPAN, values_of(HOST_METRICS))],
        events=[GpuEvent(uuid, ts_ms, "xid", "XID 79: the GPU has fallen off the bus", 79)],
        health=[GpuHealth(uuid, ts_ms, {"ecc_mode": "on", "row_remap_pending": 0.0})],
    )


def json_of(given: Delivery | None = None, *, sequence: int = 1) -> dict[str, Any]:
    """A delivery as the object that goes over the wire, to be spoilt."""
    found: dict[str, Any] = json.loads(encode(given or delivery(), agent_id="agent-1", sequence=sequence))
    return found


def make_token(url: str, host: str | None = HOST, *, expires_days: int | None = None) -> str:
    """A token that the database knows."""
    from api.resources import tokens

    with session_scope(make_engine(url)) as session:
        return tokens.create(session, host=host, name="", expires_days=expires_days, now_ms=NOW)[0]


def post(client: Any, token: str | None, body: object, **headers: str) -> Any:
    """Post a delivery, gzipped; bytes go as they are."""
    raw = body if isinstance(body, bytes) else gzip.compress(json.dumps(body).encode(), 1)
    sent = {"Content-Type": "application/json"}
    if not isinstance(body, bytes):
        sent["Content-Encoding"] = "gzip"
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(PATH, content=raw, headers=sent)


def counts(url: str) -> dict[str, int]:
    """Rows per sample table."""
    with closing(open_connection(url)) as connection:
        return {table: connection.fetch(f"SELECT count(*) FROM {table}")[0][0] for table in SAMPLE_TABLES}


def stored(url: str, table: str) -> list[dict[str, Any]]:
    """Rows of a table by column."""
    from sqlalchemy import text

    with make_engine(url).connect() as connection:
        return [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]
