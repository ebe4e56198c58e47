"""The period before the one that is shown, to compare with."""

from api.pages.view import View
from core.evidence import Window
from core.units import HOUR_MS
from ledger.calendar import Calendar
from store.queries.hours import bounds


def previous(view: View) -> Window | None:
    """The period before, as long as this one (a month: the month before); None: data do not reach over it."""
    scope, month = view.scope, view.address.get("month")
    asked = scope.asked or scope.window
    to_ms = scope.window.from_ms
    from_ms_ = to_ms - (scope.window.to_ms - scope.window.from_ms)
    if month:
        calendar = Calendar(scope.settings.accounting_time_zone)
        before = calendar.month_at(asked.from_ms - HOUR_MS)
        if scope.window.to_ms < calendar.month(month).to_ms:
            return None  # a month in progress has no month before of the same length
        from_ms_, to_ms = before.from_ms, before.to_ms
    data = bounds(scope.session)
    if data is None or data.from_ms > from_ms_ or from_ms_ >= to_ms:
        return None
    return Window(from_ms_, to_ms)
