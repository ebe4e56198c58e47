"""Evidence in, findings out: rules, estimators, the engine that runs them and the waterfall. Pure: no SQL, no HTTP, no clock."""
