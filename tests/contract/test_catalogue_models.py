"""The architecture table as shipped: sizes in the names are those of the rows, sources are named, names are unique."""

import re
from importlib.resources import files

import pytest

from catalog.llm_models import LlmSpec, _by_name, kv_bytes_per_token, models, normalised, resolve

SIZE = re.compile(r"-(\d+(?:\.\d+)?)(b|m)(?:-|$)")


@pytest.mark.parametrize("spec", models(), ids=lambda spec: spec.model_key)
def test_a_key_and_its_aliases_resolve_to_their_own_row(spec: LlmSpec) -> None:
    for name in (spec.model_key, spec.model_key.upper(), f"org/{spec.model_key}-Instruct", *spec.aliases):
        assert resolve(name) is spec


def _names_its_size(spec: LlmSpec) -> bool:
    # The 17B in a Llama 4's name are its active parameters.
    return SIZE.search(spec.model_key) is not None and not spec.model_key.startswith("llama-4")


@pytest.mark.parametrize("spec", [*filter(_names_its_size, models())], ids=lambda spec: spec.model_key)
def test_the_size_in_the_name_is_the_size_of_the_row(spec: LlmSpec) -> None:
    found = SIZE.search(spec.model_key)
    assert found is not None
    size = float(found.group(1)) * (1e9 if found.group(2) == "b" else 1e6)
    # Names are rounded, some generously: Gemma counts without embeddings, OPT 350M is 331M, Llama 30B is 32.5B.
    assert spec.parameters == pytest.approx(size, rel=0.31)


@pytest.mark.parametrize("spec", models(), ids=lambda spec: spec.model_key)
def test_figures_of_a_row_hang_together(spec: LlmSpec) -> None:
    assert 8 <= spec.layers <= 140
    assert 32 <= spec.head_dim <= 256
    assert spec.heads % spec.kv_heads == 0
    assert spec.active_parameters <= spec.parameters
    assert 0 < spec.shared_parameters <= spec.active_parameters
    assert 1_000 < kv_bytes_per_token(spec) < 5_000_000
    assert spec.source
    if spec.mla_dim is None:
        attention = spec.layers * spec.hidden * spec.head_dim * 2 * (spec.heads + spec.kv_heads)
        assert attention < spec.active_parameters


def test_there_are_enough_models_and_every_name_is_normalised_once() -> None:
    assert len(models()) >= 95
    assert all(normalised(name) == name for name in _by_name())


def test_the_fact_files_are_inside_the_package() -> None:
    names = {entry.name for entry in files("catalog").joinpath("data").iterdir()}
    assert {
        "gpu_specs.csv",
        "gpu_prices.csv",
        "grid_carbon.csv",
        "cloud_regions.csv",
        "electricity_prices.csv",
        "llm_models.csv",
    } <= names
