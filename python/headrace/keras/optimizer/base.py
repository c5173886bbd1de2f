"""What optimizers share: hyper-parameters, slots, gradients applied in order.

Checkpoints know an optimizer by its hyper-parameters (`iter`, `learning_rate`,
`beta_1`, …) and by a slot for each variable
(`kernel/.OPTIMIZER_SLOT/optimizer/m`). Edges named `_iterations`,
`_learning_rate` and `_variables` lead to the same values, so that files of
tf-keras' optimizers since 2.11 are read too. These refuse files that have slots,
which TensorFlow restores into tf.keras.optimizers.legacy: ours in
tf.keras.optimizers.experimental write the lists that they read instead.
"""

import contextlib
import re

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import strategies
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.framework.trackable import AutoTrackable, node_of
from headrace.keras import initializer as initializers
from headrace.keras import serialization, settings
from headrace.keras.base import graph_updates
from headrace.keras.base.tracking import attach_new, start_restored
from headrace.keras.optimizer import schedule
from headrace.keras.optimizer.schedule import LearningRateSchedule


class _CallableList(list):
    """opt.variables and opt.variables() are the same."""

    def __call__(self):
        return self


class BaseOptimizer(AutoTrackable):
    """An optimizer: subclasses name their slots and update one variable.

    Attributes of subclasses:
      _slot_groups: tuples of slot names; slots are made group by group.
      _slot_labels: what the names of slots' variables say instead of a slot's.
      _slot_lists: attributes that list the variables of a slot, as in files of
        newer optimizers.
      _writes_lists: whether checkpoints get these lists in place of slots.
    """

    _saved_identifier = "tf_deprecated_optimizer"
    _slot_groups = ()
    _slot_labels = {}
    _slot_lists = {}
    _scope = ""  # what names of new variables begin with
    _is_legacy = False
    _counts_itself = True  # whether the step count is a variable of its own
    _writes_lists = False

    def __init__(self, name, learning_rate, hypers, limits, weight_decay=None):
        for key, value in (
            ("_name", name),
            ("_hypers", {"learning_rate": learning_rate, "decay": 0.0, **hypers}),
            ("_hyper_variables", {}),
            ("_slots", {}),
            ("_built_for", set()),
            ("_decay_excluded", ([], set())),
            ("_made_under", strategies.strategy()),
        ):
            object.__setattr__(self, key, value)
        self.clipnorm, self.clipvalue = limits.get("clipnorm"), limits.get("clipvalue")
        self.global_clipnorm = limits.get("global_clipnorm")
        self.weight_decay = weight_decay
        if self.clipnorm is not None and self.global_clipnorm is not None:
            raise ValueError(
                "At most one of `clipnorm` and `global_clipnorm` can be set. Received: "
                f"clipnorm={self.clipnorm}, global_clipnorm={self.global_clipnorm}."
            )

    name = read_only(
        "_name", "The name given to the constructor, else the class's: a str."
    )

    # --- hyper-parameters ---

    def __getattr__(self, name):
        if name == "lr":
            name = "learning_rate"
        hypers = self.__dict__.get("_hypers", {})
        if name in hypers:
            return self._hyper_now(name)
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __setattr__(self, name, value):
        if name == "lr":
            name = "learning_rate"
        if name in self.__dict__.get("_hypers", {}):
            self._set_hyper(name, value)
            return
        super().__setattr__(name, value)

    def _hyper_now(self, name):
        """A variable, or what the user gave that is none: a schedule, a callable."""
        value = self._hypers[name]
        return value if callable(value) else self._hyper_variable(name)

    def _hyper_variable(self, name):
        if name not in self._hyper_variables:
            self._make_step() if name == "iter" else self._make_hypers()
        if name not in self._hyper_variables:  # a subclass keeps it as it is
            return self._hypers[name]
        return self._hyper_variables[name]

    def _set_hyper(self, name, value):
        if name in self._hyper_variables and not callable(value):
            settings.set_value(self._hyper_variables[name], value)
        else:
            self._hyper_variables.pop(name, None)
            self._hypers[name] = value

    @property
    def _in_ring(self):
        """Whether its strategy's workers make variables in TensorFlow's order."""
        return self._made_under is not None and strategies.in_ring(self._made_under)

    def _scope_of_variables(self):
        """The scope that it was made in, unless code is in one."""
        if self._made_under is None or strategies.mode() is not None:
            return contextlib.nullcontext()
        return self._made_under.scope()

    def _new_variable(self, value, name, dtype):
        with tf.init_scope(), self._scope_of_variables():
            made = tf.Variable(value, trainable=False, name=name, dtype=dtype)
            settings.keep(made)
        return made

    def _make_step(self):
        if "iter" not in self._hyper_variables:
            prefix = f"{self._name}/iter" if self._is_legacy else "iteration"
            step = self._new_variable(0, prefix, tf.int64)
            self._attach_step(step)

    def _make_hypers(self):
        """The variables of all that is a number; values of a checkpoint arrive."""
        if not self._is_legacy:
            self._make_step()
        for name in sorted(self._hypers):
            value = self._hypers[name]
            if name in self._hyper_variables or value is None or callable(value):
                continue
            label = name
            if self._is_legacy or name != "learning_rate":
                label = f"{self._name}/{name}"
            # Of newer optimizers TensorFlow's workers have the rate alone as a variable.
            told = self._is_legacy or name == "learning_rate"
            with contextlib.nullcontext() if told else strategies.as_each_has_it():
                dtype = self._hyper_dtype(name, value)
                variable = self._new_variable(value, label, dtype)
            self._hyper_variables[name] = variable
            if not self._is_legacy:
                node_of(variable).set_optional()  # newer optimizers save the rate alone
            listed = "_learning_rate" if name == "learning_rate" else None
            self._attach_hyper(name, variable, listed)

    def _hyper_dtype(self, name, value):
        """The dtype of a hyper-parameter's variable; None for the value's own."""
        return None if hasattr(value, "dtype") else tf.float32

    def _attach_hyper(self, name, variable, listed):
        """Attaches a variable just made, by both its names; `listed` is that beside
        lists, if any."""
        node = node_of(self)
        attach_new(node, name, variable)
        if self._is_legacy:
            return
        if listed:
            node.attach(listed, node_of(variable))
        if self._writes_lists:
            node.unsave(name)

    def _attach_step(self, variable):
        self._hyper_variables["iter"] = variable
        self._attach_hyper("iter", variable, "_iterations")
        if not self._is_legacy:
            self._variables = [variable]
        if self._writes_lists:
            node_of(self).unsave_slots()

    @property
    def _schedule(self):
        """The schedule of the learning rate; None where it has none."""
        rate = self._hypers["learning_rate"]
        return rate if isinstance(rate, LearningRateSchedule) else None

    @property
    def iterations(self):
        """How often gradients were applied: an int64 variable."""
        return self._hyper_variable("iter")

    @iterations.setter
    def iterations(self, variable):
        if "iter" in self._hyper_variables:
            raise RuntimeError(
                "Cannot set `iterations` to a new Variable after the Optimizer weights "
                "have been created."
            )
        if not isinstance(variable, tf.Variable):
            variable = self._new_variable(variable, "iteration", tf.int64)
        self._attach_step(variable)

    def _rate(self, dtype=tf.float32):
        """The learning rate now, as a tensor."""
        if self._schedule is not None:
            rate = self._schedule(self.iterations._read())
        else:
            rate = self._hyper_now("learning_rate")
        if callable(rate) and not isinstance(rate, tf.Variable):
            rate = rate()
        rate = tf.cast(rate, dtype)
        if self._hypers["decay"]:
            step = tf.cast(self.iterations._read(), dtype)
            rate = rate / (1.0 + tf.cast(self._hyper_now("decay"), dtype) * step)
        return rate

    def _value(self, name, dtype):
        """A hyper-parameter as a tensor."""
        value = self._hyper_now(name)
        if callable(value) and not isinstance(value, tf.Variable):
            value = value()
        return tf.cast(value, dtype)

    def _power(self, name, dtype, step):
        """A hyper-parameter, rounded to 32 bits, to the power of a step."""
        return tf.pow(BaseOptimizer._value(self, name, dtype), step)

    # --- slots ---

    def _slot_names(self):
        """Groups of the slots that are needed with these hyper-parameters."""
        return self._slot_groups

    def _all_slot_names(self):
        return self._slot_names()

    def _restores_slots(self):
        """Whether a checkpoint of newer Keras optimizers has slots to give."""
        return not self._is_legacy and node_of(self._variables).awaits("1")

    def _further_variables(self):
        """Variables that are neither hyper-parameters nor slots."""
        return []

    def _initial_slot(self, variable, slot_name):
        return tf.zeros(variable.shape, variable.dtype)

    def build(self, var_list):
        """Makes what is missing for these variables."""
        self._make_step()
        self._make_hypers()
        self._make_slots(var_list)

    def _make_slots(self, var_list):
        new = [v for v in var_list if v._key not in self._built_for]
        for group in self._all_slot_names():
            for variable in new:
                for slot_name in group:
                    self.add_slot(variable, slot_name)
        self._built_for.update(v._key for v in new)

    def add_slot(self, var, slot_name, initializer=None, shape=None):
        """The slot of that name for a variable, made unless it is there."""
        if "iter" not in self._hyper_variables and not self._is_legacy:
            self._make_hypers()
        slots = self._slots.setdefault(var._key, {})
        if slot_name in slots:
            return slots[slot_name]
        label = var._shared_name
        shown = self._slot_labels.get(slot_name, slot_name)
        name = f"{self._scope}{shown}/{label}"
        if self._is_legacy:
            name = f"{self._name}/{label}/{slot_name}"
        with tf.init_scope():
            if slot_name == "average":
                value = var.read_value()
            elif initializer is None:
                value = self._initial_slot(var, slot_name)
                if shape is not None:
                    value = tf.zeros(shape, var.dtype)
            elif isinstance(initializer, str) or callable(initializer):
                make = initializers.get(initializer)
                value = make(var.shape if shape is None else shape, dtype=var.dtype)
            else:
                value = initializer
        with _beside(var):
            slot = self._new_variable(value, name, var.dtype)
        slots[slot_name] = slot
        node_of(self).attach_slot(node_of(var), slot_name, node_of(slot))
        start_restored(slot)
        if not self._is_legacy:
            self._variables.append(slot)
            self._list_slot(slot_name, slot)
        return slot

    def _list_slot(self, slot_name, slot):
        name = self._slot_lists.get(slot_name)
        if slot_name == "average":
            name = "_model_variables_moving_average"
        if name is None:
            return
        if name not in self.__dict__:
            setattr(self, name, [])
        getattr(self, name).append(slot)

    def get_slot(self, var, slot_name):
        """The variable that a slot keeps for `var`; KeyError where there is none."""
        try:
            return self._slots[var._key][slot_name]
        except KeyError:
            raise KeyError(f"no slot {slot_name} for variable {var.name}") from None

    def get_slot_names(self):
        """A list of the names of the slots that each variable gets."""
        return [name for group in self._slot_names() for name in group]

    # --- gradients ---

    def minimize(self, loss, var_list, grad_loss=None, name=None, tape=None):
        """Computes gradients of the loss and applies them. Legacy optimizers give what
        apply_gradients() does, others nothing."""
        if callable(var_list):
            var_list = var_list()
        pairs = self.compute_gradients(loss, var_list, tape, grad_loss)
        applied = self.apply_gradients(pairs, name=name)
        return applied if self._is_legacy else None

    def compute_gradients(self, loss, var_list, tape=None, grad_loss=None):
        """A list of (gradient, variable); the gradient is None where the loss has none.

        `loss` is a function without arguments, or a scalar that `tape` recorded;
        ValueError for a tensor without a tape. `grad_loss` is the gradient of the loss.
        """
        loss, var_list, tape = recorded(loss, var_list, tape)
        gradients = tape.gradient(loss, var_list, grad_loss)
        return list(zip(gradients, var_list))

    def apply_gradients(self, grads_and_vars, name=None, **kwargs):
        """Updates variables by their gradients and counts the step."""
        for key in kwargs:
            if key not in _AGGREGATION:
                raise TypeError(f"apply_gradients: unknown argument {key}")
        pairs = with_gradients(tuple(grads_and_vars))
        if not pairs:  # no variable: that is no step
            return tf.no_op(name=name) if self._is_legacy else self.iterations
        gradients, variables = [g for g, _ in pairs], [v for _, v in pairs]
        mode = strategies.mode()
        if mode is None or mode.is_default:
            owner = getattr(variables[0], "_distribute_strategy", None)
            if owner is not None:  # outside of its scope: all copies change alike
                with owner.scope():
                    return self._apply_to_copies(owner, gradients, variables, name)
            return self._apply_here(gradients, variables, name)
        if mode.copy is not None and mode.replica is None:
            return self._apply_here(gradients, variables, name)
        if mode.replica is None:
            raise RuntimeError(_NOT_IN_SCOPE)
        if aggregates(kwargs):
            gradients = sum_of_replicas(gradients)
        given = (gradients, variables, name)
        return mode.replica.merge_call(self._apply_to_copies, args=given)

    def _combined(self, pairs, sums):
        """The pairs with what is applied of replicas' gradients: their sums, if asked."""
        if not sums:
            return pairs
        gradients = sum_of_replicas([g for g, _ in pairs])
        return [(g, v) for g, (_, v) in zip(gradients, pairs)]

    def _apply_to_copies(self, strategy, gradients, variables, name):
        """Called once for all replicas, with the sums of their gradients."""
        for v in variables:
            strategy.extended._check_own(v)
        self._make_ready(variables)
        return strategy.extended._update_all(
            lambda own: self._apply_here(own, variables, name), gradients
        )

    def _make_ready(self, variables):
        """Makes what is missing for these variables."""
        if not self._built_for.issuperset([v._key for v in variables]):
            object.__setattr__(self, "_scope", f"{self._name}/")
            with tf.init_scope():  # initial values are made there, too
                self.build(variables)
            object.__setattr__(self, "_scope", "")
        elif "iter" not in self._hyper_variables:
            self._make_step()
            self._make_hypers()

    def _apply_here(self, gradients, variables, name):
        self._make_ready(variables)
        gradients = self._limited(gradients)
        if not _headrace.is_eager() and not tf.inside_function():
            return graph_updates.apply(self, gradients, variables, name)
        rates = {}
        for gradient, variable in zip(gradients, variables):
            dtype = variable.dtype
            if dtype not in rates:
                rates[dtype] = self._coefficients(dtype)
            self._apply_one(gradient, variable, rates[dtype], _at_once)
        self._after(rates)
        if self.use_ema:
            self._average(variables)
        for variable in variables:
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable), read_value=False)
        return self.iterations.assign_add(1, name=name)

    def _apply_one(self, gradient, variable, known, then):
        """Updates one variable; `then` comes between steps, each after the last."""
        if self.weight_decay and self._decays(variable):
            step = tf.cast(self.weight_decay, variable.dtype) * known["lr"]
            variable.assign_sub(variable._read() * step, read_value=False)
            then()
        self._step(gradient, variable, known)

    def _step(self, gradient, variable, known):
        """What the rule does to a variable, whose dtype's coefficients are `known`."""
        slots = self._slots.get(variable._key)
        if isinstance(gradient, tf.IndexedSlices):
            self._update_sparse(gradient, variable, slots, known)
        else:
            self._update(gradient, variable, slots, known)

    use_ema = False

    def _after(self, known):
        """What else changes behind the updates, whose coefficients are given by
        dtype."""

    def _limited(self, gradients):
        """The gradients within what clipnorm and the like allow."""
        if self.clipvalue is not None:
            limit = self.clipvalue
            return [
                _map(g, lambda x: tf.clip_by_value(x, -limit, limit)) for g in gradients
            ]
        if self.clipnorm is not None:
            return [
                _map(g, lambda x: tf.clip_by_norm(x, self.clipnorm)) for g in gradients
            ]
        if self.global_clipnorm is not None:
            return tf.clip_by_global_norm(gradients, self.global_clipnorm)[0]
        return gradients

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        """Variables that weight decay leaves alone, themselves or by name."""
        names, ids = self._decay_excluded
        names.extend(var_names or [])
        ids.update(v._key for v in var_list or [])

    def _decays(self, variable):
        names, ids = self._decay_excluded
        if variable._key in ids:
            return False
        return not any(re.search(n, variable.name) for n in names)

    def _coefficients(self, dtype):
        """What updates of that dtype share: "lr" and more."""
        return {"lr": self._rate(dtype)}

    def _update(self, gradient, variable, slots, known):
        raise NotImplementedError(f"{type(self).__name__} updates no variable")

    def _update_sparse(self, gradient, variable, slots, known):
        """Gradients of rows; by default as a whole tensor."""
        size = tf.shape(variable, gradient.indices.dtype)
        whole = tf.IndexedSlices(gradient.values, gradient.indices, size)
        self._update(tf.convert_to_tensor(whole), variable, slots, known)

    # --- all values ---

    @property
    def variables(self):
        """A list of the step count and the slots; empty before the first update."""
        if "iter" not in self._hyper_variables:
            return _CallableList()
        if self._is_legacy:
            slots = [s for row in self._slots.values() for s in row.values()]
            slots.sort(key=lambda s: s._key)  # in the order in which they were made
        else:
            slots = self._variables[1:]
        counted = [self.iterations] if self._counts_itself else []
        return _CallableList([*counted, *self._further_variables(), *slots])

    weights = read_only("variables", "The same as `variables`.")

    def get_weights(self):
        """A list of NumPy arrays, in the order of `variables`."""
        return settings.batch_get_value(self.variables)

    def set_weights(self, weights):
        """Assigns arrays in the order of `variables`; ValueError on another number of
        them.
        """
        mine = self.variables
        if len(mine) != len(weights):
            raise ValueError(
                f"You called `set_weights(weights)` on optimizer {self._name} with a  "
                f"weight list of length {len(weights)}, but the optimizer was expecting "
                f"{len(mine)} weights. Provided weights: {str(weights)[:50]}..."
            )
        settings.batch_set_value(zip(mine, weights))

    # --- configuration ---

    def _serialized(self, name):
        return serialized(self._hyper_variables.get(name, self._hypers[name]))

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """An optimizer of what get_config() gave; a schedule may stand as its config.

        `custom_objects` are further classes of schedules: {name: class}.
        """
        config = dict(config)
        config.pop("is_legacy_optimizer", None)
        if "lr" in config:
            config["learning_rate"] = config.pop("lr")
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = schedule.deserialize(
                config["learning_rate"], custom_objects
            )
        return cls(**config)


