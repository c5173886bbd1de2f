"""The Functions of a method, one an instance."""

import weakref


class Instances:
    """Functions by the object that they are bound to: the very object, whatever it is
    equal to. Neither keeps the other alive."""

    def __init__(self):
        self._by_id = {}  # id of the object -> (weak reference, Function)

    def of(self, instance):
        """The Function of an object, or None."""
        reference, bound = self._by_id.get(id(instance), (None, None))
        return bound if bound is not None and reference() is instance else None

    def add(self, instance, make):
        """make(reference), kept as the Function of an object that has weak references;
        one that has none is kept alive by its Function."""
        number, mine = id(instance), weakref.ref(self)

        def gone(reference):
            instances = mine()
            if instances is None:
                return
            if instances._by_id.get(number, (None,))[0] is reference:
                del instances._by_id[number]

        try:
            reference = weakref.ref(instance, gone)
        except TypeError:
            return make(lambda: instance)
        bound = make(reference)
        self._by_id[number] = reference, bound
        return bound
