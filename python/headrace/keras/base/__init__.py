"""What a layer is: its calls, weights, and the values that models are described by."""
