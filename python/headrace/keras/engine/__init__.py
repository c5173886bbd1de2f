"""What layers, models and training are made of."""
