"""The claims of the guide to training checkpoints, one test each."""

import os
import re
import subprocess
import sys
import textwrap

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class Net(tf.keras.Model):
    """A simple linear model."""

    def __init__(self):
        super().__init__()
        self.l1 = tf.keras.layers.Dense(5)

    def call(self, x):
        return self.l1(x)


def toy_dataset():
    inputs = tf.range(10.0)[:, None]
    labels = inputs * 5.0 + tf.range(5.0)[None, :]
    return (
        tf.data.Dataset.from_tensor_slices(dict(x=inputs, y=labels)).repeat().batch(2)
    )


def train_step(net, example, optimizer):
    with tf.GradientTape() as tape:
        output = net(example["x"])
        loss = tf.reduce_mean(tf.abs(output - example["y"]))
    variables = net.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


def new_root():
    return tf.train.Checkpoint(
        step=tf.Variable(1),
        optimizer=tf.keras.optimizers.Adam(0.1),
        net=Net(),
        iterator=iter(toy_dataset()),
    )


def train(root, steps):
    losses = []
    for _ in range(steps):
        loss = train_step(root.net, next(root.iterator), root.optimizer)
        root.step.assign_add(1)
        losses.append(float(loss))
    return losses


def trained(steps=3):
    root = new_root()
    train(root, steps)
    return root


def keys(path):
    return dict(tf.train.list_variables(path))


def object_graph(path):
    from headrace.framework.support import protos

    reader = tf.train.load_checkpoint(path)
    data = reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
    return protos.TrackableObjectGraph.FromString(bytes(data))


def test_c01_exact_values_of_every_variable():
    bits = np.array([0x7FC12345, 0x00000001, 0x80000000, 0x7F800000], np.uint32)
    values = [
        bits.view(np.float32),
        np.float64(0.1),
        np.int64(2**62),
        np.array(True),
        np.complex64(1 - 2j),
        np.array([b"a\0b", b""], object),
        np.zeros([0, 3]),
    ]
    root = tf.train.Checkpoint(v=[tf.Variable(x) for x in values])
    path = root.save("ck")
    fresh = [tf.Variable(tf.zeros_like(v)) for v in root.v]
    tf.train.Checkpoint(v=fresh).restore(path).assert_consumed()
    for a, b in zip(root.v, fresh):
        assert a.dtype == tf.string or a.numpy().tobytes() == b.numpy().tobytes()
    assert fresh[5].numpy().tolist() == [b"a\0b", b""]


def test_c02_no_description_of_the_computation():
    root = tf.train.Checkpoint(v=tf.Variable(1.0))
    root.f = tf.function(lambda: root.v * 2)
    root.f()
    assert {k.split("/.")[0] for k in keys(root.save("ck"))} == {
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "v",
        "save_counter",
    }
    assert {n.split(".")[0] for n in os.listdir(".")} == {"checkpoint", "ck-1"}


_NEEDS_SAVED_MODELS = pytest.mark.skipif(
    not hasattr(getattr(tf, "saved_model", None), "save"),
    reason="saved models are not there yet",
)


