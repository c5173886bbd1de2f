"""Strategies of the tasks of a cluster of tests."""

import headrace as tf

Resolver = tf.distribute.cluster_resolver.SimpleClusterResolver


def strategy_of(cluster, partitioner=None, **jobs):
    """The ParameterServerStrategy of a cluster, or of so many of its tasks."""
    spec = {job: cluster.spec[job][: jobs.get(job)] for job in cluster.spec}
    resolver = Resolver(tf.train.ClusterSpec(spec), rpc_layer="grpc")
    return tf.distribute.ParameterServerStrategy(resolver, partitioner)
