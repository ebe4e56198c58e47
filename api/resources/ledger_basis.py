"""What every line of the ledger rests on besides prices, places and owners: settings, the shipped facts, the way it is priced."""

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from sqlalchemy.orm import Session

from core.errors import GpuwiseError
from core.settings import Settings
from store.ledger_weeks import ZONE_KEY
from store.queries import ledger_lines, ledger_months, ledger_pending, meta

PRICED_AS: Final = 2
"""Counts up when ``ledger.lines`` prices differently, so that stored days are priced anew."""
SETTINGS: Final = (
    "accounting_time_zone",
    "tariff_usd_per_kwh",
    "pue",
    "host_share_ratio",
    "grid_code",
    "carbon_g_per_kwh",
    "pays_for_power",
)
"""Settings that a line depends on; what is kept in tables marks its days itself."""
FACTS: Final = (
    "cloud_regions.csv",
    "electricity_prices.csv",
    "gpu_prices.csv",
    "gpu_specs.csv",
    "grid_carbon.csv",
    "mig_profiles.csv",
)
DIGEST_KEY: Final = "ledger_digest"


def is_current(session: Session, settings: Settings) -> bool:
    """Whether stored days rest on what holds now; if not, price everything on the fly until the job has been here."""
    return meta.get(session, DIGEST_KEY) == digest(settings)


def prepare(session: Session, settings: Settings) -> bool:
    """Mark everything where stored days rest on something else than what holds now; whether that was so.

    Raises:
        GpuwiseError: another time zone, while months are closed in the old one.
    """
    told, zone = digest(settings), settings.accounting_time_zone
    if meta.get(session, DIGEST_KEY) == told:
        return False
    # Marked before lines are removed: of days of silence there is nothing else to know them by.
    ledger_pending.mark(session, 0, None)
    before = meta.get(session, ZONE_KEY)
    if before not in {None, zone}:
        closed = ledger_months.listing(session)
        if closed:
            raise GpuwiseError(
                f"setting accounting_time_zone is {zone!r}, but {closed[-1].month} was closed with days of {before!r}: "
                f"set it back to {before!r}; closed months stay as they are"
            )
        ledger_lines.remove_days_with_hours(session)
    meta.put(session, DIGEST_KEY, told)
    meta.put(session, ZONE_KEY, zone)
    return True


def digest(settings: Settings) -> str:
    """Of all that this module is about."""
    told = [f"{name}={getattr(settings, name)!r}" for name in SETTINGS]
    return sha256("\n".join([str(PRICED_AS), _facts(), *told]).encode()).hexdigest()[:32]


@cache
def _facts() -> str:
    whole = sha256()
    for name in FACTS:
        whole.update(files("catalog").joinpath("data", name).read_bytes())
    return whole.hexdigest()
