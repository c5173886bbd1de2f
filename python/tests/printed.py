"""Printed lines that differ in the numbers in them, and by how much."""


def differing(line, wanted, number):
    """Pairs of numbers, which the pattern `number` finds; None where the words differ.

    Spaces by which numbers of other widths are laid out are no difference.
    """
    words = [" ".join(number.sub("#", x).split()) for x in (line, wanted)]
    words = [x.replace(" ]", "]").replace("[ ", "[") for x in words]
    if words[0] != words[1]:
        return None
    return list(zip(*([float(n) for n in number.findall(x)] for x in (line, wanted))))
