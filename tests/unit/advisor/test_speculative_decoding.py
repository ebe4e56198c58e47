"""R30 and its estimator: a gain in latency that shrinks with the batch, and never money."""

from dataclasses import replace

import pytest
from advice_builders import FORTNIGHT_H, PRICE, SETTINGS, engine_hour, engine_hours, evidence, gpu
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor.estimators import speculative
from advisor.estimators.decode_step import DecodeStep
from advisor.estimators.speculative import GOOD, POOR, USUAL, Drafting
from advisor.rules.speculative_decoding import RULE, SpeculativeDecodingLimits
from core.evidence import EngineEvidence
from core.finding import Finding, Grade, NotEvaluated

STEP = DecodeStep(0.0072, 105e-6, "formula", 0.2, flop_s=44e-6)
MIXTURE = replace(STEP, fixed_s=0.004, experts_s=0.020, expert_share=1 / 16)


def run(
    engine: EngineEvidence, limits: SpeculativeDecodingLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(engine), limits)


def test_expected_tokens_by_hand() -> None:
    assert speculative.expected_tokens(0.5, 3) == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    assert speculative.expected_tokens(0.0, 3) == 1
    assert speculative.expected_tokens(1.0, 3) == 4


def test_gain_by_hand() -> None:
    plain = 0.0072 + 8 * 105e-6
    verified = plain * (1 + 3 * 0.05) + 8 * 3 * 22e-6
    expected = (1 - 0.6**4) / 0.4 * plain / verified
    found = speculative.gain(STEP, 8, prompt_per_generated=1.0)
    assert found is not None
    assert found.p50 == pytest.approx(expected)


def test_verifying_reads_more_experts_of_a_mixture() -> None:
    dense = speculative.gain_of(STEP, 2, 1.0, 3, USUAL)
    mixed = speculative.gain_of(MIXTURE, 2, 1.0, 3, USUAL)
    assert mixed < dense


def test_without_the_arithmetic_of_a_token_there_is_no_estimate() -> None:
    fitted = DecodeStep(0.007, 1e-4, "fit", 0.1)
    assert speculative.gain(fitted, 8, prompt_per_generated=1.0) is None
    assert speculative.gain(STEP, 0.5, prompt_per_generated=1.0) is None
    assert speculative.break_even_batch(fitted, prompt_per_generated=1.0) is None


def test_poor_drafts_turn_into_a_loss_at_large_batches() -> None:
    limit = speculative.break_even_batch(STEP, prompt_per_generated=0.0, draft=POOR)
    assert limit is not None
    assert speculative.gain_of(STEP, limit, 0.0, 3, POOR) > 1
    assert speculative.gain_of(STEP, limit + 1, 0.0, 3, POOR) <= 1
    assert speculative.break_even_batch(STEP, prompt_per_generated=1.0, draft=Drafting(0.0, 0.1)) is None


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 0.9), st.floats(0.0, 0.3), st.floats(0, 10))
def test_the_break_even_is_the_last_batch_that_gains(acceptance: float, cost: float, ratio: float) -> None:
    draft = Drafting(acceptance, cost)
    for step in (STEP, MIXTURE):
        found = speculative.break_even_batch(step, prompt_per_generated=ratio, draft=draft)
        gains = [speculative.gain_of(step, b, ratio, 3, draft) > 1 for b in range(1, 1025)]
        expected = gains.index(False) if False in gains else 1024
        assert (found or 0) == expected


@settings(max_examples=100, deadline=None)
@given(
    st.floats(1, 500),
    st.floats(1, 500),
    st.floats(0, 20),
    st.integers(1, 8),
    st.floats(0, 0.99),
)
def test_dense_gain_falls_with_the_batch_and_stays_below_gamma_plus_one(
    a: float, b: float, ratio: float, tokens: int, acceptance: float
) -> None:
    draft = Drafting(acceptance, 0.05)
    small, large = sorted((a, b))
    low = speculative.gain_of(STEP, large, ratio, tokens, draft)
    high = speculative.gain_of(STEP, small, ratio, tokens, draft)
    assert low <= high + 1e-12
    assert 0 < high <= tokens + 1


