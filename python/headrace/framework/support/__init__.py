"""What the core is made with and knows no tensor: properties, signatures, locks, protos."""
