"""What converted functions look like, and that they are the user's in all else."""

import inspect
import threading
import traceback

import headrace as tf
import pytest


def both(f, *args):
    """What f gives as it is and converted, with plain Python values."""
    expected = f(*args)
    assert tf.autograph.to_graph(f)(*args) == expected
    return expected


def test_jumps_keep_their_meaning():
    def f(n):
        seen = []
        for i in range(n):
            for j in range(n):
                if j == i:
                    continue
                if j == 3:
                    break
                try:
                    if i * j == 2:
                        return seen + ["early"]
                finally:
                    seen.append((i, j))
            else_taken = i
            while True:
                else_taken += 1
                if else_taken > i + 2:
                    break
        return seen

    for n in range(5):
        both(f, n)


def test_else_of_try_runs_only_behind_its_body():
    def f(x):
        log = []
        for i in range(3):
            try:
                if i == x:
                    continue
            except ValueError:
                log.append("no")
            else:
                log.append(i)
            finally:
                log.append("end")
        return log

    assert both(f, 1) == [0, "end", "end", 2, "end"]


def test_a_value_that_raises_returns_nothing():
    def f(x):
        try:
            return 1 // x
        except ZeroDivisionError:
            pass
        return "behind"

    assert both(f, 0) == "behind"
    assert both(f, 1) == 1


def test_variables_of_a_try_may_stay_undefined():
    def f(x):
        try:
            y = 1 // x
        except ZeroDivisionError:
            pass
        if x == 0:
            y = 5
        return y

    assert both(f, 0) == 5
    assert both(f, 1) == 1


def test_reading_an_undefined_variable_is_python_s_error():
    def f(x):
        if x:
            y = 1
        return y

    g = tf.autograph.to_graph(f)
    assert g(True) == 1
    with pytest.raises(UnboundLocalError, match="'y' is used before assignment"):
        g(False)


counter = 0


def test_globals_nonlocals_and_closures():
    total = 1

    def f(x):
        global counter
        nonlocal total
        if x > 1:
            counter = x
            total += x
        add = lambda v, k=total: v + k + total
        total = 10
        return add(x)

    g = tf.autograph.to_graph(f)
    assert g(3) == 3 + 4 + 10
    assert (counter, total) == (3, 10)


def test_nested_functions_that_rebind():
    def f(n):
        count = 0

        def step():
            nonlocal count
            count += 1
            return count < n

        while step():
            pass
        return count

    assert both(f, 4) == 4
    traced = tf.function(f)
    assert traced(4).numpy() == 4


def test_signature_defaults_and_keywords():
    def f(a, /, b, *rest, c=[3], **more):
        if a:
            return b, rest, c, more
        return None

    g = tf.autograph.to_graph(f)
    assert g(1, 2) == (2, (), [3], {})
    assert g(1, 2, 4, c=5, d=6) == (2, (4,), 5, {"d": 6})
    assert g(0, 1) is None
    assert inspect.signature(g) == inspect.signature(f)


class Base:
    def value(self, x):
        return x + 1


class Derived(Base):
    def value(self, x):
        for _ in range(2):
            if x > 0:
                x = super().value(x)
        return [super(Derived, self).value(x) for _ in (1,)][0]

    def __private(self, x):
        return x * 2 if x else -1

    def mangled(self, x):
        return self.__private(x)


def test_methods_super_and_private_names():
    d = Derived()
    assert tf.autograph.to_graph(Derived.value)(d, 1) == d.value(1) == 4
    assert tf.autograph.to_graph(Derived.mangled)(d, 3) == 6
    assert tf.function(d.value)(tf.constant(1)).numpy() == 4


def test_lambdas_on_one_line_are_told_apart():
    a, b = (lambda x: x if x else 2), (lambda x: x if x else 3)
    assert (tf.autograph.to_graph(a)(0), tf.autograph.to_graph(b)(0)) == (2, 3)
    nested = lambda: lambda x: x and 5
    assert tf.autograph.to_graph(nested())(1) == 5


def test_walrus_and_chains():
    def f(x):
        calls = []

        def mid():
            calls.append(1)
            return 5

        inside = 1 < mid() < 10 < 20
        if (n := x + 1) > 2 and n < 10:
            return n, inside, calls
        return -n, inside, calls

    assert both(f, 3) == (4, True, [1])
    assert both(f, 30) == (-31, True, [1])


def test_comprehensions_and_match():
    def f(x):
        squares = {k: v * v for k, v in enumerate(x) if v}
        match squares:
            case {0: first, **rest}:
                if rest:
                    kind = "more"
                else:
                    kind = first
            case _:
                kind = "none"
        return kind, [s for s in squares.values() if not s == 4]

    for x in ([1, 2], [3], [0, 1]):
        both(f, x)


def test_delete_and_with():
    class Manager:
        def __enter__(self):
            return "in"

        def __exit__(self, *error):
            return True

    def f(x):
        z = 3
        with Manager() as m:
            if x:
                raise ValueError(m)
            z = m
        y = z
        del z
        if not x:
            z = 1
        return y, z

    assert both(f, 0) == ("in", 1)
    with pytest.raises(UnboundLocalError):
        tf.autograph.to_graph(f)(1)


