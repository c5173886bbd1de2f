"""Hints: what is known of an operator's matrix, True, False, or None for not known."""

NAMES = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


def of(operator):
    """The hints of an operator by name, for another that has the same ones."""
    return {name: getattr(operator, name) for name in NAMES}


def in_dict(given):
    """Those of a dict, a dict of their own."""
    return {name: given[name] for name in NAMES}


def check(hints, name, message):
    """ValueError where a hint was given as False that cannot be; else makes it True."""
    if hints[name] is False:
        raise ValueError(message)
    hints[name] = True


def follow(hints, operators, messages):
    """What holds of every one of some operators is made to hold of their sum or product.

    `messages` are for hints that say otherwise, by name.
    """
    for name, message in messages.items():
        if all(getattr(operator, name) for operator in operators):
            check(hints, name, message)


def _of_both(left, right, name):
    pair = [getattr(left, name), getattr(right, name)]
    return False if False in pair else True if all(pair) else None


def of_product(left, right):
    """Hints of the product of two matrices of whatever kind."""
    return {
        "is_non_singular": _of_both(left, right, "is_non_singular"),
        "is_square": True if left.is_square and right.is_square else None,
    }


def of_commuting_product(left, right):
    """Hints of the product of two matrices that commute, such as diagonal ones."""
    both = [left.is_self_adjoint, right.is_self_adjoint]
    self_adjoint = True if all(both) else False if set(both) == {True, False} else None
    definite = left.is_positive_definite and right.is_positive_definite
    return {
        "is_non_singular": _of_both(left, right, "is_non_singular"),
        "is_self_adjoint": self_adjoint,
        "is_positive_definite": True if all(both) and definite else None,
        "is_square": True,
    }
