"""Shares in sentences: whole percent after a space, as SI has it. Pages and tables print theirs by ``api.formats``."""


def percent(share: float, places: int = 0, *, signed: bool = False) -> str:
    """A ratio for people: ``82 %``, ``under 1 %`` of what would round away, ``+3.1 %`` of a change."""
    if 0 < share < 0.01 and not places and not signed:
        return "under 1 %"
    return f"{share * 100:{'+' if signed else ''}.{places}f} %".replace("-", "−")


def percent_range(low: float, high: float) -> str:
    """From one ratio to another: ``10–20 %``."""
    return f"{low * 100:.0f}–{high * 100:.0f} %"