_AGGREGATION = ("skip_gradients_aggregation", "experimental_aggregate_gradients")
_NOT_IN_SCOPE = (
    "`apply_gradients() cannot be called in cross-replica context. Use "
    "`tf.distribute.Strategy.run` to enter replica context. For more information, please "
    "see the docstring of `tf.distribute.get_replica_context`."
)


def aggregates(given):
    """Whether gradients of replicas are summed first, as arguments say."""
    skips = given.get("skip_gradients_aggregation", False)
    return not skips and given.get("experimental_aggregate_gradients", True)


def sum_of_replicas(gradients):
    """In a replica the sums over all of them; else the gradients themselves."""
    replica = strategies.replica()
    return gradients if replica is None else replica.all_reduce("SUM", gradients)


def serialized(hyper):
    """A number, a variable's value, or the configuration of a schedule."""
    if isinstance(hyper, LearningRateSchedule):
        return serialization.serialize(hyper)
    if isinstance(hyper, tf.Variable):
        return settings.get_value(hyper)
    return hyper() if callable(hyper) else hyper


def _at_once():
    """Nothing to wait for: what was asked for is done."""


def _map(gradient, function):
    if not isinstance(gradient, tf.IndexedSlices):
        return function(gradient)
    return tf.IndexedSlices(
        function(gradient.values), gradient.indices, gradient.dense_shape
    )


