"""An engine's own hours tell what it can reach, and from then on which of its GPU's time is effective; both databases."""

from contextlib import closing

import pytest
from fleet_for_tests import GIB, H100, HOUR, SPAN, T0, settings_for
from sqlalchemy import select

from advisor.reach import reachable_tokens_per_s
from advisor.serving import servings
from api.jobs.advice import ADVICE
from api.jobs.roll_up import ROLL_UP
from api.resources.evidence import read_evidence
from api.resources.scope import scope_of
from core.activity import Activity
from core.readings import EngineIdentity, GpuIdentity
from core.samples import EngineSample, GpuSample
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.models.engine import EngineRow
from store.models.gpu_hour import GpuHourRow

GPU, ENGINE = "GPU-plain", "h1:8000/0"
STEP_S, SEQUENCE_S = 0.010, 0.0005
"""t(B) = 10 ms + 0.5 ms · B: 32 sequences make 1,230.8 tokens a second."""
REACH = 32 / (STEP_S + 32 * SEQUENCE_S)


def rate(batch: float) -> float:
    return batch / (STEP_S + batch * SEQUENCE_S)


def feed(url: str, slot: int, batch: float, tokens_per_s: float) -> None:
    """Ten minutes of a GPU that tells nothing but that it is busy, and of the engine on it."""
    at_ms = T0 + slot * SPAN
    values = {
        "running_requests": batch,
        "running_max_requests": batch,
        "waiting_requests": 0.0,
        "generated_tokens": tokens_per_s * SPAN / 1000,
        "prompt_tokens": 0.0,
    }
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity(GPU, "h1", 0, H100, 80 * GIB)])
        ingest.engines([EngineIdentity(ENGINE, "h1", "vllm", "acme/7b", {"max_num_seqs": "32"}, (GPU,))])
        ingest.gpu_samples([GpuSample(GPU, at_ms, SPAN, SPAN, {"busy_ratio": 0.9}, None, Activity.BUSY)])
        ingest.engine_samples([EngineSample(ENGINE, at_ms, SPAN, SPAN, SPAN, batch, values)])
        ingest.commit()


def effective(url: str, hour: int) -> tuple[float, float]:
    statement = select(GpuHourRow.effective_s, GpuHourRow.effective_unknown_s).where(
        GpuHourRow.hour_ms == T0 + hour * HOUR
    )
    with make_engine(url).connect() as connection:
        known_s, unknown_s = connection.execute(statement).one()
        return known_s, unknown_s


def stored_reach(url: str) -> float | None:
    with session_scope(make_engine(url)) as session:
        found: float | None = session.execute(select(EngineRow.reachable_tokens_per_s)).scalar_one()
        return found


def test_what_an_engine_reached_tells_what_is_effective_later(ready_database: str) -> None:
    url, settings = ready_database, settings_for(ready_database)
    engine = make_engine(url)
    for slot, batch in enumerate((4.0, 4.0, 8.0, 8.0, 16.0, 16.0)):
        feed(url, slot, batch, rate(batch))
    ROLL_UP.run(engine, settings, T0 + 2 * HOUR)
    assert effective(url, 0) == (0.0, 3_600.0)
    assert stored_reach(url) is None
    ADVICE.run(engine, settings, T0 + 2 * HOUR)
    assert stored_reach(url) == pytest.approx(REACH, rel=0.01)
    for slot, share in ((12, 0.4), (13, 0.6), (14, 0.9)):
        feed(url, slot, 8.0, share * REACH)
    ROLL_UP.run(engine, settings, T0 + 4 * HOUR)
    assert effective(url, 2) == (1_200.0, 0.0)


def test_a_limit_beyond_the_reach_of_the_fit_tells_nothing(ready_database: str) -> None:
    url, settings = ready_database, settings_for(ready_database)
    for slot, batch in enumerate((2.0, 2.0, 4.0, 4.0, 8.0, 8.0)):
        feed(url, slot, batch, rate(batch))
    ROLL_UP.run(make_engine(url), settings, T0 + 2 * HOUR)
    with session_scope(make_engine(url)) as session:
        (serving,) = servings(read_evidence(scope_of(session, settings, T0 + 2 * HOUR)))
        assert serving.model is not None
        assert (serving.model.basis, serving.batch_ceiling) == ("fit", 32.0)
        assert reachable_tokens_per_s(serving) is None
    ADVICE.run(make_engine(url), settings, T0 + 2 * HOUR)
    assert stored_reach(url) is None
