"""What the code of this thread is building, and where it was written."""
