"""Currencies that a price may be in: the codes of ISO 4217, list one, as of 2026, and those that ended since 2023.

Prices are dated, so that a code which was in use within the life of a contract stays one. Funds codes, metals and codes for
testing are left out: nobody rents a GPU in them. Source: ISO 4217 maintenance agency, list one (current) and list three
(HRK until 2023, SLL until 2024, ZWL until 2024, ANG until 2025, BGN until 2026).
"""

from typing import Final

CURRENT: Final = frozenset(
    """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC
    CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR
    ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK
    MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE
    SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF
    XPF YER ZAR ZMW ZWG
    """.split()  # noqa: SIM905 - a list of this length reads better so
)
ENDED: Final = frozenset({"ANG", "BGN", "HRK", "SLL", "ZWL"})
CURRENCIES: Final = CURRENT | ENDED
