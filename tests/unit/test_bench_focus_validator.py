"""What focus-validator prints is read: it exits 0 also when rules failed."""

import pytest

from bench.focus_validator import read_verdict

PRINTED = """
=== Validation Summary ===
Total: 578 | Pass: 335 | Fail: 5 | Skipped: 238

❌ BilledCost-C-003-M: FAIL  (violations=3, msg=BilledCost MUST NOT be NULL., 1.1ms)
❌ BilledCost-C-000-M: FAIL  (violations=1, msg=BilledCost-C-000-M: AND failed - failed child rules: [BilledCost-C-003-M])
❌ InvoiceId-C-005-C: FAIL  (violations=399, msg=InvoiceId MUST NOT be NULL., 11.8ms)
--- Failures ---
- BilledCost-C-003-M: violations=3; BilledCost MUST NOT be NULL.
"""


def test_failures_are_ours_but_for_rules_that_are_wrong_themselves() -> None:
    verdict = read_verdict(PRINTED)
    assert verdict.passed == 335
    assert set(verdict.failed) == {"BilledCost-C-003-M", "BilledCost-C-000-M", "InvoiceId-C-005-C"}
    assert list(verdict.ours) == ["BilledCost-C-003-M"]
    assert "MUST NOT be NULL" in verdict.ours["BilledCost-C-003-M"]


def test_no_result_is_no_success() -> None:
    with pytest.raises(ValueError, match="printed no result: Traceback"):
        read_verdict("Traceback …")