def test_errors_show_the_user_s_lines():
    def helper(y):
        for _ in tf.range(3):
            y = y + tf.matmul(y, tf.ones([3, 3]))  # here
        return y

    @tf.function
    def f(x):
        if x > 0:
            x = helper(x)
        return x

    with pytest.raises(ValueError) as e:
        f(tf.constant(1.0))
    text = str(e.value)
    lines, first = inspect.getsourcelines(helper)
    assert f"line {first + 2}, in helper  *\n        y = y + tf.matmul" in text
    assert "in f  *\n        x = helper(x)" in text
    assert "headrace/autograph" not in text


def test_frames_are_named_and_placed_like_the_function():
    def f(x):
        for i in range(3):
            if i == x:
                raise KeyError(i)

    try:
        tf.autograph.to_graph(f)(2)
    except KeyError as e:
        frames = traceback.extract_tb(e.__traceback__)
    mine = [fr for fr in frames if fr.filename == __file__ and fr.name == "tf__f"]
    assert mine[-1].line == "raise KeyError(i)"


def test_what_is_not_converted_runs_with_one_warning(caplog):
    def f(x):
        for _ in range(2):
            x += 1
        else:
            x += 2
        return x

    def g(x):
        return f(x) + f(x)

    assert tf.function(g)(tf.constant(1)).numpy() == 10
    told = [r.message for r in caplog.records if "could not transform" in r.message]
    assert len(told) == 1
    assert "for/else statement not yet supported" in told[0]


def test_truth_of_a_tensor_in_unconverted_code_names_the_reason():
    def f(x):
        for _ in range(2):
            if x > 0:
                x = x + 1
        else:
            x = x + 2
        return x

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError) as e:
        tf.function(f)(tf.constant(1))
    first = inspect.getsourcelines(f)[1]
    assert f"line {first + 2}, in f ran as it is: for/else" in str(e.value)


def test_do_not_convert():
    @tf.autograph.experimental.do_not_convert
    def f(x):
        return g(x)

    def g(x):
        return x if x > 0 else -x

    assert tf.function(lambda x: g(x))(tf.constant(-1)).numpy() == 1
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(lambda x: f(x))(tf.constant(-1))
    assert f(tf.constant(-1)).numpy() == 1
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(g, autograph=False)(tf.constant(-1))


def test_constructors_generators_and_libraries_run_as_they_are():
    class Counter:
        def __init__(self, x):
            self.calls = [x]

        def __call__(self, x):
            if x > 0:
                return x * 2
            return x

    def numbers(n):
        for i in range(n):
            yield i

    @tf.function
    def f(x):
        total = x
        for i in numbers(3):
            total += i
        return Counter(1)(total)

    assert f(tf.constant(1)).numpy() == 8


def test_set_loop_options():
    @tf.function
    def f(x):
        while tf.reduce_sum(x) < 100.0:
            tf.autograph.experimental.set_loop_options(
                maximum_iterations=2, shape_invariants=[(x, tf.TensorShape([None]))]
            )
            x = tf.concat([x, x], 0)
        return x

    assert f(tf.constant([1.0])).numpy().tolist() == [1.0] * 4

    def outside(x):
        tf.autograph.experimental.set_loop_options(maximum_iterations=2)
        return x

    with pytest.raises(Exception, match="must be used inside a statement"):
        tf.autograph.to_graph(outside)


def test_threads_convert_one_function():
    def f(x):
        total = 0
        for i in tf.range(x):
            if i % 2 == 0:
                continue
            total += i
        return total

    results = []

    def run():
        results.append(int(tf.function(f)(tf.constant(10))))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [25] * 8


def test_frame_functions_see_the_function_s_variables():
    def f(x):
        y = x + 1
        if x:
            return sorted(k for k in locals() if k in "xy"), eval("y * 2"), globals()
        return None

    names, doubled, names_of_module = tf.autograph.to_graph(f)(2)
    assert names == ["x", "y"]
    assert doubled == 6
    assert names_of_module is globals()


def test_a_jump_out_of_finally_forgets_what_was_raised():
    def f(x):
        for i in range(3):
            try:
                if i == x:
                    raise ValueError(i)
                if x == 5:
                    return "in try"
            finally:
                if i == 1:
                    continue
                if x > 1:
                    return i  # noqa: B012

    assert both(f, 1) is None
    assert both(f, 2) == 0
    assert both(f, 5) == 0
    with pytest.raises(ValueError):
        tf.autograph.to_graph(f)(0)


def test_what_functions_use_counts_where_they_may_be_called():
    def inline(x, n):
        if n > 2:
            s = x * 2.0
            return (lambda t: t * 0.5 - s)(x)
        return x

    def kept(x, n):
        scale = 1.0

        def f(t):
            return t * scale

        fs = [f]
        if n > 2:
            scale = 3.0
        return fs[0](x)

    for n, (a, b) in ((3, (-1.5, 3.0)), (1, (1.0, 1.0))):
        n = tf.constant(n)
        assert tf.function(inline)(tf.constant(1.0), n).numpy() == a
        assert tf.function(kept)(tf.constant(1.0), n).numpy() == b


def test_names_of_a_try_and_annotations():
    def f(x, n):
        try:
            if n > 2:
                a = x
            else:
                a = -x
            a = a * 2.0
        except ValueError:
            raise
        if n > 1:
            a: tf.Tensor = a + 1.0
        return x + a

    assert tf.function(f)(tf.constant(1.0), tf.constant(3)).numpy() == 4.0

    def g(x, n):
        try:
            if n > 2:
                a = x
            else:
                a = -x
            a = a * 2.0
        except ValueError:
            raise
        return x

    assert tf.function(g)(tf.constant(1.0), tf.constant(3)).numpy() == 1.0
