"""tf.train.Checkpoint, its statuses, CheckpointManager and readers."""

import collections
import copy
import gc
import os
import pickle
import weakref

import headrace as tf
import numpy as np
import subprocess
import sys

import pytest
from headrace.framework.settings.logging import get_logger


_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def one(value=0.0, **kwargs):
    return tf.Variable(value, **kwargs)


def saved(tmp_path, **kwargs):
    return tf.train.Checkpoint(**kwargs).save(str(tmp_path / "c"))


def test_save_numbers_and_state(tmp_path):
    c = tf.train.Checkpoint(a=one(1.0))
    assert c.save(str(tmp_path / "c")) == str(tmp_path / "c-1")
    assert c.save(str(tmp_path / "c")) == str(tmp_path / "c-2")
    assert int(c.save_counter) == 2
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "c-2")
    text = (tmp_path / "checkpoint").read_text()
    assert text == 'model_checkpoint_path: "c-2"\nall_model_checkpoint_paths: "c-2"\n'
    fresh = tf.train.Checkpoint(a=one())
    fresh.restore(tf.train.latest_checkpoint(str(tmp_path))).assert_consumed()
    assert int(fresh.save_counter) == 2
    assert fresh.save(str(tmp_path / "c")).endswith("c-3")


def test_values_arrive_when_objects_appear(tmp_path):
    path = saved(tmp_path, m=tf.train.Checkpoint(l=[one(1.0), {"k": one(2.0)}]))
    root = tf.train.Checkpoint()
    status = root.restore(path)
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root"):
        status.assert_consumed()
    root.m = tf.train.Checkpoint()
    root.m.l = []
    v = one()
    root.m.l.append(v)
    assert float(v) == 1.0
    root.m.l.append({})
    w = one()
    root.m.l[1]["k"] = w
    assert float(w) == 2.0
    status.assert_consumed()


def test_statuses(tmp_path):
    path = saved(tmp_path, kernel=one(1.0), bias=one(2.0))
    status = tf.train.Checkpoint(kernel=one(), biass=one()).restore(path)
    with pytest.raises(AssertionError, match="Found 1 Python objects") as error:
        status.assert_existing_objects_matched()
    assert any("nearest" in note for note in error.value.__notes__)
    status.assert_nontrivial_match()
    status.expect_partial()
    nothing = tf.train.Checkpoint(x=one()).read(path)
    with pytest.raises(AssertionError, match="Nothing except the root object"):
        nothing.assert_nontrivial_match()
    nothing.expect_partial()
    none = tf.train.Checkpoint(x=one()).restore(None)
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        none.assert_consumed()


