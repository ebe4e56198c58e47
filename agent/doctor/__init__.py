"""What this host can and cannot report, and why: the agent's half of ``gpuwise doctor``.

It works in the base install. Whatever may hang (the driver, the network, a mount) is asked in a process or a thread
that can be left behind, so that a wedged driver is a finding and not the end of the doctor.
"""
