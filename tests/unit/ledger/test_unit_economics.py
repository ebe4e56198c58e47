"""What prefill takes of an engine's busy time, fitted on its hours; and when that cannot be told."""

from decimal import Decimal
from random import Random

import pytest

from ledger.unit_economics import PrefillShare, WorkHour, per_million, prefill_share, usd_per_useful_gpu_h

STEP_S, TOKEN_S, PROMPT_S = 0.02, 0.0001, 0.00005


def hours(
    count: int = 48, *, noise: float = 0.01, ratio: tuple[float, float] = (0.5, 8.0)
) -> tuple[list[WorkHour], float]:
    """Hours whose law is known, and prefill's true share."""
    random, made, prefill = Random(7), [], 0.0
    for _ in range(count):
        batch, generated = random.uniform(4, 64), random.uniform(2e4, 5e5)
        prompt = generated * random.uniform(*ratio)
        steps = generated / batch
        seconds = STEP_S * steps + TOKEN_S * generated + PROMPT_S * prompt
        prefill += PROMPT_S * prompt
        made.append(WorkHour(seconds * random.gauss(1.0, noise), steps, generated, prompt))
    return made, prefill / sum(hour.amount for hour in made)


def test_hours_of_a_varied_mix_tell_what_prefill_takes() -> None:
    made, true = hours()
    found = prefill_share(made)
    assert isinstance(found, PrefillShare)
    assert found.ratio == pytest.approx(true, rel=0.1)
    assert abs(found.ratio - true) < 4 * found.error
    assert found.hours == 48


def test_prompts_that_keep_step_with_answers_tell_nothing() -> None:
    made, _ = hours(noise=0.05, ratio=(3.0, 3.0))
    assert isinstance(prefill_share(made), str)


def test_time_that_tokens_do_not_explain_is_not_split() -> None:
    made, _ = hours(noise=1.5)
    assert "explain" in str(prefill_share([hour._replace(amount=abs(hour.amount)) for hour in made]))


def test_too_few_hours_are_said() -> None:
    made, _ = hours(23)
    assert prefill_share(made) == "23 busy hours with both kinds of tokens, 24 needed"
    idle = [hour._replace(generated=0.0) for hour in made]
    assert prefill_share([*made, *idle]) == "23 busy hours with both kinds of tokens, 24 needed"


def test_without_prompts_there_is_no_prefill() -> None:
    made, _ = hours()
    assert prefill_share([hour._replace(prompt=0.0) for hour in made]) == "no prompt tokens were computed"


def test_prompts_that_cost_nothing_are_not_made_to() -> None:
    made, _ = hours(noise=0.0)
    free = [hour._replace(amount=STEP_S * hour.steps + TOKEN_S * hour.generated) for hour in made]
    assert isinstance(prefill_share(free), str)


def test_money_for_tokens_and_for_hours_that_did_something() -> None:
    assert per_million(Decimal(6), 2_000_000) == 3
    assert [per_million(None, 5), per_million(Decimal(6), None), per_million(Decimal(6), 0)] == [None] * 3
    assert usd_per_useful_gpu_h(Decimal(30), 12.0, 2.0) == 3
    assert usd_per_useful_gpu_h(Decimal(30), 2.0, 2.0) is None
    assert usd_per_useful_gpu_h(None, 12.0, 2.0) is None
