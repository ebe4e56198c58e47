"""The OpenAPI document is committed: a change of the API is seen in review.

Write it anew with ``python tests/contract/test_openapi.py``.
"""

import json
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from api.app import create_app
from core.metrics import BY_NAME, GPU_METRICS
from core.settings import Settings

COMMITTED = Path(__file__).parents[2] / "docs" / "openapi.json"


def document() -> dict[str, Any]:
    """The document of the code, without the version of the day."""
    never_opened = Settings(database_url=f"sqlite:///{gettempdir()}/gpuwise-openapi.db")
    made: dict[str, Any] = json.loads(json.dumps(create_app(never_opened).openapi()))
    made["info"]["version"] = "0"
    return made


def text(made: dict[str, Any]) -> str:
    """As committed."""
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return document()


def test_the_committed_document_is_that_of_the_code(made: dict[str, Any]) -> None:
    committed = COMMITTED.read_text(encoding="utf-8")
    assert committed == text(made), (
        "the API changed: run python tests/contract/test_openapi.py and commit the file"
    )


def operations(made: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in made["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_operation_and_parameter_is_described(made: dict[str, Any]) -> None:
    for name, operation in operations(made):
        assert operation.get("description"), name
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), f"{name}: {parameter['name']}"


def referred(made: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """The schema a field refers to; its own description serves where it says the same."""
    name = shape.get("$ref", "").rsplit("/", 1)[-1]
    found: dict[str, Any] = made["components"]["schemas"].get(name, {})
    return found


def test_every_field_of_a_row_is_described(made: dict[str, Any]) -> None:
    bare = [
        f"{schema}.{field}"
        for schema, body in made["components"]["schemas"].items()
        if schema.endswith(("Row", "Body", "View", "Health")) and schema != "MoneyRange"
        for field, shape in body.get("properties", {}).items()
        if not (shape.get("description") or referred(made, shape).get("description"))
    ]
    assert bare == []


def test_metrics_are_described_in_the_words_of_the_catalogue(made: dict[str, Any]) -> None:
    properties = made["components"]["schemas"]["SampleRow"]["properties"]
    for metric in GPU_METRICS:
        assert properties[metric.name]["description"] == BY_NAME[metric.name].help


def test_every_route_says_which_problems_it_answers_with(made: dict[str, Any]) -> None:
    for name, operation in operations(made):
        if "/api/v1/" in name:
            shapes = operation["responses"]["422"]["content"]
            assert shapes == {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
            }, name


def test_the_routes_of_the_design_are_there(made: dict[str, Any]) -> None:
    wanted = """hosts gpus gpus/{gpu_uuid} gpus/{gpu_uuid}/samples gpus/{gpu_uuid}/hours gpus/{gpu_uuid}/events engines usage costs
        energy funnel recommendations recommendations/{id_} prices plan/rent-or-buy reports/weekly health"""
    assert {f"/api/v1/{name}" for name in wanted.split()} <= set(made["paths"])
    assert "/metrics" in made["paths"]


if __name__ == "__main__":
    COMMITTED.write_text(text(document()), encoding="utf-8")
