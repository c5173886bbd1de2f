"""What sessions of a cluster, whose target is grpc://host:port, do otherwise."""

from headrace._load import _headrace
from headrace.framework.support import protos

PREFIX = "grpc://"


def _said(message):
    return b"" if message is None else message.SerializeToString()


class ClusterCore:
    """A session of a server's, in the place of _headrace.SessionCore."""

    def __init__(self, graph, target, config):
        self._core = _headrace.ClusterSessionCore(graph._core, target, _said(config))
        self.close = self._core.close
        self.partial_run_setup = self._core.partial_run_setup
        self.partial_run = self._core.partial_run

    def run_one(self, fetch, feeds):
        """Nothing goes a shorter way."""
        return NotImplemented

    def run(self, plan, feeds, values, options, run_metadata):
        """The values of a plan's tensors; `run_metadata` is filled, if not None."""
        results, metadata = self._core.run(
            plan.tensors, plan.targets, feeds, values, _said(options)
        )
        if run_metadata is not None:
            run_metadata.CopyFrom(protos.RunMetadata.FromString(metadata))
        return results

    def devices(self):
        """(name, type, bytes, incarnation) of each, sorted by name."""
        return sorted(self._core.devices())


def reset(target, containers, config):
    """Closes all sessions of the target's master, and forgets what the cluster's tasks
    hold in these containers, or in the standard one where there are none."""
    _headrace.reset_cluster(target, list(containers or ()), _said(config))
