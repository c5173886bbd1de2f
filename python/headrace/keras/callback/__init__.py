"""What fit, evaluate and predict call on their way."""
