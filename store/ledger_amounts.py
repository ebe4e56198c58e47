"""What of the ledger's lines adds up, for the tables that keep them added up."""

from typing import Final

from store.models.ledger_amounts import LedgerAmounts

AMOUNTS: Final = tuple(name for name in LedgerAmounts.__annotations__ if name != "energy_method")
"""Columns of whole numbers."""
IS_CORRECTION: Final = "CASE WHEN booking_id IS NULL THEN 0 ELSE 1 END"
METHOD: Final = "CASE WHEN min(energy_method) = max(energy_method) THEN min(energy_method) WHEN min(energy_method) IS NOT NULL THEN 'mixed' END"
"""The one method of all lines, or mixed; none where no energy is known."""
