"""What workers of MultiWorkerMirroredStrategy run in the tests; each prints what it found."""

import json
import logging
import os
import signal
import sys
import time

import numpy as np

import headrace as tf
import processes


_PROGRAM = (
    "import sys; sys.path.insert(0, {!r}); import worker_programs as p; p.main({!r})"
)


def run(name, count, but=()):
    """What each of `count` workers found; nothing is waited for of those in `but`."""
    cluster = processes.Cluster(worker=count)
    program = _PROGRAM.format(os.path.dirname(__file__), name)
    try:
        for i in range(count):
            cluster.begin("worker", i, program=program)
        lines = [
            cluster.processes["worker", i].stdout.read().splitlines()
            for i in range(count)
            if i not in but
        ]
        return [json.loads(line[-1]) for line in lines]
    finally:
        cluster.stop()


def strategy_of(**options):
    made = tf.distribute.experimental.CommunicationOptions(**options)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=made)


def data(rows=12):
    x = np.linspace(-1, 1, rows * 3, dtype=np.float32).reshape(rows, 3)
    return x, (x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25)


def values(worker):
    """Sums, means and gathers of what workers differ in."""
    strategy = strategy_of()
    with strategy.scope():
        v = tf.Variable([1.0 + worker, 2.0])
        flag = tf.Variable(worker == 0)
        small = tf.Variable(tf.constant([worker + 5], tf.uint8))
        read = tf.Variable(
            0.0,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    count = strategy.num_replicas_in_sync

    def of_replica():
        context = tf.distribute.get_replica_context()
        number = context.replica_id_in_sync_group
        read.assign_add(tf.cast(number, tf.float32) + 1.0)
        rows = tf.IndexedSlices(
            tf.ones([worker + 1, 2]), tf.range(worker + 1), tf.constant([count, 2])
        )
        return (
            number,
            context.all_reduce("SUM", [v + worker, tf.ones([3]) * worker]),
            context.all_reduce("MEAN", tf.constant([float(worker)])),
            tf.convert_to_tensor(context.all_reduce("SUM", rows)),
            context.all_gather(tf.ones([worker + 1, 2]) * worker, axis=0),
            context.all_gather(tf.ones([1, worker + 1]) * worker, axis=1),
        )

    eager = strategy.run(of_replica)
    traced = strategy.run(tf.function(of_replica))
    as_lists = [
        tf.nest.map_structure(lambda t: t.numpy().tolist(), x) for x in (eager, traced)
    ]
    grown = tf.constant([1.0, float(worker)])
    contexts = []
    strategy.distribute_datasets_from_function(
        lambda c: contexts.append(str(c)) or tf.data.Dataset.range(2).batch(1)
    )
    return {
        "replicas": count,
        "variables": [v.numpy().tolist(), bool(flag.numpy()), small.numpy().tolist()],
        "eager": as_lists[0],
        "traced": as_lists[1],
        "read": float(read.numpy()),
        "mean": strategy.reduce("MEAN", grown, axis=0).numpy().tolist(),
        "sum": strategy.reduce("SUM", grown, axis=None).numpy().tolist(),
        "gather": strategy.gather(tf.constant([[worker]]), axis=0).numpy().tolist(),
        "value": int(
            strategy.experimental_distribute_values_from_function(
                lambda c: tf.constant(c.replica_id_in_sync_group)
            ).values[0]
        ),
        "input": contexts,
        "is_chief": strategy.extended.should_checkpoint,
    }


def gradient_step(weights, optimizer, x, y, size):
    with tf.GradientTape() as tape:
        off = tf.matmul(x, weights[0]) + weights[1] - y
        loss = tf.reduce_sum(off * off) / size
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss


def train(worker):
    """Synchronous steps, of batches of which each worker has its part."""
    strategy = strategy_of()
    with strategy.scope():
        weights = [tf.Variable(tf.ones([3, 1]) * (worker + 1)), tf.Variable([0.5])]
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    batches = tf.data.Dataset.from_tensor_slices(data()).batch(6).repeat(4)

    @tf.function
    def step(x, y):
        losses = strategy.run(gradient_step, (weights, optimizer, x, y, 6.0))
        return strategy.reduce("SUM", losses, axis=None)

    losses = []
    for x, y in strategy.experimental_distribute_dataset(batches):
        losses.append(float(step(x, y)))
    return {"weights": [w.numpy().tolist() for w in weights], "losses": losses}


def model():
    made = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(8, activation="tanh", input_shape=(3,)),
            tf.keras.layers.Dense(1),
        ]
    )
    made.compile(tf.keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    return made


def fit(worker):
    """Keras' loop."""
    tf.keras.utils.set_random_seed(worker)  # the first worker's values are all workers'
    strategy = strategy_of()
    with strategy.scope():
        made = model()
    x, y = data()
    folder = os.environ["FILES"]
    callbacks = [
        tf.keras.callbacks.ModelCheckpoint(
            os.path.join(folder, "epoch{epoch}"), save_weights_only=True
        ),
        tf.keras.callbacks.BackupAndRestore(
            os.path.join(folder, "backup"), delete_checkpoint=False
        ),
    ]
    history = made.fit(
        x, y, batch_size=6, epochs=3, shuffle=False, verbose=0, callbacks=callbacks
    )
    found = {
        "weights": [w.tolist() for w in made.get_weights()],
        "history": history.history,
        "evaluated": made.evaluate(x, y, batch_size=6, verbose=0),
        "predicted": made.predict(x, batch_size=5, verbose=0).tolist(),
        "one": made.predict_on_batch(x[:1]).tolist(),
    }
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(6)
    again = made.evaluate(strategy.experimental_distribute_dataset(batches), verbose=0)
    assert np.allclose(again, found["evaluated"], rtol=1e-5), again
    # The last batch has one row, of which others than the first worker have nothing.
    made.fit(*data(13), batch_size=6, shuffle=False, verbose=0)
    return {**found, "uneven": [w.tolist() for w in made.get_weights()]}


def files(worker):
    """Each worker reads files of its own."""
    strategy = strategy_of()
    names = [os.path.join(os.environ["FILES"], f"{i}.txt") for i in range(3)]
    dataset = tf.data.TextLineDataset(tf.data.Dataset.from_tensor_slices(names))
    read = strategy.experimental_distribute_dataset(dataset.batch(4))
    return [[line.decode() for line in batch.numpy()] for batch in read]


def uneven(worker):
    """Sums over datasets that a function makes, of which worker 1 has more."""
    strategy = strategy_of()

    def dataset():
        return strategy.distribute_datasets_from_function(
            lambda c: tf.data.Dataset.range(2 + 3 * c.input_pipeline_id).batch(2)
        )

    def total(batch):
        replica = tf.distribute.get_replica_context()
        return replica.all_reduce("SUM", tf.reduce_sum(batch))

    @tf.function
    def all_of(batches):
        found, turns = tf.constant(0, tf.int64), 0
        for batch in batches:
            found += strategy.run(total, (batch,))
            turns += 1
        return found, turns

    @tf.function
    def one_of(batches):
        return strategy.run(total, (next(batches),))

    batches = iter(dataset())
    endless = strategy.distribute_datasets_from_function(
        lambda c: tf.data.Dataset.from_tensors([1]).repeat()
    )
    return {
        "eager": [int(strategy.run(total, (b,))) for b in dataset()],
        "loop": [int(x) for x in all_of(dataset())],
        "iterator": [int(x) for x in all_of(iter(dataset()))],
        "next": [int(one_of(batches)) for _ in range(3)],
        "end": _error(lambda: one_of(batches))["class"],
        "endless": bool(endless._ends_together),
    }


def _error(action):
    since = time.monotonic()
    try:
        while True:
            action()
    except tf.errors.OpError as e:
        return {
            "class": type(e).__name__,
            "text": str(e),
            "seconds": time.monotonic() - since,
        }


def death(worker):
    """The last worker ends without a word; the others say what they got."""
    strategy = strategy_of()
    count = strategy.num_replicas_in_sync
    step = tf.function(
        lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones([4]))
    )
    for _ in range(3):
        strategy.run(step)
    if worker == count - 1:
        time.sleep(0.3)  # others have what it gave to the last step
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    return _error(lambda: strategy.run(step))


