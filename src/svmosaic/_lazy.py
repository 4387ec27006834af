"""Packages whose names are imported when they are first used."""

from importlib import import_module


def lazy(namespace, modules):
    """`__all__`, `__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    namespace : dict
        `globals()` of the package.
    modules : dict
        The names of each module of it.
    """
    places = {name: module for module, names in modules.items() for name in names}

    def find(name):
        if name not in places:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        module = import_module(f"{namespace['__name__']}.{places[name]}")
        namespace[name] = value = getattr(module, name)
        return value

    return sorted(places), find, lambda: sorted({*namespace, *places})


def find_type(path):
    """The class of a module and name, such as a file of ours refers to: callers have a list of those allowed."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
