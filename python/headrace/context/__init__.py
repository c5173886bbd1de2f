"""What the code of this thread is building, where it was written, and what needs no
engine: errors, locks, properties."""