@_NEEDS_SAVED_MODELS
def test_c03_a_saved_model_needs_no_source():
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.f = tf.function(
        lambda x: x * module.v, input_signature=[tf.TensorSpec([None])]
    )
    tf.saved_model.save(module, "m")
    program = """
        import headrace as tf
        print(tf.saved_model.load("m").f(tf.constant([3.0])).numpy().tolist())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[6.0]"


@_NEEDS_SAVED_MODELS
def test_c04_a_saved_model_is_a_folder_that_other_programs_read():
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.f = tf.function(
        lambda x: x * module.v, input_signature=[tf.TensorSpec([None])]
    )
    tf.saved_model.save(module, "m", signatures=module.f)
    assert os.path.isfile("m/saved_model.pb")
    assert os.path.isfile("m/variables/variables.index")
    signature = tf.saved_model.load("m").signatures["serving_default"]
    (out,) = signature(tf.constant([3.0])).values()
    assert out.numpy().tolist() == [6.0]


def test_c05_save_weights_writes_a_checkpoint():
    net = Net()
    net(tf.ones([1, 1]))
    net.save_weights("easy_checkpoint")
    assert {"l1/kernel" + VALUE, "l1/bias" + VALUE} <= set(keys("easy_checkpoint"))
    other = Net()
    other(tf.ones([1, 1]))
    other.load_weights("easy_checkpoint")
    np.testing.assert_array_equal(other.l1.kernel, net.l1.kernel)


def test_c06_state_is_in_variables_made_directly_and_by_layers():
    net = Net()
    net(tf.ones([1, 1]))
    path = tf.train.Checkpoint(own=tf.Variable(1.0), net=net).write("ck")
    assert {"own" + VALUE, "net/l1/kernel" + VALUE} <= set(keys(path))


def test_c07_subclasses_track_variables_on_attributes():
    owners = (
        tf.train.Checkpoint(),
        tf.keras.layers.Layer(),
        tf.keras.Model(),
        tf.Module(),
    )
    for owner in owners:
        owner.thing = tf.Variable(1.0)
        path = tf.train.Checkpoint(o=owner).write("ck")
        assert "o/thing" + VALUE in keys(path), owner


def test_c08_objects_are_given_by_keyword_or_later():
    root = tf.train.Checkpoint(a=tf.Variable(1))
    root.b = tf.Variable(2)
    assert {"a" + VALUE, "b" + VALUE} <= set(keys(root.write("ck")))


def test_c09_a_manager_handles_several_checkpoints():
    manager = tf.train.CheckpointManager(new_root(), "./tf_ckpts", max_to_keep=3)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    paths = [manager.save() for _ in range(2)]
    assert paths == ["./tf_ckpts/ckpt-1", "./tf_ckpts/ckpt-2"]
    assert manager.checkpoints == paths and manager.latest_checkpoint == paths[1]


def test_c10_training_goes_on_where_it_stopped():
    root = trained(6)
    path = root.save("ck")
    after = train(root, 6)
    again = new_root()
    again.restore(path)
    assert train(again, 6) == after
    for a, b in zip(root.net.variables, again.net.variables):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.shuffle(4, seed=1).batch(2),
        lambda d: d.repeat(2).batch(3),
        lambda d: d.map(lambda x: x * 2).batch(2),
        lambda d: d.interleave(
            lambda x: tf.data.Dataset.from_tensors(x).repeat(2), cycle_length=2
        ),
        lambda d: d.prefetch(2),
    ],
    ids=["shuffle", "repeat", "map", "interleave", "prefetch"],
)
def test_c11_the_iterators_place_is_saved(make):
    iterator = iter(make(tf.data.Dataset.range(10)))
    next(iterator)
    path = tf.train.Checkpoint(it=iterator).save("ck")
    rest = [x.numpy().tolist() for x in iterator]
    other = iter(make(tf.data.Dataset.range(10)))
    tf.train.Checkpoint(it=other).restore(path)
    assert [x.numpy().tolist() for x in other] == rest and rest


def test_c12_the_manager_keeps_the_newest():
    root = tf.train.Checkpoint(v=tf.Variable(1))
    manager = tf.train.CheckpointManager(root, "d", max_to_keep=3)
    paths = [manager.save() for _ in range(5)]
    assert manager.checkpoints == paths[2:] and manager.latest_checkpoint == paths[4]
    assert {n.split(".")[0] for n in os.listdir("d") if n[0] != "."} == {
        "checkpoint",
        "ckpt-3",
        "ckpt-4",
        "ckpt-5",
    }


def test_c13_a_path_is_a_prefix():
    path = tf.train.Checkpoint(v=tf.Variable(1)).save("d/ck")
    assert path == "d/ck-1" and not os.path.exists(path)
    assert os.path.exists(path + ".index")
    shards = [
        m
        for n in os.listdir("d")
        if (m := re.fullmatch(r"ck-1\.data-(\d+)-of-(\d+)", n))
    ]
    assert shards and len(shards) == int(shards[0][2])


def test_c14_the_state_file_records_the_prefixes():
    root = tf.train.Checkpoint(v=tf.Variable(1))
    manager = tf.train.CheckpointManager(root, "d", max_to_keep=2)
    for _ in range(3):
        manager.save()
    with open("d/checkpoint") as file:
        text = file.read()
    assert text.startswith(
        'model_checkpoint_path: "ckpt-3"\n'
        'all_model_checkpoint_paths: "ckpt-2"\n'
        'all_model_checkpoint_paths: "ckpt-3"\n'
    )
    assert text.count("all_model_checkpoint_timestamps: ") == 2
    again = tf.train.CheckpointManager(root, "d", max_to_keep=2)
    assert again.checkpoints == ["d/ckpt-2", "d/ckpt-3"]


def test_c15_loading_walks_named_edges_from_the_root():
    inner = tf.train.Checkpoint(v=tf.Variable(7.0, name="first"))
    path = tf.train.Checkpoint(inner=inner).save("ck")
    found = tf.Module(name="another_class")
    found.v = tf.Variable(0.0, name="second")
    tf.train.Checkpoint(inner=found).restore(path).assert_consumed()
    assert float(found.v) == 7.0


def test_c16_edges_are_named_by_attributes():
    root = tf.train.Checkpoint(a=tf.Module())
    root.a.b = tf.Variable(1)
    root.c = {"x/y": tf.Variable(2), "p.q": tf.Variable(3)}
    wanted = {"a/b" + VALUE, "c/x.Sy" + VALUE, "c/p..q" + VALUE}
    assert wanted <= set(keys(root.save("ck")))


def test_c17_keywords_name_edges():
    assert "step" + VALUE in keys(tf.train.Checkpoint(step=tf.Variable(1)).write("ck"))


def test_c18_the_examples_object_graph():
    graph = object_graph(trained().save("ck"))

    def children(node):
        return {c.local_name: c.node_id for c in graph.nodes[node].children}

    root = children(0)
    assert {"step", "optimizer", "net", "iterator", "save_counter"} <= set(root)
    net = children(root["net"])
    layer = children(net["l1"])
    assert {"kernel", "bias"} <= set(layer)
    slots = {
        (s.slot_name, s.original_variable_node_id)
        for s in graph.nodes[root["optimizer"]].slot_variables
    }
    assert slots == {(s, layer[n]) for s in ("m", "v") for n in ("kernel", "bias")}


def test_c19_slots_are_made_for_variables():
    found = keys(trained().save("ck"))
    for name in ("kernel", "bias"):
        for slot in ("m", "v"):
            assert f"net/l1/{name}/.OPTIMIZER_SLOT/optimizer/{slot}{VALUE}" in found


def test_c20_slots_are_saved_with_both_their_owners():
    root = trained()
    only = keys(tf.train.Checkpoint(optimizer=root.optimizer).write("a"))
    assert not [k for k in only if only[k] in ([5], [1, 5])]
    net = keys(tf.train.Checkpoint(net=root.net).write("b"))
    assert not [k for k in net if "SLOT" in k or "optimizer" in k]


def test_c21_restore_fills_a_variable_once_there_is_a_path():
    path = trained().save("ck")
    bias = tf.Variable(tf.zeros([5]))
    root = tf.train.Checkpoint()
    status = root.restore(path)
    root.net = tf.train.Checkpoint()
    root.net.l1 = tf.train.Checkpoint()
    assert not bias.numpy().any()
    root.net.l1.bias = bias
    np.testing.assert_array_equal(
        bias, tf.train.load_variable(path, "net/l1/bias" + VALUE)
    )
    status.assert_existing_objects_matched()


def partial_root(bias):
    layer = tf.train.Checkpoint(bias=bias)
    return tf.train.Checkpoint(net=tf.train.Checkpoint(l1=layer)), layer


def test_c22_only_the_bias_by_its_path():
    path = trained().save("ck")
    bias = tf.Variable(tf.zeros([5]))
    partial_root(bias)[0].restore(path)
    assert bias.numpy().any()


def test_c23_a_partial_graph_has_a_save_counter_too():
    root, _ = partial_root(tf.Variable(0.0))
    assert {k.split("/.")[0] for k in keys(root.save("ck"))} == {
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "net/l1/bias",
        "save_counter",
    }


def test_c24_restore_returns_a_status():
    root, _ = partial_root(tf.Variable(tf.zeros([5])))
    status = root.restore(trained().save("ck"))
    assert status.assert_existing_objects_matched() is status
    assert type(status).__name__ == "CheckpointLoadStatus"


def test_c25_existing_objects_must_match():
    path = tf.train.Checkpoint(v=tf.Variable(1)).save("ck")
    status = tf.train.Checkpoint(v=tf.Variable(0), w=tf.Variable(5)).restore(path)
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not"):
        status.assert_existing_objects_matched()


def test_c26_consumed_means_an_exact_match():
    path = tf.train.Checkpoint(v=tf.Variable(1), w=tf.Variable(2)).save("ck")
    both = tf.train.Checkpoint(v=tf.Variable(0), w=tf.Variable(0))
    both.restore(path).assert_consumed()
    status = tf.train.Checkpoint(v=tf.Variable(0)).restore(path)
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match=r"\(root\)\.w"):
        status.assert_consumed()


def test_c27_layers_make_variables_at_their_first_call():
    layer = tf.keras.layers.Dense(2)
    assert layer.variables == []
    layer(tf.ones([1, 3]))
    assert [v.shape for v in layer.variables] == [[3, 2], [2]]


def test_c28_values_arrive_between_creation_and_first_use():
    root = trained()
    path, x = root.save("ck"), tf.ones([2, 1])
    net = Net()
    tf.train.Checkpoint(net=net).restore(path)
    assert net.variables == []
    np.testing.assert_array_equal(net(x), root.net(x))


def test_c29_values_wait_for_variables():
    root, layer = partial_root(tf.Variable(tf.zeros([5])))
    path = trained().save("ck")
    root.restore(path)
    late = tf.Variable(tf.zeros([1, 5]))
    layer.kernel = late
    np.testing.assert_array_equal(
        late, tf.train.load_variable(path, "net/l1/kernel" + VALUE)
    )


def test_c30_list_variables_gives_keys_and_shapes():
    root = tf.train.Checkpoint(b=tf.Variable([[1.0, 2.0]]), a=tf.Variable(1))
    assert tf.train.list_variables(root.write("ck")) == [
        ("_CHECKPOINTABLE_OBJECT_GRAPH", []),
        ("a" + VALUE, []),
        ("b" + VALUE, [1, 2]),
    ]


def test_c31_keys_are_paths_of_the_graph():
    root = tf.train.Checkpoint(a=tf.train.Checkpoint(b=[tf.Variable(1)]))
    assert "a/b/0" + VALUE in keys(root.write("ck"))


def test_c32_lists_and_dicts_are_tracked():
    root = tf.train.Checkpoint(a=[tf.Variable(1.0)], b={"k": tf.Variable(2.0)})
    root.a.append(tf.Variable(3.0))
    assert {"a/0" + VALUE, "a/1" + VALUE, "b/k" + VALUE} <= set(keys(root.save("ck")))
    root.a.insert(0, tf.Variable(4.0))
    with pytest.raises(ValueError, match="Unable to save the object"):
        root.save("ck")


def test_c33_containers_become_wrappers():
    root = tf.train.Checkpoint(a=[1], b={"k": 2})
    assert isinstance(root.a, list) and root.a == [1]
    assert isinstance(root.b, dict) and root.b == {"k": 2}
    assert repr(root.a) == "ListWrapper([1])"
    assert repr(root.b) == "DictWrapper({'k': 2})"


def test_c34_wrappers_restore_what_is_added():
    save = tf.train.Checkpoint(
        listed=[tf.Variable(1.0)], mapped={"k": tf.Variable(2.0)}
    )
    path = save.save("ck")
    root = tf.train.Checkpoint()
    root.restore(path)
    root.listed, root.mapped = [], {}
    one, two = tf.Variable(0.0), tf.Variable(0.0)
    root.listed.append(one)
    root.mapped["k"] = two
    assert (float(one), float(two)) == (1.0, 2.0)


def test_c35_models_track_lists_of_layers():
    net = tf.keras.Model()
    net.blocks = [tf.keras.layers.Dense(2), tf.keras.layers.Dense(3)]
    for layer in net.blocks:
        layer.build([1, 4])
    assert len(net.trainable_variables) == 4
    path = tf.train.Checkpoint(m=net).write("ck")
    assert "m/blocks/1/bias" + VALUE in keys(path)


def named_model_fn(features, labels, mode):
    output = tf.keras.layers.Dense(5)(features["x"])
    loss = tf.reduce_mean(tf.abs(output - features["y"]))
    step = v1.train.AdamOptimizer(0.1).minimize(loss, v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def test_c36_estimators_save_by_name():
    estimator = tf.estimator.Estimator(named_model_fn, "./named")
    estimator.train(toy_dataset, steps=2)
    assert set(keys("./named/model.ckpt-2")) == {
        "dense/kernel",
        "dense/bias",
        "dense/kernel/Adam",
        "dense/kernel/Adam_1",
        "dense/bias/Adam",
        "dense/bias/Adam_1",
        "beta1_power",
        "beta2_power",
        "global_step",
    }


def test_c37_checkpoint_accepts_name_based_files():
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("w", initializer=3.0)
        session.run(v1.global_variables_initializer())
        path = v1.train.Saver().save(session, "./named")
    assert set(keys(path)) == {"w"}
    w = tf.Variable(0.0, name="w")
    status = tf.train.Checkpoint(anything=w).restore(path)
    assert float(w) == 3.0
    assert type(status).__name__ == "NameBasedSaverStatus"
    status.assert_consumed()


def model_fn(features, labels, mode):
    net = Net()
    opt = tf.keras.optimizers.Adam(0.1)
    ckpt = tf.train.Checkpoint(step=v1.train.get_global_step(), optimizer=opt, net=net)
    with tf.GradientTape() as tape:
        output = net(features["x"])
        loss = tf.reduce_mean(tf.abs(output - features["y"]))
    variables = net.trainable_variables
    gradients = tape.gradient(loss, variables)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=tf.group(
            opt.apply_gradients(zip(gradients, variables)), ckpt.step.assign_add(1)
        ),
        scaffold=v1.train.Scaffold(saver=ckpt),
    )


def estimated():
    tf.keras.backend.clear_session()
    estimator = tf.estimator.Estimator(model_fn, "./tf_estimator_example/")
    estimator.train(toy_dataset, steps=10)
    return tf.train.latest_checkpoint("./tf_estimator_example/")


def test_c38_a_scaffold_saves_by_objects():
    path = estimated()
    assert path == "./tf_estimator_example/model.ckpt-10"
    assert {
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "net/l1/kernel" + VALUE,
        f"net/l1/kernel/.OPTIMIZER_SLOT/optimizer/m{VALUE}",
        "step" + VALUE,
    } <= set(keys(path))


def test_c39_checkpoint_loads_an_estimators_checkpoints():
    path = estimated()
    root = tf.train.Checkpoint(
        step=tf.Variable(1, dtype=tf.int64),
        optimizer=tf.keras.optimizers.Adam(0.1),
        net=Net(),
    )
    root.restore(path)
    assert root.step.numpy() == 10
    root.net(tf.ones([1, 1]))
    np.testing.assert_array_equal(
        root.net.l1.kernel, tf.train.load_variable(path, "net/l1/kernel" + VALUE)
    )


def test_c40_objects_save_and_restore_without_naming_a_variable():
    root = trained()
    path = root.save("ck")
    again = new_root()
    again.restore(path)
    assert train(again, 1) == train(root, 1)
    assert int(again.optimizer.iterations) == 4


def test_c41_checkpoints_are_numbered_by_the_save_counter():
    root = tf.train.Checkpoint(v=tf.Variable(1))
    assert [root.save("d/x"), root.save("d/x")] == ["d/x-1", "d/x-2"]
    assert int(root.save_counter) == 2 and tf.train.latest_checkpoint("d") == "d/x-2"
    again = tf.train.Checkpoint(v=tf.Variable(1))
    again.restore("d/x-2")
    assert again.save("d/x") == "d/x-3"


def test_c42_restoring_none_does_nothing():
    v = tf.Variable(7)
    status = tf.train.Checkpoint(v=v).restore(None)
    assert int(v) == 7 and status is not None


def test_c43_latest_checkpoint_is_by_the_state_file():
    assert tf.train.latest_checkpoint("missing") is None
    os.mkdir("empty")
    assert tf.train.latest_checkpoint("empty") is None
    root = tf.train.Checkpoint(v=tf.Variable(1))
    root.save("d/x")
    root.save("d/x")
    assert tf.train.latest_checkpoint("d") == "d/x-2"
    os.rename("d", "moved")
    assert tf.train.latest_checkpoint("moved") == "moved/x-2"
