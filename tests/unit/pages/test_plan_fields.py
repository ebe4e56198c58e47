"""Fields of the calculators: what they say is what is reckoned with, and a link holds all of it."""

import json

import pytest

from api.pages.plan_fields import Default, Filled, Kind, Spec, fill, text_of, value_of
from api.pages.plan_size_form import compact
from api.pages.view import Address
from catalog.llm_config import read_config
from core.errors import UsageError

USE = Spec("utilisation", "Wanted", "%", Kind.PERCENT)
CAPEX = Spec("capex_usd", "Purchase", "$", Kind.MONEY)
COUNT = Spec("gpu_count", "GPUs", "", Kind.WHOLE)
CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
    "rope_scaling": {"factor": 8.0},
    "eos_token_id": [128001, 128008],
    "id2label": {str(n): "x" * 100 for n in range(100)},
}


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (CAPEX, "330,000", 330_000.0),
        (CAPEX, "$2.50", 2.5),
        (USE, "61.5", 0.615),
        (USE, "61.5 %", 0.615),
        (COUNT, "8", 8),
        (COUNT, "", None),
    ],
)
def test_people_may_write_numbers_as_they_do(spec: Spec, text: str, value: float | None) -> None:
    assert value_of(spec, text) == value


@pytest.mark.parametrize(
    ("spec", "text"),
    [(CAPEX, "many"), (CAPEX, "nan"), (CAPEX, "1e99"), (CAPEX, "9" * 99), (COUNT, "8.5"), (USE, "inf")],
)
def test_what_is_no_number_is_refused_with_what_to_write(spec: Spec, text: str) -> None:
    with pytest.raises(ValueError, match=r"write|whole number"):
        value_of(spec, text)


def test_what_a_field_says_reads_back_as_it_is_said() -> None:
    for spec, value in ((USE, 0.699302878), (CAPEX, 330_000.0), (COUNT, 8.0), (CAPEX, 0.0000004)):
        text = text_of(spec, value)
        again = value_of(spec, text)
        assert text_of(spec, again) == text
        assert "e" not in text
    assert text_of(USE, 0.699302878) == "69.93"
    assert text_of(USE, None) == ""


def fields(**typed: str) -> Filled:
    return fill(
        Address("/plan", tuple(typed.items())),
        (USE, CAPEX),
        {"utilisation": Default(0.7, "measured")},
        lambda _name, value: "" if value < 1e6 else "too much",
    )


def test_a_field_starts_from_what_is_known_and_says_where_it_is_from() -> None:
    use, capex = fields().fields
    assert (use.text, use.source, use.reset) == ("70", "measured", None)
    assert (capex.text, capex.reset) == ("", None)


def test_a_field_of_ones_own_can_be_reset_and_says_what_it_was() -> None:
    found = fields(utilisation_percent="38", capex_usd="5")
    use = found.fields[0]
    assert use.reset == "/plan?capex_usd=5"
    assert use.source == "yours; otherwise 70 % (measured)"
    assert found.values == {"utilisation": 0.38, "capex_usd": 5.0}


def test_a_link_with_measured_figures_does_not_call_them_ones_own() -> None:
    use = fields(utilisation_percent="70").fields[0]
    assert (use.source, use.reset) == ("measured", None)


def test_a_wrong_field_has_no_value() -> None:
    found = fields(capex_usd="2000000")
    assert found.wrong
    assert found.fields[1].error == "too much"
    assert "capex_usd" not in found.values


def test_a_link_holds_what_the_fields_say() -> None:
    found = fields(capex_usd="5")
    assert found.pairs() == [("utilisation_percent", "70"), ("capex_usd", "5")]


def test_a_pasted_config_keeps_what_counts_and_sizes_the_same() -> None:
    short = compact(json.dumps(CONFIG, indent=2))
    assert len(short) < 400
    assert read_config(json.loads(short)).llm == read_config(CONFIG).llm
    nested = compact(json.dumps({"text_config": CONFIG, "vision_config": {"hidden_size": 1}}))
    assert read_config(json.loads(nested)).llm.layers == 32


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", '"x"', "[" * 100_000])
def test_what_is_no_config_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="config"):
        compact(text)


def test_a_model_with_another_cache_is_refused_after_it_was_cut_too() -> None:
    short = compact(json.dumps({**CONFIG, "mamba_d_state": 16}))
    with pytest.raises(UsageError, match="mamba_d_state"):
        read_config(json.loads(short))