def stall(worker):
    """The last worker does not come; time is limited."""
    strategy = strategy_of(timeout_seconds=2)
    strategy.reduce("SUM", 1.0, axis=None)
    if worker == strategy.num_replicas_in_sync - 1:
        time.sleep(6)
    return _error(lambda: strategy.reduce("SUM", tf.ones([2]), axis=None))


def nccl(worker):
    """Sums that ask for NCCL, and what is said of it."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    strategy = strategy_of(
        implementation=tf.distribute.experimental.CommunicationImplementation.NCCL
    )
    total = strategy.reduce("SUM", 1.0 + worker, axis=None)

    @tf.function
    def traced():
        context = tf.distribute.get_replica_context()
        return context.all_reduce("SUM", tf.constant(2.0))

    return {
        "sum": float(total),
        "traced": float(strategy.run(traced)),
        "said": said,
    }


def changing(worker):
    """A strategy whose workers may change."""
    del worker

    def train():
        strategy = tf.distribute.experimental.ElasticStrategy()
        tf.distribute.experimental.ElasticState(strategy).run(lambda: None)

    return _error(train)


def early(worker):
    """The last worker fails by itself."""
    strategy = strategy_of()
    strategy.reduce("SUM", 1.0, axis=None)
    if worker == strategy.num_replicas_in_sync - 1:
        raise ValueError("this one ends early")
    return _error(lambda: strategy.reduce("SUM", tf.ones([2]), axis=None))


def preempted(worker):
    """The worker TOLD is sent SIGTERM behind five calls; others make three."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        total = tf.Variable(
            0.0,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    experimental = tf.distribute.experimental
    handler = experimental.PreemptionCheckpointHandler(
        strategy.cluster_resolver,
        tf.train.Checkpoint(total=total),
        os.environ["FILES"],
        experimental.TerminationConfig(grace_period=float(os.environ["GRACE"])),
    )
    began, told, status = int(handler.total_run_calls), int(os.environ["TOLD"]), 0
    try:
        for i in range(3 if told < 0 else 1000):
            if i == 5 and worker == told:
                os.kill(os.getpid(), signal.SIGTERM)
            handler.run(lambda: strategy.run(lambda: total.assign_add(1.0)))
            time.sleep(0.01)
    except SystemExit as end:
        status = end.code
    return {
        "status": status,
        "began": began,
        "calls": int(handler.total_run_calls),
        "sum": float(total),
    }


def devices(worker):
    """What a strategy calls its devices, and that operations take the names."""
    strategy = strategy_of()
    extended = strategy.extended
    with tf.device(extended.worker_devices[0]):
        one = tf.constant(1.0) + worker
    mine = strategy.run(lambda: tf.distribute.get_replica_context().devices)
    with strategy.scope():
        v = tf.Variable(1.0)
    strategy.extended.update(v, lambda v: v.assign_add(1.0))
    return [
        extended.worker_devices,
        extended.parameter_devices,
        extended.worker_devices_by_replica,
        mine,
        [one.numpy().item(), v.numpy().item()],
    ]


def disagree(worker):
    """Workers sum tensors of different shapes."""
    strategy = strategy_of()
    return _error(lambda: strategy.reduce("SUM", tf.ones([2 + worker]), axis=None))


def main(name):
    job, index, spec = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    task = {"type": job, "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": spec, "task": task})
    found = globals()[name](index)
    print(json.dumps(found), flush=True)
