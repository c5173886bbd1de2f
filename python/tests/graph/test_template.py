"""tf.compat.v1.make_template."""

import headrace as tf
import pytest

v1 = tf.compat.v1


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
        assert other.variable_scope_name == "scale_1" and other.name == "scale"
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


def test_later_calls_make_no_variables():
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


def test_eagerly():
    template = v1.make_template("scale", scale, start=2.0)
    assert float(template(3.0)) == 6.0
    (w,) = template.trainable_variables
    w.assign(5.0)
    assert float(template(3.0)) == 15.0 and len(template.variables) == 1
