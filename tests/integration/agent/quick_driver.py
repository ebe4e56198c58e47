"""The driver process with other periods: ``GPUWISE_TEST_DRIVER`` holds them by name of ``agent.driver.rounds``, as JSON.

``sysfs`` among them is the folder that stands for the PCI devices of the kernel.
"""

import json
import os
import sys
from functools import partial

from agent.driver import __main__ as driver
from agent.driver import rounds
from agent.driver.suspended import Suspended


def main() -> int:
    periods = json.loads(os.environ["GPUWISE_TEST_DRIVER"])
    sysfs = periods.pop("sysfs", None)
    if sysfs is not None:
        periods["Suspended"] = partial(Suspended, sysfs)
    for name, value in periods.items():
        if not hasattr(rounds, name):
            raise AttributeError(name)
        setattr(rounds, name, value)
    return driver.main(sys.argv[1:])


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)
