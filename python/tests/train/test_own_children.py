"""Objects that say themselves what their children are, and variables that stand for
others."""

import copy

import pytest

import headrace as tf

tracking = tf.__internal__.tracking


def saved_keys(path):
    names = (name for name, _ in tf.train.list_variables(path))
    ends = "/.ATTRIBUTES/VARIABLE_VALUE"
    return sorted(n[: -len(ends)] for n in names if n.endswith(ends))


def one(value=0.0):
    return tf.Variable(value)


class Boxed(tf.Module):
    """Its variables are in a dict that attributes do not show."""

    def __init__(self, names=("a", "b"), value=0.0):
        super().__init__()
        object.__setattr__(self, "box", {n: one(value) for n in names})
        self.c = one(value)
        self.asked = set()

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        self.asked.add(save_type)
        return {**super()._trackable_children(save_type, **kwargs), **self.box}

    def values(self):
        return [float(v) for v in (*self.box.values(), self.c)]


def test_children_are_asked_for_when_saving_and_restoring(tmp_path):
    saved = Boxed(value=3.0)
    path = tf.train.Checkpoint(m=saved).save(tmp_path / "c")
    assert saved_keys(path) == ["m/a", "m/b", "m/c", "save_counter"]
    saved.box["d"] = one(5.0)  # nobody told the checkpoint
    path = tf.train.Checkpoint(m=saved).save(tmp_path / "c")
    assert saved_keys(path) == ["m/a", "m/b", "m/c", "m/d", "save_counter"]
    assert saved.asked == {"checkpoint"}

    other = Boxed("abd")
    tf.train.Checkpoint(m=other).restore(path).assert_consumed()
    assert other.values() == [3.0, 3.0, 5.0, 3.0]
    assert {id(v) for v in other.variables} == {
        id(v) for v in (*other.box.values(), other.c)
    }
    assert sorted(tf.train.TrackableView.children(other)) == ["a", "b", "c", "d"]
    assert copy.deepcopy(other).values() == other.values()

    # One that is missing, or one too many, is told, also where it came later.
    status = tf.train.Checkpoint(m=Boxed("ab")).restore(path)
    with pytest.raises(AssertionError):
        status.assert_consumed()
    more = Boxed("abd")
    status = tf.train.Checkpoint(m=more).restore(path)
    more.box["e"] = one()
    with pytest.raises(AssertionError):
        status.assert_existing_objects_matched()


def test_children_may_be_withheld(tmp_path):
    class Withholding(Boxed):
        def _trackable_children(self, save_type="checkpoint", **kwargs):
            children = super()._trackable_children(save_type, **kwargs)
            return {n: v for n, v in children.items() if n != hidden}

    hidden, module = "c", Withholding(value=1.0)
    checkpoint = tf.train.Checkpoint(m=module)
    assert saved_keys(checkpoint.save(tmp_path / "c")) == ["m/a", "m/b", "save_counter"]
    hidden = "a"  # those withheld before are not forgotten
    assert saved_keys(checkpoint.save(tmp_path / "c")) == ["m/b", "m/c", "save_counter"]


def test_late_children_wait_until_they_are_announced(tmp_path):
    path = tf.train.Checkpoint(m=Boxed("a", value=7.0)).save(tmp_path / "c")
    module = Boxed("")
    checkpoint = tf.train.Checkpoint(m=module)
    checkpoint.restore(path)
    module.box["a"] = one(1.0)
    assert saved_keys(checkpoint.save(tmp_path / "d"))[0] == "m/a"
    assert float(module.box["a"]) == 1.0  # saving is no restoring
    module._handle_deferred_dependencies("a", module.box["a"])
    assert float(module.box["a"]) == 7.0


def test_children_may_be_made_when_asked_for(tmp_path):
    class Part(tracking.AutoTrackable):
        def __init__(self, of):
            self.of = of

        def _serialize_to_tensors(self):
            return {"number": tf.constant(self.of["number"])}

        def _restore_from_tensors(self, restored):
            self.of["number"] = float(restored["number"])

    class Whole(tf.Module):
        def _trackable_children(self, save_type="checkpoint", **kwargs):
            return {"part": Part(state)}

    state = {"number": 4.0}
    path = tf.train.Checkpoint(m=Whole()).save(tmp_path / "c")
    state["number"] = 0.0
    tf.train.Checkpoint(m=Whole()).restore(path)
    assert state == {"number": 4.0}


