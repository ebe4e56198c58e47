"""Which GPU spec a rental price is for: the price list's words (model, form factor, memory) → ``gpu_key``.

Providers write the same card in many ways, and some write too little to tell which card it is. A combination is either
in ``GPU_KEYS`` or in ``UNMAPPED`` with the reason; a contract test holds every row of ``gpu_prices.csv`` to that.
"""

from typing import Final

Offer = tuple[str, str, float]
"""``gpu_model``, ``form_factor`` (empty when not said) and ``gpu_memory_gb`` of a price row."""

GPU_KEYS: Final[dict[Offer, str]] = {
    ("A10", "PCIe", 24): "A10",
    ("A100", "SXM", 40): "A100-SXM4-40GB",
    ("A100", "SXM4", 40): "A100-SXM4-40GB",
    ("A100", "PCIe", 80): "A100-PCIE-80GB",
    ("A100", "NVLink", 80): "A100-PCIE-80GB",  # PCIe cards with NVLink bridges; the provider lists SXM apart
    ("A100", "SXM", 80): "A100-SXM4-80GB",
    ("A100", "SXM4", 80): "A100-SXM4-80GB",
    ("A10G", "PCIe", 24): "A10G",
    ("A16", "PCIe", 16): "A16",
    ("A30", "PCIe", 24): "A30",
    ("A40", "PCIe", 48): "A40",
    ("B200", "", 180): "B200-SXM-180GB",  # sold as SXM only; quoted with 180 or 192 GB for the same module
    ("B200", "", 192): "B200-SXM-180GB",
    ("B200", "SXM", 180): "B200-SXM-180GB",
    ("B200", "SXM6", 180): "B200-SXM-180GB",
    ("B200", "SXM6", 192): "B200-SXM-180GB",
    ("B300", "SXM", 262): "B300-SXM-288GB",  # 288 GB nominal, 262-268 usable: the same module
    ("B300", "SXM", 288): "B300-SXM-288GB",
    ("B300", "SXM6", 268): "B300-SXM-288GB",
    ("B300", "SXM6", 288): "B300-SXM-288GB",
    ("GB200", "Superchip", 186): "GB200-186GB",
    ("GB300", "SXM", 288): "GB300-288GB",  # there is no GB300 but the superchip
    ("GH200", "", 96): "GH200-96GB",
    ("GH200", "Superchip", 96): "GH200-96GB",
    ("H100", "NVL", 94): "H100-NVL-94GB",
    ("H100", "PCIe", 80): "H100-PCIE-80GB",
    ("H100", "NVLink", 80): "H100-PCIE-80GB",  # as A100 with NVLink
    ("H100", "SXM", 80): "H100-SXM5-80GB",
    ("H100", "SXM5", 80): "H100-SXM5-80GB",
    ("H200", "SXM", 141): "H200-SXM-141GB",
    ("H200", "SXM5", 141): "H200-SXM-141GB",
    ("L4", "PCIe", 24): "L4",
    ("L40", "PCIe", 48): "L40",
    ("L40S", "PCIe", 48): "L40S",
    ("Quadro RTX 6000", "PCIe", 24): "Quadro-RTX-6000",
    ("RTX 3080", "PCIe", 10): "RTX-3080",
    ("RTX 3090", "PCIe", 24): "RTX-3090",
    ("RTX 4000 Ada", "PCIe", 20): "RTX-4000-Ada",
    ("RTX 4090", "PCIe", 24): "RTX-4090",
    ("RTX 5090", "PCIe", 32): "RTX-5090",
    ("RTX 6000 Ada", "PCIe", 48): "RTX-6000-Ada",
    ("RTX A5000", "PCIe", 24): "RTX-A5000",
    ("RTX A6000", "PCIe", 48): "RTX-A6000",
    ("RTX PRO 6000 Blackwell Server", "PCIe", 96): "RTX-PRO-6000-Server",
    ("T4", "PCIe", 16): "T4",
    ("V100", "SXM2", 16): "V100-SXM2-16GB",
}

UNMAPPED: Final[dict[Offer, str]] = {
    ("A100", "", 40): "form factor not said: PCIe and SXM4 of 40 GB are different cards",
    ("A100", "", 80): "form factor not said: PCIe and SXM4 of 80 GB are different cards",
    ("H100", "", 80): "form factor not said: PCIe and SXM5 of 80 GB are different cards",
    ("H200", "", 141): "form factor not said: SXM and NVL of 141 GB are different cards",
    ("V100", "", 16): "form factor not said: PCIe and SXM2 of 16 GB are different cards",
    (
        "RTX PRO 6000 Blackwell",
        "PCIe",
        96,
    ): "edition not said: Server, Workstation and Max-Q are different cards",
}

MARKET_OF: Final[dict[str, str]] = {"H100-SXM5-64GB": "H100-SXM5-80GB"}
"""Cards nobody rents out, priced as the nearest one that is rented."""
