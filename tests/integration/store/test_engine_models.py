"""An engine that serves another model than before is noted on its GPUs, from the first sample on, once."""

from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session
from store_samples import H0, SPAN, engine_sample

from core.evidence import Window
from core.readings import EngineIdentity, GpuIdentity
from core.samples import GpuEvent
from store.dbapi import open_connection
from store.ingest import Ingest
from store.queries import events

ENGINE = "h1:8000/0"
LLAMA, FP8, QWEN = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "neuralmagic/Llama-3.1-8B-Instruct-FP8",
    "Qwen/Qwen3-8B",
)


@pytest.fixture
def ingest(ready_database: str) -> Iterator[Ingest]:
    with open_connection(ready_database) as connection:
        made = Ingest(connection)
        made.gpus([GpuIdentity("GPU-a", "h1", 0), GpuIdentity("GPU-b", "h1", 1)])
        yield made


def serve(ingest: Ingest, model: str | None, slot: int, gpu_uuids: tuple[str, ...] = ("GPU-a",)) -> None:
    ingest.engines([EngineIdentity(ENGINE, "h1", "vllm", model, gpu_uuids=gpu_uuids)])
    ingest.engine_samples([engine_sample(slot + 1), engine_sample(slot), engine_sample(slot + 2)])
    ingest.commit()


def noted(session: Session) -> list[GpuEvent]:
    session.rollback()
    return events.gpu_events(session, Window(0, 10**15))


def test_another_model_is_noted_on_its_gpus_since_its_first_sample(ingest: Ingest, session: Session) -> None:
    serve(ingest, LLAMA, 0, ("GPU-a", "GPU-b"))
    serve(ingest, QWEN, 10, ("GPU-a", "GPU-b"))
    message = f"Engine {ENGINE} serves {QWEN} instead of {LLAMA}."
    assert noted(session) == [
        GpuEvent(uuid, H0 + 10 * SPAN, "model", message, None) for uuid in ("GPU-a", "GPU-b")
    ]


def test_the_same_model_in_another_form_is_another_kind(ingest: Ingest, session: Session) -> None:
    serve(ingest, LLAMA, 0)
    serve(ingest, FP8, 10)
    assert [one.kind for one in noted(session)] == ["precision"]


@pytest.mark.parametrize(
    "models", [(LLAMA, LLAMA), (None, LLAMA), (LLAMA, None), (LLAMA, "/models/llama-3.1-8b-instruct")]
)
def test_the_same_or_an_unknown_model_is_no_change(
    ingest: Ingest, session: Session, models: tuple[str | None, str | None]
) -> None:
    for at, model in enumerate(models):
        serve(ingest, model, 10 * at)
    assert not noted(session)


def test_what_is_rolled_back_is_not_noted_and_what_comes_again_once(ingest: Ingest, session: Session) -> None:
    serve(ingest, LLAMA, 0)
    ingest.engines([EngineIdentity(ENGINE, "h1", "vllm", QWEN)])
    ingest.rollback()
    ingest.engine_samples([engine_sample(5)])
    ingest.commit()
    assert not noted(session)
    for _ in range(2):
        serve(ingest, QWEN, 10)
    assert len(noted(session)) == 1
