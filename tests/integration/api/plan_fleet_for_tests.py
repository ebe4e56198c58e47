"""Four GPUs of two hosts over nine weeks, as hours: two are wanted always, three by day from Monday to Friday.

Held GPUs work 45 minutes of the hour at 600 W and are parked for 15 at 120 W; others are empty at 80 W.
"""

from contextlib import closing
from decimal import Decimal
from typing import Final

from sqlalchemy import insert, select, update

from core.activity import Activity
from core.hours import GpuHour
from core.readings import GpuIdentity
from core.samples import EnergyMethod
from core.settings import Settings
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.hour_rows import gpu_hour_values
from store.ingest import Ingest
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.queries import prices

T0: Final = 1_791_158_400_000  # 2026-10-05T00:00:00Z, a Monday
HOUR: Final = 3_600_000
WEEK_H: Final = 168
H100: Final = "NVIDIA H100 80GB HBM3"
KEY: Final = "H100-SXM5-80GB"
GPUS: Final = tuple(f"GPU-{number:02d}" for number in range(4))
GAP: Final = range(200, 210)
"""Hours of which no sample is there."""


def wanted(hour: int) -> int:
    """GPUs held in that hour since the start."""
    weekend = hour // 24 % 7 > 4
    return 3 if hour % 24 in range(8, 20) and not weekend else 2


def settings_for(url: str, **more: object) -> Settings:
    """A site with a tariff, and a quarter of GPU draw on top for hosts."""
    return Settings(
        database_url=url,
        tariff_usd_per_kwh=0.12,
        pue=1.3,
        host_share_ratio=0.25,
        **more,  # type: ignore[arg-type]
    )


def hour_of(gpu: int, hour: int) -> GpuHour:
    """One hour of one GPU."""
    held = gpu < wanted(hour)
    seconds = {Activity.BUSY: 2_700.0, Activity.PARKED: 900.0} if held else {Activity.EMPTY: 3_600.0}
    watts = {Activity.BUSY: 600.0, Activity.PARKED: 120.0, Activity.EMPTY: 80.0}
    joules = {activity: s * watts[activity] for activity, s in seconds.items()}
    return GpuHour(
        gpu_uuid=GPUS[gpu],
        hour_ms=T0 + hour * HOUR,
        covered_s=3_600.0,
        seconds=seconds,
        joules=joules,
        energy_j=sum(joules.values()),
        energy_method=EnergyMethod.COUNTER,
        energy_covered_s=3_600.0,
        allocated_s=3_600.0 if held else 0.0,
        active_s=2_700.0 if held else 0.0,
        effective_s=0.0,
        effective_unknown_s=2_700.0 if held else 0.0,
    )


def fill(url: str, weeks: float = 9, *, price_usd: str | None = "3.99", billing: str = "on_demand") -> int:
    """Store the fleet; returns the end of its data."""
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus(
            [GpuIdentity(uuid, f"node-{n // 2}", n % 2, H100, 80 << 30) for n, uuid in enumerate(GPUS)]
        )
        ingest.commit()
    hours = round(weeks * WEEK_H)
    end_ms = T0 + hours * HOUR
    with session_scope(make_engine(url)) as session:
        keys: dict[str, int] = dict(session.execute(select(GpuRow.gpu_uuid, GpuRow.id)).all())  # type: ignore[arg-type]
        session.connection().execute(
            insert(GpuHourRow.__table__),
            [
                gpu_hour_values(hour_of(gpu, hour), keys[uuid])
                for gpu, uuid in enumerate(GPUS)
                for hour in range(hours)
                if hour not in GAP
            ],
        )
        session.execute(
            update(GpuRow).values(first_sample_ms=T0, last_sample_ms=end_ms - 10_000, seen_until_ms=end_ms)
        )
        if price_usd is not None:
            prices.add(
                session,
                scope_kind="model",
                scope_value=H100,
                usd_per_gpu_hour=Decimal(price_usd),
                billing=billing,
                gpus_per_unit=2,
                valid_from_ms=0,
                valid_to_ms=None,
                note="",
            )
    return end_ms
