"""Ready-made estimators: baselines, linear models, networks, and both together."""
