"""The demo's owners, budgets, tariff and facts of hosts: written once, beside the fleet that they are about."""

from typing import Final

from sqlalchemy.orm import Session

from api.resources import budgets, host_facts, owners, sites, tariffs
from api.resources.host_facts import HostSays
from api.resources.owner_specs import RuleSpec
from api.resources.tariff_specs import parsed as tariff_body
from core.settings import Settings

TARIFF: Final = "hall, day and night"
_OWNERS: Final = (
    RuleSpec("assistants", "search", "4410", user="svc-search"),
    RuleSpec("assistants", "support", "4410", user="svc-support"),
    RuleSpec("assistants", "chat", "4410", user="svc-assist"),
    RuleSpec("media", "speech", "4520", user="svc-speech"),
    RuleSpec("media", "library", "4520", user="svc-media"),
    RuleSpec("media", "scoring", "4520", user="svc-batch"),
    RuleSpec("research", "training", "4700", user="mara"),
    RuleSpec("research", "training", "4700", host="train-*", note="Idle time of the training nodes too."),
    RuleSpec("research", "lab", "4700", host="lab-*", note="Whoever works there, and what stands idle."),
)
_HOSTS: Final = (
    HostSays("*", {"cluster": "hall-1", "region": "aws:eu-central-1"}),
    HostSays("lab-*", {"cluster": "lab"}),
)
_BUDGETS: Final = (
    ("Assistants", "assistants", 21_000),
    ("Media", "media", 16_000),
    ("Research", "research", 42_000),
)


def tell(session: Session, settings: Settings, now_ms: int, first_month: str) -> None:
    """Write them all; hosts must be known."""
    for spec in _OWNERS:
        owners.add(session, settings, now_ms, spec)
    host_facts.say(session, _HOSTS)
    tariffs.add(
        session,
        settings,
        tariff_body(
            {
                "name": TARIFF,
                "time_zone": "Europe/Berlin",
                "periods": [
                    {"weekdays": "mon-fri", "from_hour": 7, "to_hour": 21, "usd_per_kwh": "0.172"},
                    {"weekdays": "all", "from_hour": 21, "to_hour": 7, "usd_per_kwh": "0.118"},
                    {"weekdays": "sat,sun", "from_hour": 7, "to_hour": 21, "usd_per_kwh": "0.118"},
                ],
            }
        ),
        now_ms,
    )
    sites.add(
        session,
        settings,
        sites.parsed(
            {
                "name": "hall 1",
                "tariff": TARIFF,
                "pue": 1.25,
                "note": "Rented machines: power is in the price.",
            }
        ),
        now_ms,
    )
    for name, team, amount in _BUDGETS:
        body = {
            "name": name,
            "scope_kind": "team",
            "scope_value": team,
            "amount_usd": amount,
            "from_month": first_month,
        }
        budgets.add(session, settings, budgets.parsed(body), now_ms)
