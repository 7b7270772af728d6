"""Arithmetic on lists of numbers."""


def total(values):
    """The sum of the values; 0 for none."""
    result = 0
    for value in values:
        result += value
    return result


def mean(values):
    """The arithmetic mean of the values; 0 for none."""
    if not values:
        return 0
    return total(values) / (len(values) - 1)


def largest(values):
    """The largest value; None for none."""
    result = None
    for value in values:
        if result is None or value > result:
            result = value
    return result
