"""Good values for pages of settings: prices, tariffs, sites, owners, recipients and tokens."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from api.resources.effective_prices import EffectivePriceRow
from api.resources.owner_claims import Claim, DryRun
from api.resources.owners import view as rule_view
from api.resources.prices import PriceView
from api.resources.recipients import RecipientView
from api.resources.sites import SiteView, TermsView
from api.resources.tariffs import PeriodView, TariffView
from api.resources.unowned import UnownedRow
from core.clock import from_ms
from core.evidence import Window
from core.outbox import Channel, MessageKind, MessageState
from core.ownership import HostFacts, Owner, OwnerConditions, OwnerRule
from core.units import DAY_MS
from core.user_tariff import Period, Tariff
from store.queries.mail import Logged
from store.queries.tokens import TokenRecord
from tests.contract import page_fixtures as good

NOW = from_ms(good.NOW_MS)


def effective(**changes: object) -> EffectivePriceRow:
    """A GPU at a fresh list price."""
    base = EffectivePriceRow(
        gpu_uuid="GPU-a",
        host="node-1",
        model="NVIDIA H100",
        gpu_key="H100-SXM5-80GB",
        usd_per_gpu_hour=Decimal("3.37"),
        price_basis="catalogue: median",
        billing="on_demand",
        gpus_per_unit=1,
        commitment=None,
        price_id=None,
        list_usd_per_gpu_hour=Decimal("3.37"),
        as_of="2025-11-01",
        price_age_days=19,
        stale=False,
        why_unpriced=None,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def price(**changes: object) -> PriceView:
    """A committed price of a model with an upfront."""
    base = PriceView(
        id=3,
        scope_kind="model",
        scope_value="NVIDIA H100",
        amount_per_gpu_hour=Decimal("2.10"),
        currency="EUR",
        usd_per_gpu_hour=Decimal("2.50"),
        billing="committed",
        gpus_per_unit=None,
        valid_from=datetime(2025, 1, 1, tzinfo=UTC),
        valid_to=None,
        commitment="cud-7",
        committed_gpus=64,
        upfront=Decimal(250_000),
        effective_amount_per_gpu_hour=Decimal("2.4"),
        spot_effective_amount_per_gpu_hour=None,
        inputs=None,
        owned_rate=None,
        gpu_count=8,
        note="a note",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


TERMS = TermsView(
    host="node-1",
    at=NOW,
    site="hall 1",
    usd_per_kwh=Decimal("0.118"),
    tariff="hall",
    is_time_of_use=True,
    pue=1.25,
    host_share_ratio=0.3,
    host_share_method="setting",
    carbon_g_per_kwh=344.0,
    carbon_code="DEU",
    carbon_year=2024,
    carbon_method="mix",
    pays_for_power=False,
    origins={"tariff": "profile hall 1", "pue": "settings"},
)
PERIODS = (
    Period((0, 1, 2, 3, 4), 7, 21, Decimal("0.172")),
    Period((0, 1, 2, 3, 4), 21, 7, Decimal("0.118")),
    Period((5,), 7, 24, Decimal("0.118")),
    Period((6,), 0, 24, Decimal("0.118")),
    Period((0,), 0, 7, Decimal("0.118")),
)
TARIFF = Tariff(1, "hall", "Europe/Berlin", None, PERIODS, 0)
TARIFF_ROW = TariffView(
    id=1,
    name="hall",
    kind="time_of_use",
    time_zone="Europe/Berlin",
    usd_per_kwh=None,
    periods=(PeriodView("mon-fri", 7, 21, Decimal("0.172")),),
    lowest_usd_per_kwh=Decimal("0.118"),
    highest_usd_per_kwh=Decimal("0.172"),
    valid_from=datetime(1970, 1, 1, tzinfo=UTC),
    valid_to=None,
    note="",
)
SITE = SiteView(
    id=1,
    name="hall 1",
    scope_kind="all",
    scope_value="",
    tariff="hall",
    pue=1.25,
    host_share_ratio=None,
    host_share_measured=True,
    host_rest_ratio=None,
    grid_code="DEU",
    carbon_g_per_kwh=None,
    pays_for_power=True,
    gpu_count=8,
    valid_from=datetime(1970, 1, 1, tzinfo=UTC),
    valid_to=None,
    note="",
)


def rule(id_: int, team: str, note: str = "", user: str | None = "ann*") -> OwnerRule:
    """A rule about a user."""
    return OwnerRule(id_, Owner(team), OwnerConditions(user=user), 0, None, note)


RULES = [rule_view(rule(1, "vision"), 1, good.NOW_MS), rule_view(rule(2, "lab"), 2, good.NOW_MS)]
UNOWNED = [
    UnownedRow("slurm_job", "bob", None, 412.0, Decimal(1120)),
    UnownedRow(None, None, None, 30.0, None),
]
FACTS = [HostFacts("node-1"), HostFacts("node-2", cluster="ci", labels=(("rack", "a7"),))]
DRY = DryRun(
    rule=rule_view(rule(0, "research"), 3, good.NOW_MS),
    window=Window(good.NOW_MS - 30 * DAY_MS, good.NOW_MS),
    total_gpu_h=1000.0,
    claimed_gpu_h=412.0,
    claimed_usd=Decimal(1120),
    claimed=(Claim("train.py", "Slurm job", "bob", "node-1", 412.0, None, "unowned"),),
    kept_by_others=(Claim("eval.py", "process", "bob", "node-1", 8.0, 1, "vision"),),
    unowned_before_gpu_h=442.0,
    unowned_after_gpu_h=30.0,
)
RECIPIENT = RecipientView(
    id=4,
    source="kept",
    channel="mail",
    address="finance@example.org",
    team=None,
    project=None,
    audience="the whole fleet",
    weekly=True,
    alerts=False,
    quiet_week="skip",
    paused_until=None,
    note="",
    created_at=NOW,
    last_state="failed",
    last_at=NOW - timedelta(hours=3),
    last_problem="550 no such user",
)
LOGGED = Logged(
    id=1,
    kind=MessageKind.WEEKLY,
    period="2025-W46",
    audience=None,
    channel=Channel.MAIL,
    shown="finance@example.org",
    recipient_id=4,
    subject="$40,000 spent",
    state=MessageState.FAILED,
    attempts=5,
    created_at_ms=good.NOW_MS - DAY_MS,
    next_try_at_ms=None,
    ended_at_ms=good.NOW_MS,
    message="550 no such user",
)
TOKEN = TokenRecord(1, "rack a", "node-1", "ingest", "gw_ssss", good.NOW_MS - DAY_MS, None, None, None)
