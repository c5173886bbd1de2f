"""Variables and functions on the tasks of a cluster that this process coordinates."""