@given(st.floats(1, 300), st.floats(0, 10))
def test_better_drafts_gain_more(batch: float, ratio: float) -> None:
    assume(batch >= 1)
    for step in (STEP, MIXTURE):
        gains = [speculative.gain_of(step, batch, ratio, 3, each) for each in (POOR, USUAL, GOOD)]
        assert gains == sorted(gains)


def test_a_small_memory_bound_batch_is_worth_a_trial_and_no_money() -> None:
    (finding,), none = run(replica(1))
    assert not none
    assert finding.saving.is_empty
    assert finding.no_figure is not None
    assert finding.no_figure.startswith("No figure, because")
    assert finding.grade is Grade.D
    assert 1 < finding.evidence["gain_p10"] < finding.evidence["gain_p50"] < finding.evidence["gain_p90"] < 4
    assert finding.evidence["gain_at_p95_batch_p50"] <= finding.evidence["gain_p50"]
    assert '"num_speculative_tokens": 3' in (finding.actions[0].command or "")
    assert finding.chart["threshold"] == 1.0


@pytest.mark.parametrize(
    ("kind", "flag"),
    [
        ("sglang", "--speculative-algorithm"),
        ("tgi", "--speculate 3"),
        ("llamacpp", "--draft-max 3"),
    ],
)
def test_each_engine_gets_its_own_flag(kind: str, flag: str) -> None:
    (finding,), _ = run(replica(1, kind=kind))
    assert flag in (finding.actions[0].command or "")


@pytest.mark.parametrize(
    "engine",
    [
        replica(1, running=64.0, kv_used=0.08, step_s=0.0135),  # enough requests
        replica(1, running=256.0, kv_used=0.32, step_s=0.036),  # saturated
        replica(1, step_s=0.020),  # not memory-bound: the host is what it waits for
        replica(1, settings={**SETTINGS, "speculative_method": "eagle3"}),  # has it
        replica(1, settings={**SETTINGS, "num_speculative_tokens": "4"}),
        replica(1, kv_used=0.97, step_s=0.024, settings={**SETTINGS, "num_gpu_blocks": "3000"}),  # no room
    ],
    ids=["batch", "saturated", "host", "method", "tokens", "kv"],
)
def test_silent_where_it_does_not_pay(engine: EngineEvidence) -> None:
    assert run(engine) == ([], [])


def test_zero_tokens_are_off() -> None:
    assert run(replica(1, settings={**SETTINGS, "num_speculative_tokens": "0"}))[0]


def test_more_bytes_than_the_memory_moves_is_refused() -> None:
    found, (refusal,) = run(replica(1, step_s=0.004))
    assert not found
    assert refusal.missing == ("consistent counters",)


def test_unknown_models_short_data_and_gaps_are_refused() -> None:
    assert "model architecture" in run(replica(1, model="acme/secret-7"))[1][0].missing
    assert run(replica(1, engine_hours(1, seconds=300.0, kv_used=0.01)))[1][0].missing == ("busy time",)
    holed = replica(1)
    assert run(replace(holed, hours=holed.hours[::2]))[1][0].missing == ("samples",)


def test_batches_that_grew_lately_are_silent() -> None:
    hours = [
        engine_hour(i, kv_used=0.01)
        if i < 300
        else engine_hour(i, running=128.0, kv_used=0.16, step_s=0.0206)
        for i in range(FORTNIGHT_H)
    ]
    assert run(replica(1, hours)) == ([], [])


def test_a_reserved_node_changes_nothing() -> None:
    reserved = replace(PRICE, billing="reserved", gpus_per_unit=8)
    (finding,), _ = judge(RULE, fleet(replica(1), price=reserved))
    assert finding.saving.is_empty


def test_no_engine_is_said() -> None:
    assert judge(RULE, evidence([gpu()]))[1][0].missing == ("engine metrics",)
