"""What every template does with text that it is given."""

import pytest
from markupsafe import Markup

from api.templating import environment


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("at most 5 % of the time", "at most 5\u00a0% of the time"),
        ("10–20 %, then 3 %", "10–20\u00a0%, then 3\u00a0%"),
        ("printf 5 %s", "printf 5 %s"),
        ("a % b", "a % b"),
        (Markup("<b>5 %</b>"), "<b>5 %</b>"),
    ],
)
def test_no_line_ends_between_a_figure_and_its_percent_sign(given: str, shown: str) -> None:
    assert environment().from_string("{{ said }}").render(said=given) == shown