def test_children_of_keras_models(tmp_path):
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1)
            object.__setattr__(self, "scale", one(1.0))

        def call(self, x):
            return self.dense(x) * self.scale

        def _trackable_children(self, save_type="checkpoint", **kwargs):
            children = super()._trackable_children(save_type, **kwargs)
            return {**children, "scale": self.scale}

    model = Model()
    model(tf.ones([1, 2]))
    model.scale.assign(3.0)
    path = tf.train.Checkpoint(model=model).save(tmp_path / "c")
    other = Model()
    status = tf.train.Checkpoint(model=other).restore(path)
    got = other(tf.ones([1, 2]))
    status.assert_consumed()
    assert float(other.scale) == 3.0
    assert got.numpy() == pytest.approx(model(tf.ones([1, 2])).numpy())


@pytest.mark.parametrize("error", [KeyError("k"), TypeError("'x' is no trackable")])
def test_what_children_raise_is_raised(tmp_path, error):
    class Failing(tf.Module):
        def _trackable_children(self, save_type="checkpoint", **kwargs):
            if isinstance(error, TypeError):
                return {"x": 3}
            raise error

    for use in ("save", "restore"):
        path = tf.train.Checkpoint(m=tf.Module()).save(tmp_path / "c")
        checkpoint = tf.train.Checkpoint(m=Failing())
        with pytest.raises(type(error), match=error.args[0]):
            getattr(checkpoint, use)(path)


def test_kinds_of_saving():
    assert tf.Module()._trackable_children(save_type="savedmodel") == {}
    # What is for no checkpoint is for a SavedModel, which holds the traces of functions.
    square = tf.function(lambda x: x * x)
    assert square._trackable_children() == {}
    trace = square.get_concrete_function(tf.TensorSpec([], tf.float32))
    for save_type in ("savedmodel", "saved_model", "other"):
        assert tf.Module()._trackable_children(save_type=save_type) == {}
        assert square._trackable_children(save_type) == {"trace_0": trace}
    assert trace._trackable_children("savedmodel") == {}


def _wrapper(change, items):
    """The ListWrapper of a module after a change, and its module."""
    module = tf.Module()
    module.items = list(items)
    change(module.items)
    return module


_CHANGES = {
    "replace": lambda items: items.__setitem__(0, 5),
    "replace all": lambda items: items.__setitem__(slice(None), [3]),
    "delete": lambda items: items.__delitem__(0),
    "pop": lambda items: items.pop(),
    "clear": lambda items: items.clear(),
    "remove": lambda items: items.remove(items[0]),
    "insert": lambda items: items.insert(0, 9),
    "reverse": lambda items: items.reverse(),
    "no times": lambda items: items.__imul__(0),
}


@pytest.mark.parametrize("change", _CHANGES)
def test_lists_of_plain_values_may_change(change, tmp_path):
    module = _wrapper(_CHANGES[change], [1, 2])
    tf.train.Checkpoint(m=module).save(tmp_path / "c")


@pytest.mark.parametrize("change", _CHANGES)
def test_lists_of_variables_may_not(change, tmp_path):
    module = _wrapper(_CHANGES[change], [one(), 2])
    with pytest.raises(ValueError, match="append-only data structures"):
        tf.train.Checkpoint(m=module).save(tmp_path / "c")


