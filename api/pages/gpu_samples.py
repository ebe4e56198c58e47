"""One GPU's hour by the sample: every stored reading with its time stamp, where every figure of gpuwise begins."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from api import formats
from api.pages.facts import split, text_of
from api.pages.frame import Frame, build_frame
from api.pages.gpu import Close, close_up
from api.pages.gpu_slowed import of_sample, text_of_reasons
from api.pages.view import ViewDep
from api.resources.scope import parse_time
from api.templating import render
from api.words import activity_name
from core.activity import Activity
from core.clock import from_ms, iso
from core.evidence import Window
from core.metrics import BY_NAME, GPU_COLUMNS
from core.samples import GpuSample
from core.units import DAY_MS, HOUR_MS
from ledger.calendar import Calendar
from store.queries import samples

router = APIRouter(include_in_schema=False)

ROWS: Final = 120
"""Of one page: twenty minutes of a live agent; an hour in one table would be a wall."""


@dataclass(frozen=True, slots=True)
class Head:
    """One column: its name for people, and what the metric is."""

    name: str
    help: str


@dataclass(frozen=True, slots=True)
class SampleLine:
    """One sample; ``cells`` are as long as the page's heads."""

    ts_ms: int
    activity: Activity
    coverage_ratio: float
    energy_method: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SamplesPage:
    """Everything the page prints."""

    frame: Frame
    headline: str
    name: str
    hour_ms: int
    gpu_href: str
    day_href: str
    before_href: str
    after_href: str | None
    csv_href: str
    heads: tuple[Head, ...]
    lines: tuple[SampleLine, ...]
    total: int
    first: int
    pages: tuple[tuple[int, str, bool], ...]
    raw_days: int


TEXTS: Final[dict[str, Callable[[float], str]]] = {
    "temperature_c": formats.celsius,
    "memory_temperature_c": formats.celsius,
    "temperature_margin_c": formats.celsius,
}


def cell(sample: GpuSample, name: str) -> str:
    """One reading with its unit; flags as the reasons they stand for."""
    value = sample.values.get(name)
    if value is None:
        return formats.UNKNOWN
    if name == "event_reasons_flags":
        return text_of_reasons(of_sample(sample)) or "none"
    return TEXTS[name](value) if name in TEXTS else text_of(name, value)


def lines_of(found: list[GpuSample]) -> tuple[tuple[Head, ...], tuple[SampleLine, ...]]:
    """Columns of whatever was measured in any of the samples, and the samples."""
    names = [name for name in GPU_COLUMNS if any(name in sample.values for sample in found)]
    heads = tuple(
        Head(split(name)[0].removesuffix(" c").removesuffix(" flags"), BY_NAME[name].help) for name in names
    )
    lines = tuple(
        SampleLine(
            sample.ts_ms,
            sample.activity,
            sample.covered_ms / sample.span_ms,
            sample.energy_method.value if sample.energy_method else formats.UNKNOWN,
            tuple(cell(sample, name) for name in names),
        )
        for sample in found
    )
    return heads, lines


def headline(name: str, found: list[GpuSample], hour_ms: int) -> str:
    """What most samples of the hour were."""
    when = f"{formats.day_year(hour_ms)} {from_ms(hour_ms):%H:%M}–{from_ms(hour_ms + HOUR_MS):%H:%M} UTC"
    if not found:
        return f"{name}: no samples are kept of {when}"
    activity, count = Counter(sample.activity for sample in found).most_common(1)[0]
    of = f"All {len(found)}" if count == len(found) else f"{count} of {len(found)}"
    return f"{of} samples were {activity_name(activity)}: {name}, {when}"


def build_samples(close: Close, hour: str, page: int) -> SamplesPage:
    """The page of one hour."""
    scope, newest = close.scope, close.gpu.last_seen_ms or close.scope.now_ms
    at = parse_time(hour, back_from_ms=scope.now_ms, flag="hour") if hour else max(newest - 1, 0)
    hour_ms = at - at % HOUR_MS
    window = Window(hour_ms, hour_ms + HOUR_MS)
    found = samples.gpu_samples(scope.session, close.uuid, window)
    count = max(1, -(-len(found) // ROWS))
    page = min(max(page, 1), count)
    first = (page - 1) * ROWS
    heads, lines = lines_of(found[first : first + ROWS])
    day = Calendar(scope.settings.accounting_time_zone).day_at(hour_ms).key
    span = {"since": iso(hour_ms), "until": iso(hour_ms + HOUR_MS)}

    def href(start_ms: int, number: int = 1) -> str:
        asked = {"hour": f"{from_ms(start_ms):%Y-%m-%dT%H:00:00Z}"} | (
            {"page": str(number)} if number > 1 else {}
        )
        return f"{close.path}/samples?{urlencode(asked)}"

    return SamplesPage(
        frame=build_frame(close.view, active="fleet", title=f"{close.name}, samples", window_text=""),
        headline=headline(close.name, found, hour_ms),
        name=close.name,
        hour_ms=hour_ms,
        gpu_href=f"{close.path}?{urlencode(span)}",
        day_href=f"{close.path}/hours?day={day}",
        before_href=href(max(hour_ms - HOUR_MS, 0)),
        after_href=href(hour_ms + HOUR_MS) if hour_ms + HOUR_MS < newest else None,
        csv_href=f"/api/v1{close.path}/samples?{urlencode({'format': 'csv', 'limit': '1000', **span})}",
        heads=heads,
        lines=lines,
        total=len(found),
        first=first + 1,
        pages=tuple((number, href(hour_ms, number), number == page) for number in range(1, count + 1)),
        raw_days=scope.settings.raw_days,
    )


@router.get("/gpus/{gpu_uuid:path}/samples", response_class=HTMLResponse)
def samples_page(
    gpu_uuid: str,
    view: ViewDep,
    hour: Annotated[str, Query(max_length=40)] = "",
    page: Annotated[int, Query(ge=1, le=DAY_MS)] = 1,
) -> str:
    """One hour of one GPU as HTML."""
    return render("pages/gpu_samples.html", build_samples(close_up(view, gpu_uuid), hour, page))
