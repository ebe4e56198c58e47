"""Settings: flag > environment ``GPUWISE_…`` > ``gpuwise.toml`` > default. Standard library, because the agent reads them too.

Files: ``/etc/gpuwise/gpuwise.toml``, then ``$XDG_CONFIG_HOME/gpuwise/gpuwise.toml`` (the later one wins key by key);
``GPUWISE_CONFIG`` names another one instead. A bad value or an unknown key fails at start and names its key and place.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, get_type_hints

from core.errors import SettingsError
from core.fault import FaultKind
from core.rule_settings import TABLES, RuleSettings, parse
from core.sharing import SHARED_BY
from core.units import HOUR_MS

ETC: Final = Path("/etc/gpuwise/gpuwise.toml")


class Secret(str):
    """Text that does not print itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the value in logs and tracebacks."""
        return "Secret('…')" if self else "Secret('')"


def state_home() -> Path:
    """Folder for databases: ``$XDG_STATE_HOME/gpuwise`` or ``~/.local/state/gpuwise``."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "gpuwise"


def _default_database_url() -> str:
    return f"sqlite:///{state_home() / 'gpuwise.db'}"


def _default_spool_path() -> str:
    return str(state_home() / "spool.db")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user can set. Names carry their units; None is "not given", never 0.

    Attributes:
        database_url: ``sqlite:///path`` or ``postgresql://user@host/db``.
        host, port: address of the web server.
        simulated: the database holds a simulated fleet; every page says so.
        hostname: name of this host in the store; default: the system's.
        interval_s: distance of the agent's readings, 0.1–60 s. sample_s: length of a sample; an hour holds a whole number of them.
        sink: where the agent delivers: ``database`` (``database_url``) or ``server`` (``server_url``).
        server_url: address of a gpuwise server, with ``https://`` outside of one machine. server_token: what ``gpuwise token create`` printed there.
        server_token_file: a file with the token instead; a bare name or ``%d/name`` is looked up among systemd's credentials
            (``LoadCredential=``), and ``server_token`` there is found without being named.
        server_ca_file: certificates (PEM) to trust instead of the system's.
        spool_path: SQLite file that keeps what was sampled until it is delivered; one agent each.
        spool_max_mb, spool_max_days: what the spool may grow to; beyond it the oldest day is dropped, logged and counted.
        engine_urls: metrics pages of LLM servers that are not found by themselves (``http://127.0.0.1:8000/metrics``).
        dcgm_url: metrics page of a dcgm-exporter; ``auto`` looks on this host, empty turns it off.
        agent_metrics_port: port of the agent's own ``/metrics`` for a Prometheus; default: none. agent_metrics_host: address to bind it
            to; whoever reaches it may read it.
        raw_days: raw samples kept, days. hour_days: hours kept, days.
        tariff_usd_per_kwh: electricity price; None: energy has no cost.
        pue: power usage effectiveness of the site (cost-model 2: 1.1–1.6).
        host_share_ratio: the rest of the node's power on top of GPU draw (cost-model 2: 0.25–0.35).
        grid_code: row of the grid-carbon table: country (``DEU``), state (``US-VA``), region; default the world's.
        carbon_g_per_kwh: the user's own figure; wins over ``grid_code``.
        pays_for_power: the site pays its power apart from the GPU price (owned or colocated), so energy is added to cost.
        billing: how GPUs are paid: ``on_demand``, ``reserved``, ``owned``; decides whether releasing saves cash.
        accounting_time_zone: where a day, a week and a month of the ledger begin (``Europe/Berlin``); an hour belongs to the day
            in which it begins.
        usage_share_method: how a GPU that several workloads hold together is shared out: ``memory_time`` (memory × time), ``sm_time``
            (each one's share of time with a kernel of its own), ``mig_slice`` (cards cut into MIG slices by the slices' compute,
            unused slices are idle; other cards by memory_time), ``even``. Where figures are missing it is even, and the row says
            so. Hours that were folded before keep their method.
        own_capex_usd … own_life_years: rent-or-buy inputs of the site (cost-model 2); None: not evaluated.
        base_url: address of the web pages as people reach them, for links in mail.
        smtp_*: outgoing mail; no recipients means dry run. smtp_tls: speak TLS from the first byte, as on port 465;
            else smtp_starttls asks for it after the greeting, and refuses a server that has none.
        report_recipients: addresses of the weekly report of the whole fleet; ``gpuwise recipients`` keeps more.
        alert_kinds: what people are told of at once: ``agent-silent``, ``gpu-unhealthy``, ``stuck-job``, ``budget``,
            ``recommendation``; empty: of nothing.
        alert_silent_minutes: an agent that told nothing for so long is silent, 2–10,080.
        alert_recommendation_usd_month: a new recommendation that saves so much a month is an alert; cash as it is, freed
            GPU-hours at the price of their GPUs.
        alert_again_days: how long people are not told again of the same fault, unless it grew by a quarter or got worse, 1–90.
        alert_resolved: tell when a fault is over, too.
        webhook_link_local: allow webhooks at link-local addresses (169.254.0.0/16, fe80::/10), where clouds keep the
            credentials of the machine.
        minimum_saving_usd_month: findings that are worth less are listed as left out, not as recommendations: cash as it is, freed
            GPU-hours at the price of their GPUs, energy at the tariff where the site pays for power. Findings without a figure stay.
        rules: thresholds of rules and exclusions: tables of ``gpuwise.toml``, see ``core/rule_settings.py``.
        report_weekday, report_hour_utc: when the weekly report goes out (0 = Monday).
    """

    database_url: str = field(default_factory=_default_database_url)
    host: str = "127.0.0.1"
    port: int = 8787
    simulated: bool = False
    hostname: str | None = None
    interval_s: float = 1.0
    sample_s: float = 10.0
    sink: str = "database"
    server_url: str | None = None
    server_token: Secret = field(default_factory=Secret)
    server_token_file: str | None = None
    server_ca_file: str | None = None
    spool_path: str = field(default_factory=_default_spool_path)
    spool_max_mb: int = 512
    spool_max_days: int = 14
    engine_urls: tuple[str, ...] = ()
    dcgm_url: str = "auto"
    agent_metrics_port: int | None = None
    agent_metrics_host: str = "127.0.0.1"
    raw_days: int = 14
    hour_days: int = 1095
    tariff_usd_per_kwh: float | None = None
    pue: float = 1.3
    host_share_ratio: float = 0.3
    grid_code: str = "WLD"
    carbon_g_per_kwh: float | None = None
    pays_for_power: bool = False
    billing: str = "on_demand"
    accounting_time_zone: str = "UTC"
    usage_share_method: str = "memory_time"
    own_capex_usd: float | None = None
    own_gpu_count: int = 8
    own_life_years: float = 4.0
    own_residual_ratio: float = 0.15
    own_cost_of_capital_ratio: float = 0.08
    own_maintenance_ratio: float = 0.05
    own_staff_usd_per_year: float = 18_000.0
    own_idle_kw: float = 2.2
    own_active_kw: float = 6.2
    base_url: str = "http://127.0.0.1:8787"
    smtp_host: str | None = None
    smtp_port: int = 587
    smtp_user: str | None = None
    smtp_password: Secret = field(default_factory=Secret)
    smtp_starttls: bool = True
    smtp_tls: bool = False
    smtp_from: str = "gpuwise@localhost"
    report_recipients: tuple[str, ...] = ()
    alert_kinds: tuple[str, ...] = tuple(kind.value for kind in FaultKind)
    alert_silent_minutes: int = 15
    alert_recommendation_usd_month: float = 1_000.0
    alert_again_days: int = 7
    alert_resolved: bool = False
    webhook_link_local: bool = False
    minimum_saving_usd_month: float = 20.0
    rules: RuleSettings = field(default_factory=RuleSettings)
    report_weekday: int = 0
    report_hour_utc: int = 7

    def __post_init__(self) -> None:
        """Bounds that no source may break."""
        _within("port", self.port, 0, 65_535)
        _within("raw_days", self.raw_days, 1, 3_650)
        _within("hour_days", self.hour_days, 1, 36_500)
        _within("pue", self.pue, 1.0, 3.0)
        _within("host_share_ratio", self.host_share_ratio, 0.0, 2.0)
        _within("minimum_saving_usd_month", self.minimum_saving_usd_month, 0.0, 1_000_000.0)
        _within("report_weekday", self.report_weekday, 0, 6)
        _within("report_hour_utc", self.report_hour_utc, 0, 23)
        _within("smtp_port", self.smtp_port, 1, 65_535)
        _alerts(self)
        if self.tariff_usd_per_kwh is not None:
            _within("tariff_usd_per_kwh", self.tariff_usd_per_kwh, 0.0, 10.0)
        if self.billing not in {"on_demand", "reserved", "owned"}:
            raise SettingsError(f"setting billing is {self.billing!r}: use on_demand, reserved or owned")
        if self.usage_share_method not in SHARED_BY:
            raise SettingsError(
                f"setting usage_share_method is {self.usage_share_method!r}: use {', '.join(SHARED_BY)}"
            )
        if not self.database_url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
            raise SettingsError(
                f"setting database_url is {self.database_url.split('@')[-1]!r}: use sqlite:///PATH or postgresql://USER@HOST/DB"
            )
        _time_zone(self.accounting_time_zone)
        _agent(self)


def _time_zone(name: str) -> None:
    if name == "UTC":
        return
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # the agent counts its memory

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise SettingsError(
            f"setting accounting_time_zone is {name!r}: use a name such as Europe/Berlin, or UTC"
        ) from error


def _alerts(settings: Settings) -> None:
    _within("alert_silent_minutes", settings.alert_silent_minutes, 2, 10_080)
    _within("alert_recommendation_usd_month", settings.alert_recommendation_usd_month, 0.0, 1e9)
    _within("alert_again_days", settings.alert_again_days, 1, 90)
    for kind in settings.alert_kinds:
        if kind not in list(FaultKind):
            raise SettingsError(f"setting alert_kinds has {kind!r}: use {', '.join(FaultKind)}")
    if settings.report_recipients:
        from core.user_recipient import plain_address  # the agent counts its memory

        for address in settings.report_recipients:
            try:
                plain_address(address)
            except ValueError as error:
                raise SettingsError(f"setting report_recipients: {error}") from error


def _agent(settings: Settings) -> None:
    _within("interval_s", settings.interval_s, 0.1, 60.0)
    _within("sample_s", settings.sample_s, 1.0, 600.0)
    sample_ms = round(settings.sample_s * 1000)
    if HOUR_MS % sample_ms or settings.sample_s < settings.interval_s:
        raise SettingsError(
            f"setting sample_s is {settings.sample_s}: an hour must be a whole number of samples, and a sample at least one interval_s ({settings.interval_s})"
        )
    _within("spool_max_mb", settings.spool_max_mb, 4, 1_000_000)
    _within("spool_max_days", settings.spool_max_days, 1, 3_650)
    if not settings.spool_path:
        raise SettingsError("setting spool_path is empty: name a file on a local disk")
    if settings.agent_metrics_port is not None:
        _within("agent_metrics_port", settings.agent_metrics_port, 1, 65_535)
    if not settings.agent_metrics_host:
        raise SettingsError(
            "setting agent_metrics_host is empty: use 127.0.0.1, or 0.0.0.0 for every address"
        )
    if settings.sink not in {"database", "server"}:
        raise SettingsError(f"setting sink is {settings.sink!r}: use database or server")
    if settings.server_url is not None:
        _address("server_url", settings.server_url)
        if "?" in settings.server_url or "#" in settings.server_url:
            raise SettingsError(
                "setting server_url has a query: give the address alone, https://HOST[:PORT][/PATH]"
            )
    elif settings.sink == "server":
        raise SettingsError(
            "setting server_url is not given: sink server needs it, e.g. https://gpuwise.example.org"
        )
    for url in settings.engine_urls:
        _address("engine_urls", url)
    if settings.dcgm_url not in {"auto", ""}:
        _address("dcgm_url", settings.dcgm_url)


def _address(key: str, url: str) -> None:
    """Refuse what is no address, without printing what may be a password in it."""
    scheme, mark, rest = url.partition("://")
    host = rest.partition("/")[0]
    if scheme not in {"http", "https"} or not mark or not host or any(c.isspace() for c in url):
        shown = repr(url) if "@" not in url else "no such address"
        raise SettingsError(f"setting {key} is {shown}: use http://HOST[:PORT] or https://HOST[:PORT]")
    if "@" in host:
        raise SettingsError(f"setting {key} has a user or password in it: leave it out of the address")
    port = host.rpartition("]")[2].rpartition(":")[2] if ":" in host.rpartition("]")[2] else "80"
    if not port.isdecimal() or not 0 < int(port) <= 65_535:
        raise SettingsError(f"setting {key} is {url!r}: the port must be a number from 1 to 65535")


def _within(key: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SettingsError(f"setting {key} is {value}: give a value from {low} to {high}")


def load(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from flags, environment and files.

    Args:
        flags: values by setting name; None values are "not given".
        environ: environment; default the process's.

    Raises:
        SettingsError: unknown key or bad value; names key and place.
    """
    env = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    for path in _files(env):
        read = _read_toml(path)
        tables = {key: read.pop(key) for key in TABLES & read.keys()}
        if tables:
            values["rules"] = parse(tables, str(path))
        for key, raw in read.items():
            values[key] = _convert(key, raw, str(path))
    known = {f.name for f in fields(Settings)} - TABLES
    for name, raw in env.items():
        key = name.removeprefix("GPUWISE_").lower()
        if name.startswith("GPUWISE_") and key in known:
            values[key] = _convert(key, raw, f"environment {name}")
    for key, flag in (flags or {}).items():
        if flag is not None:
            values[key] = _convert(key, flag, f"flag --{key.replace('_', '-')}")
    return Settings(**values)


def origins(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Where each setting that files or the environment give is from, by key: a file's path, or ``environment NAME``.

    A flag that wins over both is not seen here. What cannot be read gives nothing: ``load`` has said so at start.
    """
    env = os.environ if environ is None else environ
    found: dict[str, str] = {}
    try:
        for path in _files(env):
            found |= {key: str(path) for key in _read_toml(path)}
    except SettingsError:
        found.clear()
    for setting in fields(Settings):
        name = f"GPUWISE_{setting.name.upper()}"
        if name in env and setting.name not in TABLES:
            found[setting.name] = f"environment {name}"
    return found


def _files(env: Mapping[str, str]) -> list[Path]:
    named = env.get("GPUWISE_CONFIG")
    if named:
        path = Path(named)
        if not path.is_file():
            raise SettingsError(f"GPUWISE_CONFIG names {named}, which is not a file: correct it or unset it")
        return [path]
    config_home = Path(env["XDG_CONFIG_HOME"]) if env.get("XDG_CONFIG_HOME") else Path.home() / ".config"
    # os.path, because a folder that this user may not look into holds no settings for it: no error.
    return [path for path in (ETC, config_home / "gpuwise" / "gpuwise.toml") if os.path.isfile(path)]  # noqa: PTH113


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib  # only where there is a file: the agent counts its memory

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML ({error}): correct that line") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror}): correct its permissions") from error


_HINTS: Final = get_type_hints(Settings)


def _convert(key: str, raw: object, place: str) -> object:
    hint = _HINTS.get(key)
    if hint is None:
        raise SettingsError(f"{place}: unknown setting {key!r}: see docs/settings.md for the names")
    text = str(hint)
    try:
        if hint is bool:
            return _as_bool(raw)
        if hint == tuple[str, ...]:
            return _as_list(raw)
        if hint is Secret:
            return Secret(str(raw))
        if hint in (int, int | None):
            return _as_int(raw)
        if "float" in text:
            return float(str(raw))
    except ValueError as error:
        raise SettingsError(f"{place}: setting {key} is {raw!r}: {error}") from error
    return str(raw)


def _as_bool(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    word = str(raw).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError("use true or false")


def _as_int(raw: object) -> int:
    if isinstance(raw, bool):
        raise ValueError("use a whole number")  # noqa: TRY004 - one kind of error for one kind of mistake
    return int(str(raw))


def _as_list(raw: object) -> tuple[str, ...]:
    parts = raw if isinstance(raw, list | tuple) else str(raw).split(",")
    return tuple(str(part).strip() for part in parts if str(part).strip())