def test_places_of_variables_may_be_filled_but_not_moved(tmp_path):
    changes = {
        "a plain one beside it": (lambda x: x.__setitem__(0, 5), [2, one()], True),
        "a variable for a plain one": (lambda x: x.__setitem__(0, one()), [1, 2], True),
        "cleared, then filled": (lambda x: (x.clear(), x.append(one())), [1], True),
        "one alone, turned round": (lambda x: x.reverse(), [one()], True),
        "a variable put between": (lambda x: x.insert(1, one()), [1, 2], False),
        "a plain one taken away": (lambda x: x.pop(0), [1, one()], False),
        "a shorter slice before it": (
            lambda x: x.__setitem__(slice(0, 1), []),
            [1, one()],
            False,
        ),
        "a list in it": (lambda x: x.pop(), [1, [2]], False),
    }
    for name, (change, items, is_fit) in changes.items():
        module = _wrapper(change, items)
        if is_fit:
            tf.train.Checkpoint(m=module).save(tmp_path / "c")
            continue
        with pytest.raises(ValueError, match="append-only data structures"):
            tf.train.Checkpoint(m=module).save(tmp_path / "c")
            raise AssertionError(name)


def test_track_trackable(tmp_path):
    for kind in (tracking.AutoTrackable, tf.Module):
        holder = kind()
        assert holder._track_trackable(v := one(4.0), "v") is v
        path = tf.train.Checkpoint(m=holder).save(tmp_path / "c")
        assert saved_keys(path) == ["m/v", "save_counter"]
        other = kind()
        tf.train.Checkpoint(m=other).restore(path)
        w = other._track_trackable(one(), "v")
        assert float(w) == 4.0 and other._lookup_dependency("v") is w
        assert list(other._trackable_children()) == ["v"]
        with pytest.raises(ValueError, match="already declared as a dependency"):
            other._track_trackable(one(), "v")
        other._track_trackable(u := one(), "v", overwrite=True)
        assert other._lookup_dependency("v") is u
        with pytest.raises(TypeError, match="objects of type Trackable"):
            other._track_trackable(3, "n")


def test_variables_of_custom_getters(tmp_path):
    def getter(name, shape, dtype, initializer):
        return tf.Variable(initializer(shape, dtype), name=name)

    def add(to):
        return to._add_variable_with_custom_getter("k", [2], None, tf.zeros, getter)

    module = tf.Module()
    add(module).assign([5.0, 6.0])
    path = tf.train.Checkpoint(m=module).save(tmp_path / "c")
    other = tf.Module()
    tf.train.Checkpoint(m=other).restore(path)
    assert add(other).numpy().tolist() == [5.0, 6.0]
    with pytest.raises(ValueError, match="A variable named 'k' already exists"):
        add(other)


def test_attributes_that_are_not_tracked():
    module = tf.Module()
    module._self_setattr_tracking = False
    module.v, module.list = one(), [one()]
    assert type(module.list) is list and not module._setattr_tracking
    module._self_setattr_tracking = True
    module.w = one()
    module.x = module._no_dependency(one())
    assert list(module._trackable_children()) == ["w"]
    assert len(module.variables) == 4
    module.v = one()
    assert sorted(module._trackable_children()) == ["v", "w"]


class Halved(tf.Variable):
    """Reads another variable as float16; does not call __init__."""

    def __init__(self, of):
        self.of = of

    handle = property(lambda self: self.of.handle)
    dtype = property(lambda self: tf.float16)
    shape = property(lambda self: self.of.shape)
    name = property(lambda self: self.of.name)
    trainable = property(lambda self: self.of.trainable)

    def _should_act_as_resource_variable(self):
        raise AssertionError("it is enough to have it")

    def value(self):
        return tf.cast(self.of.value(), tf.float16)

    def _serialize_to_tensors(self):
        return self.of._serialize_to_tensors()

    def _restore_from_tensors(self, restored):
        return self.of._restore_from_tensors(restored)


def test_a_variable_that_stands_for_another_computes():
    v = Halved(tf.Variable([1.5, 2.0]))
    assert isinstance(v, tf.Variable)
    cases = [
        (lambda: v + 1, [2.5, 3.0]),
        (lambda: 2 * v, [3.0, 4.0]),
        (lambda: -v, [-1.5, -2.0]),
        (lambda: tf.add(v, v), [3.0, 4.0]),
        (lambda: tf.convert_to_tensor(v), [1.5, 2.0]),
        (lambda: tf.stack([v])[0], [1.5, 2.0]),
        (lambda: v[1], 2.0),
    ]
    for call, want in cases:
        for function in (call, tf.function(call)):
            got = function()
            assert got.dtype == tf.float16 and got.numpy().tolist() == want
    for function in (lambda: v * v, tf.function(lambda: v * v)):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(function())
        gradient = tape.gradient(y, v)
        assert gradient.dtype == tf.float32 and gradient.numpy().tolist() == [3.0, 4.0]


