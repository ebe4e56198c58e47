"""The small fleet again, where everything that people or programs may name has a name that wants to be more than text."""

from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import Final

from api.resources import advise, budgets, exclusions, owners, tariffs
from api.resources.exclusions import ExclusionBody
from api.resources.owner_specs import RuleSpec
from api.resources.scope import scope_of
from api.resources.tariff_specs import parsed as tariff_of
from core.activity import Activity
from core.delivery import Delivery
from core.finding import Action, Advice, Subject, Totals
from core.readings import EngineIdentity, GpuHealth, GpuIdentity, HostIdentity, WorkloadKey
from core.samples import GpuEvent, HostSample, ProcessSample
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import prices, recommendations
from store.rollup import roll_up
from tests.contract import page_fixtures as good
from tests.integration.api.fleet_for_tests import (
    COUNTERS,
    GIB,
    NOW,
    SPAN,
    T0,
    engine_samples,
    sample,
    settings_for,
)

LONG: Final = "W" * 10_000
NAMES: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onmouseover='alert(3)' autofocus onfocus='alert(4)",
    "\u202egnp.yap\u2066\u200e\u2028\u061c",
    "=cmd|' /C calc'!A0",
    "{{7*7}}${7*7}{% raise %}",
    "javascript:alert(5)//</title></textarea></svg>",
    LONG,
    "one\ntwo\tthree\x1b[31m\x85",
    "-2+3+cmd|' /C calc'!A0",
)
PRINTED: Final = tuple(name for name in NAMES if name.isprintable() and len(name) < 200)
"""What the REST interface for agents takes too."""
GIVEN: Final = (*PRINTED, LONG[:190])
"""What a form takes of people."""
MODEL: Final = "NVIDIA H100 80GB HBM3"


def uuid_of(number: int) -> str:
    """A GPU of that host: printable and without blanks, or agents may not say so."""
    return f'GPU-{number}"onmouseover="alert(9)"<b>'


def delivery(number: int, name: str) -> Delivery:
    """An hour of a host whose every name is ``name``: a GPU, its engine, its process, an event."""
    uuid, engine = uuid_of(number), f"{name}:8000/{number}"
    held = WorkloadKey(
        "pod",
        f"key-{number}-{name}",
        name,
        user=name,
        host=name,
        attributes=(("container_id", name), ("namespace", name), ("pod", name)),
    )
    work = {**COUNTERS, "memory_used_bytes": 70.0 * GIB, "process_count": 1.0}
    slots = [
        sample(uuid, slot, Activity.PARKED if slot > 2 else Activity.MEMORY_BOUND, 400.0, **work)
        for slot in range(12)
    ]
    return Delivery(
        host=HostIdentity(name, 64, 512 * GIB, name),
        gpus=[GpuIdentity(uuid, name, number, f"{MODEL} {name}", 80 * GIB, name, name)],
        engines=[EngineIdentity(engine, name, "vllm", f"acme/{name}", {"max_num_seqs": name}, (uuid,))],
        gpu_samples=slots,
        process_samples=[
            ProcessSample(uuid, T0 + slot * SPAN, SPAN, held, 70.0 * GIB, None, 1) for slot in range(12)
        ],
        engine_samples=[replace(one, engine=engine) for one in engine_samples()],
        host_samples=[HostSample(name, T0 + 11 * SPAN, SPAN, {"cpu_busy_ratio": 0.25})],
        events=[GpuEvent(uuid, T0 + SPAN, "xid", name, 79), GpuEvent(uuid, T0 + 2 * SPAN, "stuck", name)],
        health=[GpuHealth(uuid, NOW - 30_000, {"ecc_mode": name, "recovery_action": name})],
    )


def fill_hostile(url: str) -> None:
    """Store it: samples as an import would, which checks nothing; money and advice as people give them."""
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        for number, name in enumerate(NAMES):
            ingest.deliver(delivery(number, name), agent_id=f"agent-{number}", sequence=1, now_ms=NOW)
        ingest.commit()
    engine = make_engine(url)
    assert roll_up(engine, now_ms=NOW).pending_left == 0
    settings = settings_for(url)
    with session_scope(engine) as session:
        for number, name in enumerate(NAMES):
            prices.add(
                session,
                scope_kind="gpu_uuid",
                scope_value=uuid_of(number),
                usd_per_gpu_hour=Decimal(2),
                billing="on_demand",
                valid_from_ms=0,
                note=name,
            )
        for name in GIVEN:
            rule = RuleSpec(name, name, name, host=f"{name[:3]}*", note=name)
            owners.add(session, settings, NOW, rule)
            budget = {"name": name, "scope_kind": "team", "scope_value": name, "amount_usd": Decimal(9)}
            budgets.add(session, settings, budgets.BudgetBody.model_validate(budget), NOW)
            tariffs.add(session, settings, tariff_of({"name": name, "usd_per_kwh": "0.2"}), NOW)
            part = ExclusionBody(user=name, rule_id="power-cap", until="30d", reason=name, who=name)
            exclusions.add(session, settings, part, NOW)
    with session_scope(engine) as session:
        scope = scope_of(session, settings, NOW)
        advise.run(scope, record=True)
        found = tuple(
            good.finding(
                subject=Subject("engine", f"{name}:8000/{number}", name),
                cause=f"cause-{number}",
                title=f"Raise the batch of {name}",
                because=f"Because of {name}.",
                state=name,
                confidence=name,
                actions=(Action(f"Do {name}.", f"vllm serve {name}"),),
                wrong_when=name,
                not_claimed=name,
                gpu_uuids=(uuid_of(number),),
            )
            for number, name in enumerate(NAMES)
        )
        recommendations.record(session, Advice(found, (), Totals(None, None, None, None)), NOW)
