"""A price that names no unit is that of a host: money comes back when the whole of it is released."""

from typing import Any

import pytest
from fleet_for_tests import H100, NOW, A, B, fill, settings_for
from starlette.testclient import TestClient

from api.app import create_app
from api.resources.evidence import read_evidence
from api.resources.scope import scope_of
from store.engine import make_engine, session_scope


def _post(url: str, **more: Any) -> Any:
    app = create_app(settings_for(url))
    app.state.clock = lambda: NOW
    client = TestClient(app, base_url="http://127.0.0.1:8787")
    body = {"scope_kind": "model", "scope_value": H100, "usd_per_gpu_hour": "2"} | more
    answer = client.post("/api/v1/prices", json=body)
    assert answer.status_code == 201, answer.text
    assert client.get("/api/v1/prices").json()["items"] == [answer.json()]
    return answer.json()


@pytest.mark.parametrize(("given", "unit"), [({}, 2), ({"gpus_per_unit": 1}, 1), ({"gpus_per_unit": 8}, 8)])
def test_a_price_without_a_unit_is_released_with_its_host(
    ready_database: str, given: dict[str, int], unit: int
) -> None:
    fill(ready_database, price_usd=None)
    assert _post(ready_database, **given)["gpus_per_unit"] == given.get("gpus_per_unit")
    with session_scope(make_engine(ready_database)) as session:
        seen = read_evidence(scope_of(session, settings_for(ready_database), NOW))
    units = {gpu.gpu_uuid: gpu.price.gpus_per_unit for gpu in seen.gpus if gpu.price is not None}
    assert units == {A: unit, B: unit}