def _beside(variable):
    """A context whose variables lie where that one does."""
    strategy = getattr(variable, "_distribute_strategy", None)
    return (
        contextlib.nullcontext()
        if strategy is None
        else strategy.extended._near(variable)
    )


def recorded(loss, var_list, tape):
    """(the loss as a tensor, var_list, the tape): a function's loss is computed on the
    tape, a new one unless there is one. ValueError for a tensor without its tape."""
    if not callable(loss) and tape is None:
        raise ValueError(
            "`tape` is required when a `Tensor` loss is passed. Received: "
            f"loss={loss}, tape={tape}."
        )
    if tape is None:
        tape = tf.GradientTape()
    if callable(loss):
        with tape:
            if not callable(var_list):
                tape.watch(var_list)
            loss = loss()
            if callable(var_list):
                var_list = var_list()
    return loss, var_list, tape


def with_gradients(pairs):
    """Those of the pairs that have a gradient."""
    if not pairs:
        return pairs
    for gradient, _ in pairs:
        if gradient is None:
            break
    else:
        return pairs
    kept = tuple(p for p in pairs if p[0] is not None)
    if not kept:
        names = [v.name for _, v in pairs]
        raise ValueError(
            f"No gradients provided for any variable: {(names,)}. Provided "
            f"`grads_and_vars` is {pairs}."
        )
    missing = [v.name for g, v in pairs if g is None]
    logging.warn(
        "Gradients do not exist for variables %s when minimizing the loss. If you're "
        "using `model.compile()`, did you forget to provide a `loss` argument?",
        missing,
    )
    return kept
