"""Selectors of PromQL: what a user writes, and what is asked."""

import pytest

from agent.sources.prometheus.selector import matchers_of, of_names, one_of, selector
from core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "matchers"),
    [
        ('cluster="a"', ['cluster="a"']),
        ('{cluster="a", job=~"dcgm.*",}', ['cluster="a"', 'job=~"dcgm.*"']),
        ('a!="x,y}" , b!~"\\"q\\""', ['a!="x,y}"', 'b!~"\\"q\\""']),
    ],
)
def test_matchers_with_and_without_braces(text: str, matchers: list[str]) -> None:
    assert matchers_of(text) == matchers


@pytest.mark.parametrize(
    "text", ["", "{}", "cluster", "cluster=a", 'up{cluster="a"}', 'a="b" or c="d"', 'a="b']
)
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="give label matchers such as"):
        matchers_of(text)


def test_what_is_asked() -> None:
    assert selector("up", []) == "up"
    assert selector("up", ['a="b"']) == 'up{a="b"}'
    assert of_names(["vllm:x"], ['a="b"']) == '{__name__="vllm:x",a="b"}'
    assert one_of("UUID", ["GPU-1", "GPU-2"]) == 'UUID=~"GPU\\\\-1|GPU\\\\-2"'
    assert one_of("instance", ['h"1:80']) == 'instance="h\\"1:80"'
