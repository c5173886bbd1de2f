"""tf.keras.optimizers: the interface since Keras 2.11."""

import numpy as np

from headrace import _api as tf
from headrace.context import stack, strategies
from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.framework.trackable import node_of
from headrace.keras import initializer as initializers
from headrace.keras import settings
from headrace.keras.classes import add_classes
from headrace.keras.optimizer import nadam, newer, rules  # noqa: F401 (in the table)
from headrace.keras.optimizer.base import BaseOptimizer, serialized, sum_of_replicas
from headrace.keras.optimizer.schedule import LearningRateSchedule

_PARAMETERS = signatures.from_text(
    "weight_decay=None, clipnorm=None, clipvalue=None, global_clipnorm=None, "
    "use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, jit_compile=True"
)
# In the order of configurations.
_COMMON = ("weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema")
_COMMON += ("ema_momentum", "ema_overwrite_frequency", "jit_compile")
_DEFAULTS = {p.name: p.default for p in _PARAMETERS}


def _deprecated(name, argument, value):
    """What older optimizers took."""
    if argument == "decay":
        raise ValueError(
            "decay is deprecated in the new TF-Keras optimizer, please check the "
            "docstring for valid arguments, or use the legacy optimizer, e.g., "
            f"tf.keras.optimizers.legacy.{name}."
        )
    logging.warn(
        "`lr` is deprecated in TF-Keras optimizer, please use `learning_rate` or use "
        f"the legacy optimizer, e.g.,tf.keras.optimizers.legacy.{name}."
    )
    return {"learning_rate": value}


