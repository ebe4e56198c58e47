"""The process that asks the NVIDIA driver: small, apart, and replaceable when the driver does not answer."""
