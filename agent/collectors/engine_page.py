"""One engine's metrics page → identities and readings. Pure, and quick: a page has 100 kB, of which 2 kB matter.

A page is mostly histogram buckets. One regular expression for each prefix, made from the tables in ``agent.engines``, jumps
from line to line to the wanted names; labels are parsed once for each series, its text is remembered.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

from agent.engines import engine_series, names_by_prefix
from agent.sources.exposition import LineError, labels_of, name_of
from core.plausible import plausible
from core.readings import EngineIdentity, EngineReading

MOST_CORES: Final = 256
"""A page with more engines is not believed."""
LOOK_AGAIN: Final = 12
"""Pages after which prefixes are looked for anew: a server may load another engine later."""
_MOST_SERIES: Final = 4096
_MOST_TEXT: Final = 1024
"""A model's name or a setting that is longer says nothing."""
_LABELS: Final = rb'(?:\{[^"}\n]*+(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[^"}\n]*+)*+\})?'


def _pattern(names: tuple[str, ...], prefix: str) -> re.Pattern[bytes]:
    stems = sorted((re.escape(name.removeprefix(prefix)) for name in names), key=len, reverse=True)
    words = "|".join(stems).encode()
    start = re.escape(prefix).encode()
    return re.compile(rb"\n(" + start + rb"(?:" + words + rb")(?:_total)?" + _LABELS + rb")[ \t]+(\S+)")


