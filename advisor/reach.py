"""The rate that an engine can reach on its GPUs: its own law of the decode step at its running limit. Pure."""

from advisor.serving import Serving


def reachable_tokens_per_s(serving: Serving) -> float | None:
    """Generated tokens per second with as many sequences as it admits; None: no honest figure.

    Only from a fit on the engine's own hours (``estimators.decode_step.fit``), and only as far as the fit reaches: the
    formula is ±50 % away from where it was held to public rows, which no half of anything can be judged by.
    """
    law, limit = serving.model, serving.batch_ceiling
    if law is None or law.basis != "fit" or limit is None or limit < 1:
        return None
    if law.reach is not None and limit > law.reach:
        return None
    return law.tokens_per_s(limit)
