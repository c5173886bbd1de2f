"""Files, queues, readers and printed text as operations."""
