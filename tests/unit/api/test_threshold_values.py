"""A threshold as somebody typed it, and as people read it again."""

import pytest

from api.resources.thresholds import value_of, value_text
from core.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "value", "text"),
    [
        ("7", 7, "7"),
        (" 7.0 ", 7, "7"),
        ("1e3", 1000, "1000"),
        ("-2", -2, "-2"),
        ("0.3", 0.3, "0.3"),
        ("None", None, "none"),
    ],
)
def test_a_value_is_whole_where_it_can_be_and_comes_back_as_it_is_typed(
    typed: str, value: float | None, text: str
) -> None:
    found = value_of("value", typed)
    assert (found, type(found)) == (value, type(value))
    assert value_text(found) == text


@pytest.mark.parametrize("typed", ["", "much", "0,3", "7 h", "ten"])
def test_what_is_no_number_is_refused_with_an_example(typed: str) -> None:
    with pytest.raises(UsageError, match=r"value is .*: give a number such as 0\.3, or none"):
        value_of("value", typed)
