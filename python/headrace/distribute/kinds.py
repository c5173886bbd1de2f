"""What programs ask with isinstance whether a value is one of several replicas."""


class DistributedValues:
    """A value for each replica."""


class PerReplica(DistributedValues):
    """Values of replicas that may differ: what `Strategy.run` gives, elements of
    distributed datasets."""


class Mirrored(DistributedValues):
    """Copies of one value, which a strategy keeps equal: variables are, and what a
    reduction leaves with all replicas."""