_PATTERNS: Final = tuple(
    (f"\n{prefix}".encode(), _pattern(names, prefix)) for prefix, names in names_by_prefix().items()
)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a series gives. ``core`` is None where no label tells it; ``keys`` are settings that the value fills."""

    kind: str
    core: str | None
    model: str | None
    metrics: tuple[tuple[str, int, bool], ...]
    keys: tuple[str, ...]
    settings: Mapping[str, str]


_Key = tuple[str, str, str | None]
"""An engine of a page: core, kind, model."""


@dataclass(slots=True)
class _Found:
    """One engine on one page."""

    settings: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)

    def add(self, reading: str, rank: int, value: float, *, summed: bool) -> None:
        """Take a value: the lowest rank counts, parts add up, and of two that should be one neither is known."""
        held = self.ranks.get(reading)
        if held is None or rank < held:
            self.values[reading], self.ranks[reading] = value, rank
            self.doubtful.discard(reading)
        elif rank == held:
            if summed:
                self.values[reading] += value
            else:
                self.doubtful.add(reading)

    def reading(self, engine: str, ts_ms: int) -> EngineReading | None:
        """What is known and can be true; None when that is nothing."""
        values = {}
        for name, value in self.values.items():
            checked = plausible(name, value)
            if checked is not None and name not in self.doubtful:
                values[name] = checked
        return EngineReading(engine, ts_ms, values) if values else None


@dataclass(slots=True)
class About:
    """What is known of a server without its page; what the page says goes before it.

    Attributes:
        host: where it runs. instance: ``host:port``, the start of the names of its engines.
        model, settings: from its command line.
        gpu_uuids: that its processes hold.
    """

    host: str
    instance: str
    model: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    gpu_uuids: tuple[str, ...] = ()


class EnginePage:
    """The page of one server, read again and again.

    Args:
        about: the server; may change between pages.

    Attributes:
        limits, model: what the server tells of itself elsewhere; goes before its command line.
    """

    def __init__(self, about: About) -> None:
        self.about = about
        self.limits: Mapping[str, str] = {}
        self.model: str | None = None
        self._known: dict[bytes, _Meaning | None] = {}
        self._patterns: tuple[re.Pattern[bytes], ...] = ()
        self._read = 0
        self._first: dict[str, tuple[str, str | None]] = {}

    def read(self, body: bytes, ts_ms: int) -> list[tuple[EngineIdentity, EngineReading | None]]:
        """Engines of a page with their values; empty when it is no page of an engine.

        Engines of one server stay apart by their label ``engine`` (``dp_rank``), and models that one engine serves at
        the same time too. What a server with several engines counts for all of them together belongs to none.
        """
        if not body.startswith(b"#"):
            body = b"\n" + body
        found = self._series(body)
        cores: dict[str, set[str]] = {}
        for meaning, _value in found:
            if meaning.core is not None:
                cores.setdefault(meaning.kind, set()).add(meaning.core)
        if any(len(named) > MOST_CORES for named in cores.values()):
            return []
        only = {kind: next(iter(named)) for kind, named in cores.items() if len(named) == 1}
        engines: dict[_Key, _Found] = {}
        late: list[tuple[_Meaning, str | None, float]] = []
        for meaning, value in found:
            kind = meaning.kind
            core = meaning.core or (only.get(kind) if kind in cores else "0")
            if core is None or meaning.model is None:
                late.append((meaning, core, value))
            else:
                _take(engines, (core, kind, meaning.model), meaning, value)
        for meaning, core, value in late:
            kind = meaning.kind
            fitting = [key for key in engines if key[1] == kind and core in {None, key[0]}]
            if meaning.metrics and (core is None or len(fitting) > 1):
                continue
            for key in fitting or [(core or "0", kind, None)]:
                _take(engines, key, meaning, value)
        return [self._engine(key, one, ts_ms) for key, one in engines.items()]

    def _series(self, body: bytes) -> list[tuple[_Meaning, float]]:
        """Wanted series of a page with their values."""
        if not self._patterns or self._read % LOOK_AGAIN == 0:
            self._patterns = tuple(pattern for mark, pattern in _PATTERNS if mark in body)
        self._read += 1
        known = self._known
        found = []
        for pattern in self._patterns:
            for text, figure in pattern.findall(body):
                meaning = known[text] if text in known else self._resolve(text)
                if meaning is None:
                    continue
                try:
                    found.append((meaning, float(figure)))
                except ValueError:
                    continue
        return found

    def _resolve(self, text: bytes) -> _Meaning | None:
        """What a series means, remembered."""
        if len(self._known) >= _MOST_SERIES:
            self._known.clear()
        meaning = self._known[text] = _meaning(text.decode(errors="replace"))
        return meaning

    def _engine(self, key: _Key, found: _Found, ts_ms: int) -> tuple[EngineIdentity, EngineReading | None]:
        about = self.about
        core, kind, model = key
        name = f"{about.instance}/{core}"
        first = self._first.get(core)
        if first is None or first == (kind, None):
            self._first[core] = (kind, model)
        elif first != (kind, model):
            name = f"{name}-{model or kind}"
        identity = EngineIdentity(
            name,
            about.host,
            kind,
            model or about.model or self.model,
            {**about.settings, **self.limits, **found.settings},
            about.gpu_uuids,
        )
        return identity, found.reading(name, ts_ms)


def _meaning(text: str) -> _Meaning | None:
    """None for a series that is none of ours, or whose labels cannot be read."""
    try:
        series = engine_series(name_of(text), labels_of(text))
    except LineError:
        return None
    if series is None:
        return None
    return _Meaning(
        series.kind,
        series.core if series.names_core and len(series.core) <= _MOST_TEXT else None,
        series.model if series.model and len(series.model) <= _MOST_TEXT else None,
        tuple((one.reading, one.rank, one.summed) for one in series.metrics if not one.setting),
        tuple(one.reading for one in series.metrics if one.setting),
        {key: value for key, value in series.settings.items() if len(value) <= _MOST_TEXT},
    )


def _take(engines: dict[_Key, _Found], key: _Key, meaning: _Meaning, value: float) -> None:
    found = engines.get(key)
    if found is None:
        found = engines[key] = _Found()
    for reading, rank, summed in meaning.metrics:
        found.add(reading, rank, value, summed=summed)
    if meaning.settings:
        found.settings |= meaning.settings
    if meaning.keys and isfinite(value):
        shown = str(int(value)) if value == int(value) else repr(value)
        for setting in meaning.keys:
            found.settings[setting] = shown
