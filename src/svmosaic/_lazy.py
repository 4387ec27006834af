"""Packages whose names are imported when they are first asked for."""

from importlib import import_module


def lazy(namespace, places):
    """`__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    namespace : dict
        `globals()` of the package.
    places : dict
        The module of each name.
    """

    def find(name):
        if name not in places:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        namespace[name] = value = getattr(import_module(places[name]), name)
        return value

    return find, lambda: sorted({*namespace, *places})


def find_type(path):
    """The class of a module and name, such as a file of ours refers to: callers have a list of those allowed."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