def test_a_variable_that_stands_for_another_is_saved(tmp_path):
    module = tf.Module()
    module.w = Halved(tf.Variable([1.5, 2.0]))
    module.list = [module.w]
    assert len(module.trainable_variables) == 1
    path = tf.train.Checkpoint(m=module).save(tmp_path / "c")
    assert saved_keys(path) == ["m/w", "save_counter"]
    other = tf.Module()
    other.w = Halved(tf.Variable([0.0, 0.0]))
    tf.train.Checkpoint(m=other).restore(path).assert_consumed()
    assert other.w.of.numpy().tolist() == [1.5, 2.0]
    later = tf.Module()
    tf.train.Checkpoint(m=later).restore(path)
    later.w = Halved(tf.Variable([0.0, 0.0]))
    assert later.w.of.numpy().tolist() == [1.5, 2.0]
    plain = tf.Module()  # the file is that of a plain variable
    plain.w = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(m=plain).restore(path).assert_existing_objects_matched()
    assert plain.w.numpy().tolist() == [1.5, 2.0]


def test_variables_are_trackable_and_give_their_values():
    v = tf.Variable([1.0, 2.0])
    assert isinstance(v, tracking.Trackable) and v._trackable_children() == {}
    v._restore_from_tensors(
        {"VARIABLE_VALUE": v._serialize_to_tensors()["VARIABLE_VALUE"] * 3}
    )
    assert v.numpy().tolist() == [3.0, 6.0]


class Text(tf.train.experimental.PythonState):
    """A string in a checkpoint."""

    text = ""

    def serialize(self):
        return self.text

    def deserialize(self, string_value):
        self.text = string_value.decode()


class Asking(tf.Module):
    """Makes a child whenever it is asked for what it has not, and keeps those for which
    a restored checkpoint has something at once."""

    def __init__(self):
        object.__setattr__(self, "box", tf.Module())

    def __getattribute__(self, name):
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            box = object.__getattribute__(self, "box")
            if not hasattr(box, name):
                setattr(box, name, Text())
            if not getattr(box, name).text:  # nothing came for it
                delattr(box, name)
                raise
            return getattr(box, name)

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        return {"box": object.__getattribute__(self, "box")}

    def _lookup_dependency(self, name, cached_dependencies=None):
        return object.__getattribute__(self, "box") if name == "box" else None


def test_classes_may_make_what_they_are_asked_for(tmp_path):
    first = Asking()
    first.box.x = Text()
    first.box.x.text = "kept"
    path = tf.train.Checkpoint(a=first).save(tmp_path / "c")
    second = Asking()
    tf.train.Checkpoint(a=second).restore(path)
    assert second.x.text == "kept"
    with pytest.raises(AttributeError):
        _ = second.y


def test_changes_of_lists_of_plain_values_reach_the_list_that_was_wrapped():
    plain = [3, 1, 2]
    module = tf.Module()
    module.values = plain
    module.values.insert(1, 9)
    module.values[0] = 7
    module.values[2:3] = [4, 5]
    assert module.values.pop() == 2
    module.values.remove(9)
    del module.values[0]
    assert module.values == plain == [4, 5]
    module.values.sort(key=lambda x: -x)
    assert module.values == plain == [5, 4]
    with pytest.raises(IndexError):
        module.values.pop(9)
    assert module.values == plain == [5, 4]
    plain.append(6)  # behind the wrapper's back, whose own say counts again
    module.values.reverse()
    assert module.values == plain == [4, 5]
    module.values.insert(0, tf.Variable(1.0))
    assert [x is y for x, y in zip(module.values, plain)] == [True] * 3
    assert len(module.trainable_variables) == 1
    module.values.pop(0)
    assert module.trainable_variables == ()
