"""tf.compat.v1.make_template: calls that share variables."""

from unittest import mock

import pytest

import headrace as tf

v1 = tf.compat.v1


def scaled(x, n=1):
    return x * v1.get_variable("w", initializer=2.0) * n


def names(variables):
    return [v.name for v in variables]


def test_calls_share_variables_in_a_graph():
    with tf.Graph().as_default(), v1.Session() as session:
        first = v1.make_template("t", scaled, n=3)
        second = v1.make_template("t", scaled)
        exact = v1.make_template("z", scaled, unique_name_="exact")
        early = v1.make_template("c", scaled, create_scope_now_=True)
        assert first.variable_scope_name is None
        assert early.variable_scope_name == "c/" and first.variables == []
        made = [first(1.0), first(2.0), second(1.0), exact(1.0)]
        assert [x.name for x in made] == [
            "t/mul_1:0",
            "t_1/mul_1:0",
            "t_2/mul_1:0",
            "exact/mul_1:0",
        ]
        assert second.variable_scope_name == "t_1/" and second.name == "t"
        assert names(v1.global_variables()) == ["t/w:0", "t_1/w:0", "exact/w:0"]
        assert names(first.variables) == names(first.trainable_variables) == ["t/w:0"]
        assert first.non_trainable_variables == []
        session.run(v1.global_variables_initializer())
        assert session.run(made) == [6.0, 12.0, 2.0, 2.0]


def test_templates_lie_in_the_scope_around_them():
    def renamed(getter, name, *args, **kwargs):
        return getter(name + "_x", *args, **kwargs)

    with tf.Graph().as_default():
        with v1.variable_scope("outer"):
            inner = v1.make_template("inner", scaled)
            inner(1.0)
        other = v1.make_template("other", scaled, custom_getter_=renamed)
        other(1.0)
        assert names(inner.variables) == ["outer/inner/w:0"]
        assert names(other.variables) == ["other/w_x:0"]


def test_later_calls_make_no_variables():
    count = []

    def more():
        count.append(1)
        return v1.get_variable(f"v{len(count)}", initializer=1.0)

    with tf.Graph().as_default():
        plain = v1.make_template("plain", lambda: v1.Variable(1.0))
        plain()
        with pytest.raises(ValueError, match="Trainable variable created when calling"):
            plain()
        named = v1.make_template("named", more)
        named()
        with pytest.raises(
            ValueError, match="v2 does not exist(.|\n)*originally defin"
        ):
            named()
        v1.make_template("a", scaled, unique_name_="exact")(1.0)
        with pytest.raises(ValueError, match="Variable exact/w already exists"):
            v1.make_template("b", scaled, unique_name_="exact")(1.0)


def test_eager_calls_share_variables_too():
    template = v1.make_template("eager", scaled)
    assert float(template(1.0)) == 2.0
    (variable,) = template.variables
    variable.assign(5.0)
    assert float(template(1.0)) == 5.0
    other = v1.make_template("eager", scaled)
    assert float(other(1.0)) == 2.0 and other.variables[0] is not variable
    with pytest.raises(ValueError, match="unique_name_ cannot be used when eager"):
        v1.make_template("t", scaled, unique_name_="exact")


def _nested():
    first = v1.make_template("one", lambda: v1.get_variable("v", initializer=[1.0]))
    second = v1.make_template("two", lambda: v1.get_variable("v", initializer=[2.0]))
    return (first, second), (first(), second(), second())


def _save_and_restore(tmp_path, session):
    saved = v1.make_template("outer", _nested)
    (one, two), _ = saved()
    for variable, value in ((one.variables[0], 20.0), (two.variables[0], 25.0)):
        assigned = variable.assign([value])
        if session is not None:
            session.run(assigned)
    path = tf.train.Checkpoint(t=saved).save(str(tmp_path / "c"), session=session)
    keys = [k for k, _ in tf.train.list_variables(path) if k.startswith("t/")]
    assert keys == [f"t/{n}/v/.ATTRIBUTES/VARIABLE_VALUE" for n in ("one", "two")]
    loaded = v1.make_template("again", _nested)
    status = tf.train.Checkpoint(t=loaded).restore(path)
    (one, two), variables = loaded()
    assert dict(loaded._trackable_children()) == {"one": one, "two": two}
    status.assert_consumed().run_restore_ops(session)
    return variables


def test_templates_in_templates_are_saved_and_restored(tmp_path):
    variables = _save_and_restore(tmp_path, None)
    assert [v.numpy().tolist() for v in variables] == [[20.0], [25.0], [25.0]]
    with tf.Graph().as_default(), v1.Session() as session:
        variables = _save_and_restore(tmp_path, session)
        assert [session.run(v).tolist() for v in variables] == [[20.0], [25.0], [25.0]]


def scale(x, start=1.0):
    return x * v1.get_variable("w", initializer=start)


def test_variables_are_made_once():
    with tf.Graph().as_default(), v1.Session() as session:
        template = v1.make_template("scale", scale, start=3.0)
        assert template.variables == [] and template.variable_scope is None
        a, b = template(2.0), template(5.0)
        other = v1.make_template("scale", scale)
        c = other(2.0)
        names = [v.name for v in v1.global_variables()]
        assert names == ["scale/w:0", "scale_1/w:0"]
        assert [v.name for v in template.trainable_variables] == ["scale/w:0"]
        assert other.variable_scope_name == "scale_1/" and other.name == "scale"
        session.run(v1.global_variables_initializer())
        assert session.run([a, b, c]) == [6.0, 15.0, 2.0]


def test_where_the_scope_is():
    with tf.Graph().as_default():
        now = v1.make_template("now", scale, create_scope_now_=True)
        later = v1.make_template("later", scale)
        fixed = v1.make_template("fixed", scale, unique_name_="name")
        with v1.variable_scope("outer"):
            for template in (now, later, fixed):
                template(1.0)
        names = [v.name for v in v1.global_variables()]
        assert names == ["now/w:0", "outer/later/w:0", "outer/name/w:0"]


def test_a_later_call_finds_no_variable():
    calls = []

    def grow(x):
        calls.append(x)
        return v1.get_variable(f"v{len(calls)}", initializer=x)

    with tf.Graph().as_default():
        template = v1.make_template("grow", grow)
        template(1.0)
        with pytest.raises(ValueError, match="grow/v2 does not exist"):
            template(1.0)
        nothing = v1.make_template("nothing", lambda x: x)
        assert [nothing(1), nothing(2)] == [1, 2]


def test_eager_templates_begin_as_told():
    template = v1.make_template("scale", scale, start=2.0)
    assert float(template(3.0)) == 6.0
    (w,) = template.trainable_variables
    w.assign(5.0)
    assert float(template(3.0)) == 15.0 and len(template.variables) == 1


def test_eagerly_scopes_find_no_variables_outside_of_templates():
    for reuse in (True, None, v1.AUTO_REUSE):
        with v1.variable_scope("kept", reuse=reuse) as scope:
            assert scope.reuse is v1.AUTO_REUSE
            first = v1.get_variable("x", initializer=1.0)
            assert first.name == "kept/x:0"
            assert v1.get_variable("x", initializer=1.0) is not first
            scope.reuse_variables()
            assert scope.reuse is True
            assert v1.get_variable("x", initializer=1.0) is not first

    @tf.function
    def within():
        with v1.variable_scope("kept", reuse=True):
            return v1.get_variable("x", initializer=1.0)

    with pytest.raises(ValueError, match="Variable kept/x does not exist"):
        within()


def test_mock_is_pythons():
    assert tf.compat.v1.test.mock is mock
    assert not hasattr(tf.test, "mock")