def test_errors(tmp_path):
    path = saved(tmp_path, a=one([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(2,\)"):
        tf.train.Checkpoint(a=one([1.0])).restore(path).expect_partial()
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected dtype int32"):
        tf.train.Checkpoint(a=one([1, 2])).restore(path)
    with pytest.raises(tf.errors.NotFoundError, match="double-check that the path"):
        tf.train.Checkpoint().restore(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="expecting a to be a trackable object"):
        tf.train.Checkpoint(a=3)
    module = tf.Module()
    module.a = one()
    with pytest.raises(ValueError, match="if root.a already exists"):
        tf.train.Checkpoint(module, a=one())


def test_root_with_more_children(tmp_path):
    module = tf.Module()
    module.w = one(3.0)
    path = tf.train.Checkpoint(module, step=one(7.0)).save(str(tmp_path / "c"))
    assert [k.split("/")[0] for k, _ in tf.train.list_variables(path)] == [
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "save_counter",
        "step",
        "w",
    ]
    module.w.assign(0.0)
    step = one()
    tf.train.Checkpoint(module, step=step).restore(path).assert_consumed()
    assert (float(module.w), float(step)) == (3.0, 7.0)


def test_manager(tmp_path):
    v = tf.Variable(0)
    c = tf.train.Checkpoint(v=v)
    kwargs = dict(max_to_keep=2, step_counter=v, checkpoint_interval=2)
    manager = tf.train.CheckpointManager(c, str(tmp_path / "deep" / "m"), **kwargs)
    written = []
    for _ in range(8):
        v.assign_add(1)
        written.append(manager.save() is not None)
    assert written == [True, False] * 4
    assert [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-3", "ckpt-4"]
    again = tf.train.CheckpointManager(c, manager.directory, max_to_keep=2)
    v.assign(0)
    assert again.restore_or_initialize().endswith("ckpt-4")
    assert int(v) == 7
    calls = []
    fresh = tf.train.CheckpointManager(
        c, str(tmp_path / "other"), 1, init_fn=lambda: calls.append(1)
    )
    assert fresh.restore_or_initialize() is None and calls == [1]


def test_readers(tmp_path):
    path = saved(tmp_path, a=one([[1.0, 2.0]]), s=tf.Variable(["x", "yy"]))
    key = "a/.ATTRIBUTES/VARIABLE_VALUE"
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.has_tensor(key) and not reader.has_tensor("a")
    assert reader.get_variable_to_shape_map()[key] == [1, 2]
    assert reader.get_variable_to_dtype_map()[key] == tf.float32
    np.testing.assert_array_equal(tf.train.load_variable(path, key), [[1.0, 2.0]])
    assert list(reader.get_tensor("s/.ATTRIBUTES/VARIABLE_VALUE")) == [b"x", b"yy"]
    with pytest.raises(tf.errors.NotFoundError, match="Key zz not found"):
        reader.get_tensor("zz")


def test_python_state_and_generator(tmp_path):
    class Words(tf.train.experimental.PythonState):
        words = "none"

        def serialize(self):
            return self.words

        def deserialize(self, string_value):
            self.words = string_value.decode()

    words, generator = Words(), tf.random.Generator.from_seed(3)
    words.words = "some words"
    generator.normal([5])
    path = saved(tmp_path, w=words, g=generator)
    expected = generator.normal([4]).numpy()
    words, generator = Words(), tf.random.Generator.from_seed(4)
    tf.train.Checkpoint(w=words, g=generator).restore(path).assert_consumed()
    assert words.words == "some words"
    np.testing.assert_array_equal(generator.normal([4]).numpy(), expected)


def test_cycles_do_not_leak(tmp_path):
    def use():
        module = tf.Module()
        module.me = module
        module.l = [one(1.0)]
        checkpoint = tf.train.Checkpoint(m=module)
        checkpoint.read(checkpoint.write(str(tmp_path / "c"))).assert_consumed()
        return weakref.ref(module.l[0])

    reference = use()
    gc.collect()
    assert reference() is None


def test_errors_of_python_callbacks_come_through(tmp_path):
    class Bad(tf.train.experimental.PythonState):
        def serialize(self):
            raise KeyError("mine")

        def deserialize(self, string_value):
            raise AssertionError

    with pytest.raises(KeyError, match="mine"):
        saved(tmp_path, bad=Bad())


def test_unrestored_values_are_told_of(tmp_path, caplog, monkeypatch):
    # The logger may have been set up, by an earlier test, to keep its lines.
    monkeypatch.setattr(get_logger(), "propagate", True)
    path = saved(tmp_path, a=one(), b=one())
    tf.train.Checkpoint(a=one()).restore(path)
    assert "could not be found in the restored object: (root).b" in caplog.text
    caplog.clear()
    tf.train.Checkpoint(a=one()).restore(path).expect_partial()
    assert caplog.text == ""


def test_structures(tmp_path):
    module = tf.Module()
    source = [one(1.0)]
    module.l = source
    assert repr(module.l).startswith("ListWrapper([") and isinstance(module.l, list)
    assert module.l == source and source[0] is module.l[0]
    module.d = {"k": [one(2.0)], "n": 3}
    assert str(module.d).startswith("{'k': ListWrapper([")
    module.t = (1, one(3.0))
    assert isinstance(module.t, tuple)
    pair = collections.namedtuple("pair", "x y")
    module.n = pair(one(4.0), 5)
    assert isinstance(module.n, pair) and str(module.n).startswith("pair(x=<tf.Var")
    assert repr(module.n) == f"_TupleWrapper({module.n})"
    assert type(copy.copy(module.n)) is pair
    module.plain = (1, 2)
    assert type(module.plain) is tuple
    assert len(module.trainable_variables) == 4
    path = tf.train.Checkpoint(m=module).write(str(tmp_path / "c"))
    keys = [
        k.replace("/.ATTRIBUTES/VARIABLE_VALUE", "")
        for k, _ in tf.train.list_variables(path)
    ][1:]
    assert keys == ["m/d/k/0", "m/l/0", "m/n/x", "m/t/1"]
    module.l[0] = one()
    with pytest.raises(ValueError, match="A list element was replaced"):
        tf.train.Checkpoint(m=module).write(path)


def test_structures_that_cannot_be_saved(tmp_path):
    source = [one()]
    c = tf.train.Checkpoint(l=source)
    source.append(one())
    with pytest.raises(ValueError, match="modified outside the wrapper"):
        c.write(str(tmp_path / "c"))
    c = tf.train.Checkpoint(d={1: one()})
    with pytest.raises(ValueError, match="non-string key"):
        c.write(str(tmp_path / "c"))


def test_copies_have_nodes_of_their_own(tmp_path):
    module = tf.Module()
    module.l = [one(1.0)]
    saved(tmp_path, m=module)
    for other in (copy.deepcopy(module), copy.copy(module)):
        path = tf.train.Checkpoint(m=other).write(str(tmp_path / "d"))
        assert len(tf.train.list_variables(path)) == 2
    assert pickle.loads(pickle.dumps(module.l.copy())) is not None


def test_deleted_attributes_are_not_saved(tmp_path):
    module = tf.Module()
    module.a, module.b = one(), one()
    saved(tmp_path, m=module)
    del module.a
    path = tf.train.Checkpoint(m=module).write(str(tmp_path / "c"))
    assert len(tf.train.list_variables(path)) == 2


def test_children_stay_until_others_replace_them(tmp_path):
    def keys(c):
        names = tf.train.list_variables(c.write(str(tmp_path / "c")))
        return [name.partition("/.")[0] for name, _ in names][1:]

    c = tf.train.Checkpoint(a=one(1.0), l=[one(2.0)])
    c.a = None
    c.l = 3
    gc.collect()
    assert keys(c) == ["a", "l/0"] and (c.a, c.l) == (None, 3)
    c.l = [4]
    assert keys(c) == ["a"]
    c.a = one(5.0)
    assert (
        tf.train.load_variable(c.write(str(tmp_path / "c")), keys(c)[0] + _VALUE) == 5
    )
    del c.a
    assert keys(c) == []


def test_traced_functions_are_nodes_without_values(tmp_path):
    c = tf.train.Checkpoint(f=tf.function(lambda x: x), v=one(1.0))
    path = c.write(str(tmp_path / "c"))
    graph = tf.train.load_variable(path, "_CHECKPOINTABLE_OBJECT_GRAPH")
    assert b"\x12\x01f" in graph
    tf.train.Checkpoint(v=one()).read(path).assert_consumed()


def test_dicts_changed_in_ways_that_are_not_followed(tmp_path):
    for change in (
        lambda d: d.pop("n"),
        lambda d: d.popitem(),
        lambda d: d.clear(),
        lambda d: d.setdefault("new", 1),
    ):
        c = tf.train.Checkpoint(d={"k": one(), "n": 3})
        change(c.d)
        with pytest.raises(ValueError, match="dependency was added was None"):
            c.write(str(tmp_path / "c"))
    c = tf.train.Checkpoint(d={"k": one(), "n": 3})
    c.d["k"] = one()
    del c.d["n"]
    assert c.write(str(tmp_path / "c"))
    assert type(c.d.copy()) is type(c.d)


def test_hooks_that_do_not_fit(tmp_path):
    class Own(tf.train.experimental.PythonState.__mro__[1]):
        values = 3

        def _serialize_to_tensors(self):
            return self.values

    own = Own()
    with pytest.raises(AttributeError, match="'int' object has no attribute 'items'"):
        saved(tmp_path, o=own)
    own.values = {"a": tf.constant(1)}
    path = saved(tmp_path, o=own)
    with pytest.raises(NotImplementedError):
        tf.train.Checkpoint(o=own).restore(path)
    own.values = {"a": tf.constant(1), "b": tf.constant(2)}
    with pytest.raises(tf.errors.NotFoundError, match=r"Key o/.ATTRIBUTES/b not found"):
        tf.train.Checkpoint(o=own).restore(path)


def test_state_files(tmp_path):
    folder = str(tmp_path)
    update = tf.compat.v1.train.update_checkpoint_state
    update(folder, "a-2", ["a-1"], last_preserved_timestamp=3.5)
    state = tf.train.get_checkpoint_state(folder)
    assert list(state.all_model_checkpoint_paths) == [folder + "/a-1", folder + "/a-2"]
    assert state.last_preserved_timestamp == 3.5 and state.SerializeToString()
    with pytest.raises(ValueError, match="must match checkpoint paths"):
        update(folder, "a-2", ["a-2"], all_model_checkpoint_timestamps=[1.0, 2.0])
    for text in ("", 'all_model_checkpoint_paths: "x"'):
        (tmp_path / "checkpoint").write_text(text)
        with pytest.raises(ValueError, match="Invalid checkpoint state loaded from"):
            tf.train.latest_checkpoint(folder)
    for text in ("garbage {", 'model_checkpoint_path: "x" unknown: 3'):
        (tmp_path / "checkpoint").write_text(text)
        assert tf.train.get_checkpoint_state(folder) is None


def test_names_of_values_in_keys():
    from headrace.train import traced_write

    for name, key in [("a/b", "a.Sb"), ("a.b", "a..b"), ("a.Sb/", "a..Sb.S")]:
        assert traced_write.name_in(f"x/.ATTRIBUTES/{key}") == name


def _keys(path):
    ending = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = [k for k, _ in tf.train.list_variables(path) if k.endswith(ending)]
    return [k.removesuffix(ending) for k in names if not k.startswith("save_counter")]


def test_tuples_stay_children_however_often_they_are_looked_at(tmp_path):
    pair = collections.namedtuple("pair", "x y")

    class Fixed(pair):
        def __new__(cls, x, y):
            return super().__new__(cls, x, 3)

    module = tf.Module()
    module.t, module.n, module.f = (1, one(3.0)), pair(one(4.0), 5), Fixed(one(), 2)
    for _ in range(2):
        view = tf.train.TrackableView.children
        assert view(module) == {"t": module.t, "n": module.n, "f": module.f}
        assert list(view(module.n)) == list(view(module.f)) == ["x", "0"]
        path = tf.train.Checkpoint(m=module, t=module.t).save(tmp_path / "c")
        assert _keys(path) == ["m/f/x", "m/n/x", "t/1"]
    module.t[1].assign(0.0)
    tf.train.Checkpoint(m=module, t=module.t).restore(path).assert_consumed()
    assert module.t[1].numpy() == 3.0


def test_a_tuple_that_its_fields_do_not_make_is_not_saved(tmp_path):
    class Other(collections.namedtuple("Other", ["x"])):
        def __new__(cls):
            return super().__new__(cls, [])

    module = tf.Module()
    module.t = Other()
    module.t.x.append(one())
    with pytest.raises(ValueError, match="not constructable from its _fields"):
        tf.train.Checkpoint(m=module).save(tmp_path / "c")


def test_wrapped_tuples_have_the_structure_of_plain_ones():
    module, plain = tf.Module(), (one(),)
    module.t = plain
    tf.nest.assert_same_structure(plain, module.t)
    tf.nest.assert_same_structure(module.t, plain)
    with pytest.raises(TypeError, match="don't have the same nested structure"):
        tf.nest.assert_same_structure(module.t, [1])


def test_a_weak_reference_does_not_keep_the_root(tmp_path):
    root = tf.Module()
    root.v = tf.Variable(1)
    reference = weakref.ref(root)
    checkpoint = tf.train.Checkpoint(root=weakref.ref(root))
    path = checkpoint.save(tmp_path / "c")
    root.v.assign(2)
    checkpoint.restore(path)
    assert root.v.numpy() == 1 and checkpoint.root is root
    del root
    assert reference() is None


def test_classes_of_trackable_objects():
    assert isinstance(tf.Module(), tf.__internal__.tracking.AutoTrackable)
    assert issubclass(tf.train.Checkpoint, tf.__internal__.tracking.Trackable)


def test_folders_are_made_for_paths_and_not_for_tensors(tmp_path):
    checkpoint = tf.train.Checkpoint(v=one())
    write = tf.function(checkpoint.write)
    path = tmp_path / "absent" / "c"
    with pytest.raises(tf.errors.NotFoundError):
        write(tf.constant(str(path)))
    assert not path.parent.exists()
    checkpoint.write(path)
    assert write(tf.constant(str(path))).numpy() == str(path).encode()
    assert sorted(os.listdir(path.parent)) == ["c.data-00000-of-00001", "c.index"]
    tf.train.Checkpoint(v=one()).read(path).assert_consumed()
    # The op makes one folder in one that is there.
    arguments = dict(tensor_names=["a"], shape_and_slices=[""], tensors=[[1.0]])
    tf.raw_ops.SaveV2(prefix=str(tmp_path / "new" / "c"), **arguments)
    with pytest.raises(tf.errors.NotFoundError, match="No such file or directory"):
        tf.raw_ops.SaveV2(prefix=str(tmp_path / "x" / "y" / "c"), **arguments)


def _open_files(path):
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if name.startswith(str(path)):
            found.append(name)
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no list of open files")
def test_files_are_closed_while_values_wait_for_their_objects(tmp_path):
    path = tf.train.Checkpoint(v=one(3.0), w=one(4.0)).save(tmp_path / "c")
    checkpoint = tf.train.Checkpoint(v=one())
    status = checkpoint.restore(path)
    assert _open_files(tmp_path) == []
    checkpoint.w = one()
    status.assert_consumed()
    assert _open_files(tmp_path) == [] and checkpoint.w.numpy() == 4.0


def test_objects_may_find_their_children_for_themselves(tmp_path):
    saved = tf.Module()
    saved.a, saved.b = one(3.0), one(4.0)
    path = tf.train.Checkpoint(m=saved).save(tmp_path / "c")

    class Making(tf.__internal__.tracking.AutoTrackable):
        def _lookup_dependency(self, name, cached_dependencies=None):
            asked.append((name, sorted(cached_dependencies)))
            if name == "b":
                made.append(one())
                return made[-1]
            return super()._lookup_dependency(name, cached_dependencies)

    asked, made, other = [], [], Making()
    other.a = one()
    tf.train.Checkpoint(m=other).restore(path).expect_partial()
    assert asked == [("a", ["a"]), ("b", ["a"])]
    assert other.a.numpy() == 3.0 and made[0].numpy() == 4.0

    class Failing(tf.Module):
        def _lookup_dependency(self, name, cached_dependencies=None):
            raise KeyError(name)

    with pytest.raises(KeyError):
        tf.train.Checkpoint(m=Failing()).restore(path)


def test_two_processes_save_into_one_folder(tmp_path):
    """Under names of their own, as searches that share a folder do."""
    program = """
import sys
import headrace as tf
checkpoint = tf.train.Checkpoint(v=tf.Variable(tf.ones([500_000]) * int(sys.argv[2])))
for _ in range(6):
    path = checkpoint.save(sys.argv[1] + "/trial" + sys.argv[2])
print(path)
"""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, tmp_path, str(i)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in (1, 2)
    ]
    for i, process in enumerate(started):
        path, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        reader = tf.train.load_checkpoint(path.strip())
        saved = reader.get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE")
        assert path.strip().endswith(f"trial{i + 1}-6") and (saved == i + 1).all()


def test_managers_go_on_from_a_step(tmp_path):
    step = tf.Variable(10)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step),
        str(tmp_path),
        3,
        step_counter=step,
        checkpoint_interval=5,
        last_checkpoint_step=8,
    )
    assert manager.save() is None
    step.assign(13)
    assert manager.save().endswith("ckpt-1")
    step.assign(14)
    assert manager.save() is None
