"""What no single field can say: parts within their interval, times that can be, and who speaks for which host."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from api.resources.ingest_body import SHARES, IngestBody
from api.resources.ingest_refusals import RefusedError, invalid, shown
from core.clock import iso
from core.units import DAY_MS, MINUTE_MS, SECOND_MS

AHEAD_MS: Final = 5 * MINUTE_MS
"""How far a sample may lie in the server's future: clocks without NTP drift by minutes."""
LONGEST_RETRY_S: Final = 900
"""A clock far ahead may be set right at any time: look again within this."""
SAMPLES: Final = ("gpu_samples", "process_samples", "engine_samples", "host_samples")
RECORDS: Final = ("events", "health")

Row = Mapping[str, Any]


class Keeping(NamedTuple):
    """How long the server keeps things, days."""

    raw_days: int
    hour_days: int


def rows_of(body: IngestBody, name: str) -> Sequence[Row]:
    """A list of the body; one that is absent is empty."""
    found: Sequence[Row] = body.get(name, ())  # type: ignore[assignment]  # the name is one of its lists
    return found


def check_parts(body: IngestBody) -> None:
    """Refuse a part that is longer than its whole.

    Raises:
        RefusedError: 422, names the field.
    """
    for name in ("gpu_samples", "engine_samples"):
        for place, row in enumerate(rows_of(body, name)):
            for part in ("covered_ms", "busy_ms"):
                if row.get(part, 0) > row["span_ms"]:
                    raise invalid(f"{name}[{place}].{part} is {row[part]}: span_ms is only {row['span_ms']}")


def check_times(body: IngestBody, *, now_ms: int, keeping: Keeping, clock_skew_s: float | None) -> None:
    """Refuse what lies in the future, and what would be purged at once.

    Raises:
        RefusedError: 425 with the time to wait, or 422; names the field.
    """
    latest_ms = now_ms + AHEAD_MS
    for names, days in ((SAMPLES, keeping.raw_days), (RECORDS, keeping.hour_days)):
        oldest_ms = (now_ms // DAY_MS - days) * DAY_MS
        for name in names:
            rows = rows_of(body, name)
            times = [row["ts_ms"] for row in rows]
            if not times:
                continue
            if max(times) > latest_ms:
                raise _too_early(f"{name}[{times.index(max(times))}].ts_ms", max(times), now_ms, clock_skew_s)
            if min(times) < oldest_ms:
                place = times.index(min(times))
                raise invalid(
                    f"{name}[{place}].ts_ms is {_when(times[place])}: this server keeps them for {days} days, since {iso(oldest_ms)}"
                )


def check_hosts(body: IngestBody, host: str | None) -> None:
    """Refuse a delivery that names another host than its token's; None: a token for any host.

    Raises:
        RefusedError: 403, names the field.
    """
    if host is None:
        return
    for path, named in _hosts(body):
        if named is not None and named != host:
            raise RefusedError(
                403,
                f"{path} is {shown(named)}, and this token is for {shown(host)}: "
                "give each host a token of its own (gpuwise token create --host NAME)",
            )


def round_shares(body: IngestBody) -> None:
    """Make shares that rounding put a little above the whole the whole."""
    for name, shares in SHARES.items():
        for row in rows_of(body, name):
            values = row["values"]
            for share in shares:
                if values.get(share, 0.0) > 1.0:
                    values[share] = 1.0
    for row in rows_of(body, "process_samples"):
        if row.get("busy_ratio", 0.0) > 1.0:
            row["busy_ratio"] = 1.0  # type: ignore[index]  # a dictionary of this request


def _hosts(body: IngestBody) -> Iterator[tuple[str, str | None]]:
    if "host" in body:
        yield "host.name", body["host"]["name"]
    for name in ("gpus", "engines", "host_samples"):
        for place, row in enumerate(rows_of(body, name)):
            yield f"{name}[{place}].host", row.get("host")
    for place, row in enumerate(rows_of(body, "process_samples")):
        yield f"process_samples[{place}].workload.host", row["workload"].get("host")


def _too_early(path: str, ts_ms: int, now_ms: int, clock_skew_s: float | None) -> RefusedError:
    ahead_s = (ts_ms - now_ms) / SECOND_MS
    wait_s = (ts_ms - now_ms - AHEAD_MS + SECOND_MS - 1) // SECOND_MS
    sent = "" if clock_skew_s is None else f" (its Date was {clock_skew_s:+.0f} s off)"
    return RefusedError(
        425,
        f"{path} is {_when(ts_ms)}, {ahead_s:,.0f} s ahead of this server's clock{sent}: set both clocks by NTP",
        retry_s=min(wait_s, LONGEST_RETRY_S),
    )


def _when(ts_ms: int) -> str:
    """A time for people; one beyond the calendar as its number."""
    try:
        return str(iso(ts_ms))
    except (ValueError, OverflowError, OSError):
        return str(ts_ms)
