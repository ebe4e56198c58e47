"""What tables of a thousand GPUs read is what the rows behind it say, on both databases."""

import random
from dataclasses import replace

import pytest
from sqlalchemy import Engine, insert
from sqlalchemy.orm import Session

from core.activity import Activity
from core.evidence import Window
from core.finding import Advice, Effort, Finding, Grade, Risk, Saving, Status, Subject, Totals
from core.readings import SLICE_PREFIX
from core.units import HOUR_MS
from store.models.engine import EngineRow
from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.models.host import HostRow
from store.queries import recommendations
from store.queries.advice_heads import advice_heads
from store.queries.evidence import fleet_chunks
from store.queries.fleet import cards_by_host, engines
from store.queries.fleet_state import coverage_ratio
from store.queries.gpu_hosts import hosts_of_gpus
from store.queries.gpu_strips import main_activities

T0 = 1_791_158_400_000
HOURS = 30
WINDOW = Window(T0, T0 + HOURS * HOUR_MS)
OF_ALL = ("energy_covered_s", "allocated_s", "active_s", "effective_s", "effective_unknown_s")
FINDING = Finding(
    rule_id="parked-model",
    subject=Subject("engine", "h1:8000/0", "an engine"),
    cause="held",
    title='Say ","evidence":{"x":1}" aloud',
    because="It is “so”.",
    state="parked",
    confidence="measured",
    grade=Grade.A,
    effort=Effort.LOW,
    risk=Risk.LOW,
    saving=Saving(),
    evidence={"held_h": 30.0},
    actions=(),
    wrong_when="Never.",
    gpu_uuids=("GPU-1",),
    chart={"series": [[1, 2.0]]},
)


@pytest.fixture
def fleet(engine: Engine) -> Engine:
    """Four GPUs and a slice on two hosts, a stray, two engines; hours by chance, with gaps and with ties."""
    with Session(engine) as session:
        session.add_all([HostRow(id=at, name=f"h{at}") for at in (1, 2)])
        session.flush()
        seen = {"first_sample_ms": WINDOW.from_ms, "seen_until_ms": WINDOW.to_ms}
        session.add_all(
            [
                GpuRow(id=at, gpu_uuid=f"GPU-{at}", host_id=1 + at % 2, gpu_index=at, **seen)
                for at in range(1, 5)
            ]
        )
        session.add(GpuRow(id=5, gpu_uuid=f"{SLICE_PREFIX}5", host_id=1))
        session.add(GpuRow(id=6, gpu_uuid="GPU-stray"))
        told = {"kind": "vllm", "settings": '{"tensor_parallel_size":"1"}'}
        session.add(EngineRow(engine="h1:8000/0", host_id=1, gpu_uuids='["GPU-2"]', **told))
        session.add(EngineRow(engine="h2:8000/0", host_id=2, gpu_uuids="[]", **told))
        session.flush()
        session.execute(insert(GpuHourRow), hours())
        session.commit()
    return engine


def hours() -> list[dict[str, object]]:
    chance = random.Random(3)
    found = []
    for gpu_id in range(1, 4):  # the fourth has none
        for at in range(HOURS):
            if chance.random() < 0.2:
                continue
            seconds = {f"{activity.value}_s": 0.0 for activity in Activity}
            for name in chance.sample(sorted(seconds), chance.randrange(1, 4)):
                seconds[name] = chance.choice((600.0, 1200.0, 1800.0))
            found.append(
                {"gpu_id": gpu_id, "hour_ms": T0 + at * HOUR_MS, "covered_s": sum(seconds.values())}
                | dict.fromkeys(OF_ALL, 0.0)
                | seconds
            )
    return found


@pytest.mark.parametrize(("first", "last"), [(0, HOURS), (6, 30), (3, 10), (5, 6)])
def test_a_strip_says_what_each_hour_mostly_was_in_any_window(fleet: Engine, first: int, last: int) -> None:
    wanted: dict[int, list[Activity | None]] = {}
    for hour in hours():
        at = (int(str(hour["hour_ms"])) - T0) // HOUR_MS
        if first <= at < last:
            # Of equal ones the first.
            main = max(Activity, key=lambda activity: float(str(hour[f"{activity.value}_s"])))
            wanted.setdefault(int(str(hour["gpu_id"])), [None] * (last - first))[at - first] = main
    window = Window(T0 + first * HOUR_MS, T0 + last * HOUR_MS)
    with Session(fleet) as session:
        assert main_activities(session, window) == {key: tuple(of) for key, of in wanted.items()}
        assert main_activities(session, window, [2, 4]) == {
            key: tuple(of) for key, of in wanted.items() if key == 2
        }


def test_coverage_is_what_samples_vouch_for_of_all_known_time(fleet: Engine) -> None:
    covered = sum(float(str(hour["covered_s"])) for hour in hours())
    with Session(fleet) as session:
        assert coverage_ratio(session, WINDOW) == pytest.approx(covered / (4 * HOURS * 3600))


def test_the_head_of_a_finding_is_all_of_it_but_evidence_and_chart(fleet: Engine) -> None:
    head = replace(FINDING, evidence={}, chart={})
    other = replace(FINDING, subject=Subject("gpu", "GPU-1"), cause="other")
    with Session(fleet) as session:
        recommendations.record(session, Advice((FINDING, other), (), Totals(None, None, None, None)), T0)
        (first, _) = sorted(recommendations.listing(session), key=lambda one: one.id)
        recommendations.set_status(session, first.id, Status.CLAIMED, T0 + 1)
        briefly = {one.id: one for one in recommendations.listing(session, brief=True)}
        assert briefly[first.id].finding == briefly[first.id].acted_finding == head
        assert all(one.acted_finding is None for key, one in briefly.items() if key != first.id)
        everything = advice_heads(session, tuple(Status))
        assert {one.id: one.finding for one in everything} == {
            key: one.finding for key, one in briefly.items()
        }
        assert [one.finding for one in advice_heads(session, tuple(Status), "engine")] == [head]


def test_some_gpus_are_read_as_they_are_among_all(fleet: Engine) -> None:
    with Session(fleet) as session:
        (whole,) = fleet_chunks(session)
        (part,) = fleet_chunks(session, gpu_uuids=["GPU-2"], engine_names=["h1:8000/0"])
        assert part.gpus == [gpu for gpu in whole.gpus if gpu.identity.gpu_uuid == "GPU-2"]
        assert part.engines == [one for one in whole.engines if one.identity.engine == "h1:8000/0"]
        assert part.on_host == {"h1": whole.on_host["h1"]}
        assert dict(cards_by_host(session)) == whole.on_host
        assert [(one.identity, one.gpu_uuids, one.join) for one in engines(session)] == [
            (one.identity, one.join.gpu_uuids, one.join.join) for one in whole.engines
        ]
        assert hosts_of_gpus(session) == {gpu.identity.gpu_uuid: gpu.identity.host for gpu in whole.gpus}
