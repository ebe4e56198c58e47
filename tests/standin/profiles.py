"""Whole scenarios for the states an agent meets; each takes the number of GPUs and may be built upon further.

scenario = busy_decode(gpus=8).lost(3, at=10)
"""

from tests.standin.scenario import GIB, H100, V100, Scenario

DECODE_PID = 4101
PARKED_PID = 4201


def empty(gpus: int = 1, *, start_s: float | None = None) -> Scenario:
    """No process, no memory held, idle power."""
    return Scenario(gpus, start_s=start_s)


def busy_decode(gpus: int = 1, *, start_s: float | None = None, global_lock: bool = False) -> Scenario:
    """A decode loop of a language model: memory-bound, few tensor operations; process 4101 on GPU 0, 4102 on GPU 1 ..."""
    scenario = Scenario(gpus, start_s=start_s, global_lock=global_lock).values(
        utilization=97, memory_utilization=58, power_mw=420_000, sm_clock=1980, temperature=55, memory_temperature=68,
        temperature_margin=32, reasons=4, memory_used=72 * GIB, pcie_tx=120_000, pcie_rx=40_000,
        pcie_counter_tx=120_000_000, pcie_counter_rx=40_000_000, nvlink_tx=2_000_000, nvlink_rx=2_000_000,
    )  # fmt: skip
    scenario.gpm({1: 96, 2: 70, 3: 24, 5: 9, 7: 9, 10: 62, 12: 6, 20: 114, 21: 38, 60: 1953, 61: 1953})
    scenario.at(0, "*", "reason_ns:74", 50_000_000)
    for gpu in range(gpus):
        pid = DECODE_PID + gpu
        scenario.processes(f"compute:{pid}:{71 * GIB}", gpu=gpu).process_util(f"{pid}:95:57:0:0", gpu=gpu)
    return scenario


def parked(gpus: int = 1, *, start_s: float | None = None) -> Scenario:
    """A model is loaded and no kernel runs; clocks stay up, which costs power over an empty card."""
    scenario = Scenario(gpus, start_s=start_s).values(
        memory_used=60 * GIB, power_mw=115_000, sm_clock=1980, reasons=0
    )
    for gpu in range(gpus):
        scenario.processes(f"compute:{PARKED_PID + gpu}:{59 * GIB}", gpu=gpu).process_util(gpu=gpu)
    return scenario


def mig(gpus: int = 1, *, start_s: float | None = None) -> Scenario:
    """GPU 0 is cut into instances 1 (3g, busy), 2 (2g, parked) and 7 (1g, empty); other GPUs are empty and whole."""
    scenario = Scenario(gpus, start_s=start_s).instances({1: 40_448, 2: 20_096, 7: 9_984})
    scenario.values(gpu=0, power_mw=310_000, sm_clock=1980, memory_used=55 * GIB)
    scenario.processes(f"compute:5101:{38 * GIB}:1", f"compute:5102:{16 * GIB}:2", gpu=0)
    scenario.gpm({1: 41, 2: 33, 3: 12, 5: 5, 7: 5, 10: 30, 20: 10, 21: 5}, gpu=0)
    for gi, share in ((1, 1.0), (2, 0.0), (7, 0.0)):
        scenario.gpm(
            {1: 95 * share, 2: 77 * share, 3: 28 * share, 5: 11 * share, 7: 11 * share, 10: 70 * share},
            gpu=0,
            gi=gi,
        )
    return scenario


def old_driver_470(gpus: int = 1, *, start_s: float | None = None) -> Scenario:
    """A V100 under driver 470: no v3 lists, no memory v2, no GPM, few fields. Build it with ``scenario.without``."""
    scenario = Scenario(gpus, card=V100, driver="470.256.02", start_s=start_s)
    return scenario.values(
        utilization=80, memory_utilization=30, power_mw=250_000, memory_used=20 * GIB
    ).processes(f"compute:6101:{19 * GIB}", f"graphics:77:{GIB}")


def layout_535(gpus: int = 1, *, start_s: float | None = None) -> Scenario:
    """Driver 535.54: v3 process rows of 32 bytes, which a later binding reads as scrambled ones."""
    scenario = Scenario(gpus, card=H100, driver="535.54.03", start_s=start_s)
    return scenario.values(utilization=80, memory_utilization=30, memory_used=20 * GIB).processes(
        f"compute:6201:{12 * GIB}", f"compute:6202:{5 * GIB}", f"compute:6203:{3 * GIB}"
    )


def hanging(
    gpus: int = 8, *, gpu: int = 2, at: float = 3, until: float | None = None, start_s: float | None = None
) -> Scenario:
    """Busy GPUs; from ``at`` on every call of one of them never returns, under a lock like the driver's."""
    return busy_decode(gpus, start_s=start_s, global_lock=True).hang(gpu=gpu, at=at, until=until)


def lost_and_back(
    gpus: int = 2, *, gpu: int = 1, at: float = 3, until: float = 6, start_s: float | None = None
) -> Scenario:
    """One GPU falls off the bus with XID 79 and is back later, its energy counter from zero."""
    scenario = busy_decode(gpus, start_s=start_s).xid(79, gpu=gpu, at=at).lost(gpu, at=at, until=until)
    return scenario.at(until, gpu, "energy", "restart")
