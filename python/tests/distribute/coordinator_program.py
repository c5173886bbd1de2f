"""TensorFlow's ClusterCoordinator over a cluster of workers and parameter servers.

`coordinator_program.py CLUSTER`, which is JSON, prints what it gives, a line of JSON each.
"""

import json
import sys

import numpy as np
import tensorflow as tf


def told(name, value):
    print(json.dumps([name, value], default=lambda x: np.asarray(x).tolist()))


def main():
    spec = tf.train.ClusterSpec(json.loads(sys.argv[1]))
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
        w = tf.Variable([[1.0], [3.0]])
    told("where", [v.device, w.device])
    extended = strategy.extended
    told(
        "devices",
        [
            extended.worker_devices,
            extended.parameter_devices,
            extended.worker_devices_by_replica,
        ],
    )

    @tf.function
    def loss_of(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, w) ** 2) + tf.reduce_sum(v)
        for variable, gradient in zip([v, w], tape.gradient(loss, [v, w])):
            variable.assign_sub(0.01 * gradient)
        return loss

    def dataset():
        return tf.data.Dataset.from_tensor_slices([[[1.0, 2.0]], [[3.0, 4.0]]]).repeat()

    @tf.function
    def next_of(iterator):
        return tf.reduce_sum(next(iterator)) * v[0]

    told("loss", coordinator.schedule(loss_of, (tf.constant([[1.0, 1.0]]),)).fetch())
    coordinator.join()
    told("variables", [v.numpy(), w.numpy()])
    iterator = iter(coordinator.create_per_worker_dataset(dataset))
    v.assign([1.0, 0.0])
    values = [coordinator.schedule(next_of, (iterator,)) for _ in range(4)]
    coordinator.join()
    told("values", sorted(value.fetch() for value in values))

    @tf.function
    def fails():
        tf.debugging.assert_less(v, 0.5, message="too large")
        return v + 1.0

    try:
        coordinator.schedule(fails).fetch()
    except tf.errors.InvalidArgumentError as e:
        told("failed", "too large" in str(e))


main()
