"""History from a running Prometheus, or what speaks its API: Thanos, Mimir, VictoriaMetrics."""
