"""The fleet over one window as the rules may see it; a constant number of queries however large the fleet."""

from collections.abc import Callable, Collection
from itertools import groupby
from operator import attrgetter
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.gpu_specs import resolve
from core.evidence import EngineEvidence, Evidence, GpuEvidence, Price, Site, Window
from core.readings import GpuIdentity
from store.known import known_engines, known_gpus
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.queries import hours
from store.queries.fleet import gpu_counts

PriceOf = Callable[[GpuIdentity, str | None, int], Price | None]
"""Price of a GPU (its identity, its row in the catalogue) at a time."""
MIN_EMPTY_S: Final = 300.0
"""An hour speaks for bare idle power only with this much empty time: right after work the board is still hot."""


def evidence(
    session: Session,
    *,
    window: Window,
    now_ms: int,
    site: Site,
    price_of: PriceOf,
    gpu_uuids: Collection[str] | None = None,
) -> Evidence:
    """Evidence of every GPU and engine that has hours in the window; of a MIG slice its card stands for it.

    Args:
        session: where to read.
        window: what is judged; hours that overlap it count.
        now_ms: when.
        site: the site's settings.
        price_of: price in force; asked at the window's end.
        gpu_uuids: only these GPUs, for a look at what runs on them; default all.
    """
    connection = session.connection()
    known = known_gpus(connection)
    engines = known_engines(connection, known)
    gpu_hours = {
        uuid: tuple(found)
        for uuid, found in groupby(hours.gpu_hours(session, window, gpu_uuids), key=attrgetter("gpu_uuid"))
    }
    engine_hours = {
        name: tuple(found)
        for name, found in groupby(hours.engine_hours(session, window), key=attrgetter("engine"))
    }
    bare_idle_w = _bare_idle_w(session)
    on_host = gpu_counts(known)
    gpus: list[GpuEvidence] = []
    for gpu in known:
        identity = gpu.identity
        found = gpu_hours.get(identity.gpu_uuid)
        if identity.is_slice or not found or gpu.first_sample_ms is None or gpu.seen_until_ms is None:
            continue
        spec = resolve(identity.model, identity.memory_total_bytes)
        gpu_key = None if spec is None else spec.gpu_key
        gpus.append(
            GpuEvidence(
                identity=identity,
                gpu_key=gpu_key,
                hours=found,
                first_sample_ms=gpu.first_sample_ms,
                last_sample_ms=gpu.seen_until_ms,
                price=price_of(identity, gpu_key, window.to_ms),
                bare_idle_w=bare_idle_w.get(identity.gpu_uuid),
                host_gpu_count=on_host[identity.host] if identity.host is not None else 1,
            )
        )
    return Evidence(
        now_ms=now_ms,
        window=window,
        gpus=tuple(gpus),
        engines=tuple(
            EngineEvidence(
                engine.identity, engine.join.gpu_uuids, engine.join.join, engine_hours[engine.identity.engine]
            )
            for engine in engines
            if engine.identity.engine in engine_hours
        ),
        site=site,
    )


def _bare_idle_w(session: Session) -> dict[str, float]:
    """Lowest hourly power while empty of each GPU, over all its hours, not only the window's."""
    row = GpuHourRow
    statement = (
        select(GpuRow.gpu_uuid, func.min(row.empty_power_w))
        .join(GpuRow, GpuRow.id == row.gpu_id)
        .where(row.empty_s >= MIN_EMPTY_S, row.empty_power_w.is_not(None))
        .group_by(GpuRow.gpu_uuid)
    )
    return {uuid: power_w for uuid, power_w in session.execute(statement) if power_w is not None}