class Optimizer(BaseOptimizer):
    """Base of the optimizers of tf.keras.optimizers, those of `experimental` too.

    What a program derives from it has no older interface whose slots a file could
    hold, so its checkpoints have lists.
    """

    _keras_module = "keras.optimizers"
    _config_names = ()
    _config_plain = ()
    _defaults = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if Optimizer in cls.__bases__ and not cls.__module__.startswith("headrace."):
            cls._writes_lists = True

    def _set_up(self, name, learning_rate, hypers, common):
        common = {**_DEFAULTS, **self._defaults, **common}
        for old in ("decay", "lr"):
            if old in common:
                common.update(_deprecated(name, old, common.pop(old)))
        unknown = [k for k in common if k not in _COMMON and k != "learning_rate"]
        if unknown:
            raise TypeError(
                f"{', '.join(unknown)} is not a valid argument, kwargs should be empty "
                " for `optimizer_experimental.Optimizer`."
            )
        learning_rate = common.pop("learning_rate", learning_rate)
        if isinstance(learning_rate, str):
            raise TypeError(f"Cannot convert {learning_rate!r} to a learning rate")
        limits = {k: common[k] for k in ("clipnorm", "clipvalue", "global_clipnorm")}
        BaseOptimizer.__init__(
            self, name, learning_rate, hypers, limits, common["weight_decay"]
        )
        self.jit_compile = False  # as upstream's where there is no GPU
        self.use_ema = common["use_ema"]
        self.ema_momentum = common["ema_momentum"]
        self.ema_overwrite_frequency = common["ema_overwrite_frequency"]
        if self.use_ema:
            self._check_ema()
        if self._in_ring:  # as TensorFlow's, of which others may be, make them
            self._make_hypers()

    def _check_ema(self):
        if not 0 <= self.ema_momentum <= 1:
            raise ValueError(
                "`ema_momentum` must be in the range [0, 1]. Received: "
                f"ema_momentum={self.ema_momentum}"
            )
        often = self.ema_overwrite_frequency
        if often and (not isinstance(often, int) or often < 1):
            raise ValueError(
                "`ema_overwrite_frequency` must be an integer > 1 or None. Received: "
                f"ema_overwrite_frequency={often}"
            )

    def _value(self, name, dtype):
        """A hyper-parameter as a tensor, in float64 as exact as it was given, which its
        variable of 32 bits is not."""
        if dtype != tf.float64:
            return super()._value(name, dtype)
        return self._as_given(name, dtype, lambda value: value)

    def _as_given(self, name, dtype, function):
        """function(a hyper-parameter), of the number that was given if it is that yet."""
        found, given = BaseOptimizer._value(self, name, dtype), self._hypers[name]
        if not isinstance(given, (int, float)):
            return function(found)
        kept = tf.cast(tf.constant(given, tf.float32), dtype)
        exact = tf.constant(function(given), dtype)
        return tf.where(found == kept, exact, function(found))

    # --- the learning rate of a schedule ---

    def _hyper_now(self, name):
        found = super()._hyper_now(name)
        if isinstance(found, LearningRateSchedule):
            step = tf.maximum(self.iterations._read() - 1, 0)
            with tf.init_scope(), strategies.as_each_has_it():
                return tf.Variable(
                    found(step), trainable=False, name="current_learning_rate"
                )
        return found

    def _make_hypers(self):
        super()._make_hypers()
        node, name = node_of(self), "_current_learning_rate"
        if self._schedule is None or name in self.__dict__:
            return
        if self._writes_lists or node.awaits(name) or self._in_ring:
            # A file of TensorFlow's has it; the schedule and the step say it here.
            variable = self._new_variable(0.0, name[1:], tf.float32)
            node_of(variable).set_optional()
            self._current_learning_rate = variable
            if not self._writes_lists:
                node.unsave(name)

    def _set_hyper(self, name, value):
        if isinstance(self._hypers[name], LearningRateSchedule) and not isinstance(
            value, LearningRateSchedule
        ):
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` object as "
                "its `learning_rate` constructor argument, hence its learning rate is "
                "not settable. If you need the learning rate to be settable, you "
                "should instantiate the optimizer with a float `learning_rate` "
                "argument."
            )
        super()._set_hyper(name, value)

    def _after(self, known):
        super()._after(known)
        if self._writes_lists and self._schedule is not None and known:
            rate = next(iter(known.values()))["lr"]
            self._current_learning_rate.assign(
                tf.cast(rate, tf.float32), read_value=False
            )

    # --- averages of the variables ---

    def _all_slot_names(self):
        return ((("average",),) if self.use_ema else ()) + tuple(self._slot_names())

    def _average(self, variables, then=lambda: None):
        """Moves the averages on; every so often variables become them. `then` comes
        between the two."""
        for variable in variables:
            average = self._slots[variable._key]["average"]
            kept = tf.cast(self.ema_momentum, variable.dtype)
            average.assign(
                kept * average._read() + (1.0 - kept) * variable._read(),
                read_value=False,
            )
        often = self.ema_overwrite_frequency
        if often:
            then()
            due = tf.equal((self.iterations._read() + 1) % often, 0)
            if stack.plain_graph() is not None:
                self._overwrite(variables, due)
            else:
                tf.cond(due, lambda: self._overwrite(variables), lambda: None)

    def _overwrite(self, variables, due=None):
        """Variables become their averages, where `due` is a tensor if it is true."""
        for variable in variables:
            value = self._slots[variable._key]["average"]._read()
            if due is not None:
                value = tf.where(due, value, variable._read())
            variable.assign(value, read_value=False)

    def finalize_variable_values(self, var_list):
        """At the end of training: variables become their averages, if there are
        any. In a graph Keras' session does it."""
        if not self.use_ema:
            return
        if stack.plain_graph() is None:
            self._overwrite(var_list)
            return
        averages = [self._slots[v._key]["average"] for v in var_list]
        values = settings.batch_get_value(averages)
        settings.batch_set_value(list(zip(var_list, values)))

    def aggregate_gradients(self, grads_and_vars):
        """A list of (gradient, variable), in a replica with the sums over all of them."""
        pairs = list(grads_and_vars)
        return list(zip(sum_of_replicas([g for g, _ in pairs]), [v for _, v in pairs]))

    # --- in files of models ---

    def save_own_variables(self, store):
        """Puts all variables but the learning rate as arrays into a dict or HDF5 group,
        under "0", "1", ...: steps taken, then slots."""
        values = settings.batch_get_value(self.variables) or [np.int64(0)]
        for i, value in enumerate(values):
            store[str(i)] = value

    def load_own_variables(self, store):
        """Assigns what save_own_variables() put into a store, also Keras 3's, which has
        the learning rate, too; leaves all as it is, with a warning, where the store is of
        another optimizer or no step has been taken here."""
        settings.batch_set_value(self._found_in(store))

    def _found_in(self, store):
        """(variable, value) of what a store has for this optimizer."""
        saved = [np.asarray(store[str(i)]) for i in range(len(store.keys()))]
        mine = list(self.variables)
        rate = self.learning_rate
        layouts = [mine]
        if mine and isinstance(rate, tf.Variable):
            layouts.append([mine[0], rate, *mine[1:]])  # Keras 3's
        for variables in layouts:
            if [tuple(v.shape.as_list()) for v in variables] == [
                x.shape for x in saved
            ]:
                return list(zip(variables, saved))
        logging.warn(
            "Skipping variable loading for optimizer '%s', because it has %d variables "
            "whereas the saved optimizer has %d variables. ",
            self.name,
            len(mine),
            len(saved),
        )
        return []

    def __init__(self, name, weight_decay=0, **kwargs):
        self._set_up(name, 0.0, {}, {"weight_decay": weight_decay, **kwargs})

    # --- for subclasses of users ---

    def update_step(self, gradient, variable):
        """Updates one variable by its gradient, a tensor or tf.IndexedSlices: as the
        class's rule says. Subclasses may define it."""
        known = self._coefficients(variable.dtype)
        BaseOptimizer._step(self, gradient, variable, known)

    def _step(self, gradient, variable, known):
        if type(self).update_step is Optimizer.update_step:
            super()._step(gradient, variable, known)
        else:
            self.update_step(gradient, variable)

    def build(self, var_list):
        """Makes what is missing for these variables, which _index_dict numbers."""
        super().build(var_list)
        places = {self._var_key(v): i for i, v in enumerate(var_list)}
        object.__setattr__(self, "_index_dict", places)

    @staticmethod
    def _var_key(variable):
        """What tells variables apart, in _index_dict."""
        return variable._key

    def _build_learning_rate(self, learning_rate):
        """Makes a number the learning rate: its variable; a schedule is one itself."""
        self._hyper_variables.pop("learning_rate", None)
        self._hypers["learning_rate"] = learning_rate
        return self._learning_rate

    @property
    def _learning_rate(self):
        found = self._hypers["learning_rate"]
        return found if callable(found) else self._hyper_variable("learning_rate")

    @_learning_rate.setter
    def _learning_rate(self, value):
        known = (
            self._hyper_variables.get("learning_rate"),
            self._hypers["learning_rate"],
        )
        if not any(value is k for k in known):
            self._build_learning_rate(value)

    def add_variable_from_reference(
        self, model_variable, variable_name, shape=None, initial_value=None
    ):
        """A new variable for a slot of `model_variable`: zeros of its shape, or of
        `shape`, unless there is an initial value or a function that gives one.
        """
        if initial_value is not None:
            with tf.init_scope():
                first = initial_value() if callable(initial_value) else initial_value
                initial_value = tf.convert_to_tensor(first, model_variable.dtype)
        return self.add_slot(model_variable, variable_name, initial_value, shape)

    def add_variable(self, shape, dtype=None, initializer="zeros", name=None):
        """A new variable of the optimizer, which belongs to none of the model's."""
        make = initializers.get(initializer)
        with tf.init_scope():
            value = make(shape, dtype=dtype or tf.float32)
        name = name and f"{self._scope}{name}"
        variable = self._new_variable(value, name, dtype)
        self._make_hypers()
        self._variables.append(variable)
        return variable

    @staticmethod
    def _serialize_hyperparameter(hyperparameter):
        """A number, a variable's value, or the configuration of a schedule."""
        return serialized(hyperparameter)

    # --- configuration ---

    def _number(self, name):
        """A hyper-parameter as it was given, or what it was changed to since."""
        given = self._hypers[name]
        variable = self._hyper_variables.get(name)
        if variable is None:
            return float(given() if callable(given) else given)
        now = np.asarray(settings.get_value(variable))
        return float(given if now.dtype.type(given) == now else now)

    def get_config(self):
        """The arguments as a dict, for from_config(); numbers that were changed, as
        they are.
        """
        return {
            "name": self._name,
            **{n: getattr(self, n) for n in _COMMON},
            "is_legacy_optimizer": False,
            "learning_rate": self._serialized("learning_rate"),
            **{n: self._number(n) for n in self._config_names},
            **{n: getattr(self, n) for n in self._config_plain},
        }


class SGD(rules.SGDRule, Optimizer):
    """Steps against the gradient, with momentum if wanted."""

    _config_plain = ("momentum", "nesterov")

    def __init__(
        self, learning_rate=0.01, momentum=0.0, nesterov=False, name="SGD", **kwargs
    ):
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self._set_up(name, learning_rate, {}, kwargs)
        self.momentum, self._momentum = momentum, bool(momentum)
        self.nesterov = nesterov

    def _value(self, name, dtype):
        if name == "momentum":
            return tf.constant(self.momentum, dtype)
        return super()._value(name, dtype)


class Adam(rules.AdamRule, Optimizer):
    """Steps by running means of the gradient and its square; with `adaptive_epsilon`
    epsilon is that of the paper's first algorithm, which grows with the steps."""

    __init__ = rules.takes(
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, "
        "adaptive_epsilon=False, amsgrad=False, name='Adam'"
    )

    def _set_up(self, name, learning_rate, hypers, common):
        adaptive = common.pop("adaptive_epsilon", False)
        super()._set_up(name, learning_rate, hypers, common)
        self.adaptive_epsilon = adaptive

    def _coefficients(self, dtype):
        known = super()._coefficients(dtype)
        if self.adaptive_epsilon:
            known["epsilon"] *= tf.sqrt(1.0 - known["beta2_power"])
        return known

    def _update(self, gradient, variable, slots, known):
        if variable.dtype.size > 2:
            super()._update(gradient, variable, slots, known)
            return
        # Each step is rounded to 16 bits, as upstream's are.
        m, v = slots["m"], slots["v"]
        left = [
            self._as_given(name, variable.dtype, lambda beta: 1.0 - beta)
            for name in ("beta_1", "beta_2")
        ]
        m.assign_add((gradient - m) * left[0], read_value=False)
        v.assign_add((gradient * gradient - v) * left[1], read_value=False)
        mean = v._read()
        if self.amsgrad:
            slots["vhat"].assign(
                tf.maximum(slots["vhat"]._read(), mean), read_value=False
            )
            mean = slots["vhat"]._read()
        rate = known["lr"] * tf.sqrt(1.0 - known["beta2_power"])
        rate /= 1.0 - known["beta1_power"]
        step = m._read() * rate / (tf.sqrt(mean) + known["epsilon"])
        variable.assign_sub(step, read_value=False)


class AdamW(Adam):
    """Adam with weights that decay by themselves."""

    __init__ = rules.takes(
        "learning_rate=0.001, weight_decay=0.004, beta_1=0.9, beta_2=0.999, "
        "epsilon=1e-7, amsgrad=False, name='AdamW'"
    )

    def _set_up(self, name, learning_rate, hypers, common):
        super()._set_up(name, learning_rate, hypers, common)
        if common["weight_decay"] is None:
            raise ValueError("Missing value of `weight_decay` which is required.")


add_classes(
    globals(),
    """
RMSprop(rules.RMSpropRule, Optimizer, _defaults={"ema_overwrite_frequency": 100})
    Gradients over the root of the running mean of their squares.
Adagrad(rules.AdagradRule, Optimizer)
    Gradients over the root of the sum of their squares.
Ftrl(rules.FtrlRule, Optimizer)
    Follow the regularized leader: weights that stay zero unless they help.
Adadelta(rules.AdadeltaRule, Optimizer)
    RMSprop whose rate comes from the running mean of the steps.
Adamax(rules.AdamaxRule, Optimizer)
    Adam with the largest gradient in place of the mean square.
Nadam(nadam.NadamRule, Optimizer)
    Adam with Nesterov's momentum.
Lion(newer.LionRule, Optimizer)
    Steps by the sign of a running mean of the gradient.
Adafactor(newer.AdafactorRule, Optimizer)
    Adam with little memory: of a matrix's squares the means of rows and columns.
""",
)

NAMES = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Ftrl", "Adadelta", "Adamax")
NAMES += ("Nadam", "Lion", "Adafactor")


def _spell_out(cls):
    """Gives the constructor of a class what all optimizers take, by name."""
    init, own = cls.__init__, signatures.parameters_of(cls.__init__)
    names = [p.name for p in own]
    place = names.index("name" if cls is not Optimizer else "kwargs")
    own[place:place] = [
        p.replace(default=cls._defaults.get(p.name, p.default))
        for p in _PARAMETERS
        if p.name not in names
    ]
    cls.__init__ = signatures.function_of(init, own, init)
    cls.__init__.__qualname__ = f"{cls.__name__}.__init__"


for _cls in (Optimizer, *map(globals().get, NAMES)):
    _spell_out(_cls)
