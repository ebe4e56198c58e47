"""The line of a sum that grows: known days, the band of days to come, the limit, and what is not known."""

from api.charts_band_line import Step, band_line

KNOWN = [Step("1 Nov", known=10.0), Step("2 Nov", known=20.0)]
AHEAD = [Step("3 Nov", low=25.0, middle=30.0, high=40.0)]


def test_known_days_are_a_line_from_nothing_at_the_start_of_the_month() -> None:
    svg = band_line(KNOWN, label="x")
    assert 'class="line power" d="M0 172L500 86L1000 0"' in svg
    assert "forecast" not in svg


def test_days_to_come_are_a_band_that_begins_at_the_last_known_sum() -> None:
    svg = band_line([*KNOWN, *AHEAD], label="x")
    assert 'class="forecast" d="M666.7 86L1000 0L1000 64.5Z"' in svg
    assert "3 Nov: expected $30.00, $25.00 to $40.00" in svg


def test_a_limit_is_in_the_picture_even_where_nothing_reaches_it() -> None:
    svg = band_line(KNOWN, label="x", limit=95.0, limit_text="budget <b>")
    assert 'class="threshold"' in svg
    assert "budget &lt;b&gt;" in svg
    assert ">$100<" in svg


def test_a_day_of_which_nothing_is_known_says_so_and_is_no_zero() -> None:
    svg = band_line([Step("1 Nov"), Step("2 Nov", known=20.0)], label="x")
    assert "1 Nov: not known" in svg
    assert 'd="M1000 0"' in svg
